/** Tools that replies may call: servers, what they offer, and what happens to calls. */
import type { Builtin } from "../bindings/Builtin";
import type { ImportableServers } from "../bindings/ImportableServers";
import type { OfferedTool } from "../bindings/OfferedTool";
import type { SearchService } from "../bindings/SearchService";
import type { Settings as Values } from "../bindings/Settings";
import type { ToolRule } from "../bindings/ToolRule";
import type { ToolsStatus } from "../bindings/ToolsStatus";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import { polled } from "./polled";
import type { Settings } from "./settings.svelte";

const REFRESH_MS = 500;

export class Tools {
  status = $state.raw<ToolsStatus>({
    servers: [],
    tools: [],
    has_search_key: false,
    problem: null,
  });
  importable = $state.raw<ImportableServers[]>([]);
  /** Why the last change failed; null if it did not. */
  problem = $state<string | null>(null);
  busy = $state(false);

  readonly #backend: Backend;
  readonly #settings: Settings;

  constructor(backend: Backend, settings: Settings) {
    this.#backend = backend;
    this.#settings = settings;
  }

  /** Keeps the status current until the returned function is called. */
  watch(): () => void {
    return polled(
      () => this.#backend.toolsStatus(),
      (status) => (this.status = status),
      REFRESH_MS,
    );
  }

  async load() {
    await this.#change(() => this.#backend.toolsStatus());
  }

  async switchServer(name: string, on: boolean) {
    await this.#change(() => this.#backend.switchToolServer(name, on));
    this.#settings.takeModels(await this.#backend.settings());
  }

  /** Adds the servers of a pasted document; resolves with whether that worked. */
  async add(text: string): Promise<boolean> {
    await this.#change(() => this.#backend.addToolServers(text));
    return this.problem === null;
  }

  async remove(name: string) {
    await this.#change(() => this.#backend.removeToolServer(name));
    this.#settings.takeModels(await this.#backend.settings());
  }

  /** Looks for servers of other programs. */
  async look() {
    this.importable = await this.#backend.importableToolServers().catch(() => []);
  }

  async import(program: string) {
    await this.#change(() => this.#backend.importToolServers(program));
    await this.look();
  }

  async switchBuiltin(builtin: Builtin, on: boolean) {
    const others = this.#settings.values.builtin_tools.filter((other) => other !== builtin);
    this.#settings.change({ builtin_tools: on ? [...others, builtin] : others });
    await this.#settings.save();
    await this.load();
  }

  /** Changes the service that searches the web. */
  async chooseSearch(change: Partial<Pick<Values, "search_service" | "searxng_address">>) {
    this.#settings.change(change);
    await this.#settings.save();
    await this.load();
  }

  /** Keeps or removes the key of a search service; resolves with whether that worked. */
  async setSearchKey(service: SearchService, key: string | null): Promise<boolean> {
    await this.#change(() => this.#backend.setSearchKey(service, key));
    return this.problem === null;
  }

  async setRule({ server, digest }: OfferedTool, rule: ToolRule) {
    await this.#change(async () => {
      await this.#backend.setToolRule(server, digest, rule);
      return this.#backend.toolsStatus();
    });
  }

  async #change(change: () => Promise<ToolsStatus>) {
    this.busy = true;
    this.problem = null;
    try {
      // Pending changes are saved first: the shell changes its stored settings.
      await this.#settings.save();
      this.status = await change();
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    } finally {
      this.busy = false;
    }
  }
}
