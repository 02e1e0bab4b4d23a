/** Remote servers: adding, testing and removing them, with the results. */
import { BackendError, type Backend } from "../backend/backend";
import type { Settings as Values } from "../bindings/Settings";
import { errorWords } from "../messages/errors";
import type { Settings } from "./settings.svelte";

/** Result of a test: a problem in a sentence, or null if the server answered. */
export type Outcome = { problem: string | null };

export class Servers {
  /** Results by the server's name. */
  outcomes = $state.raw<Readonly<Record<string, Outcome>>>({});
  /** Whether a request is under way. */
  busy = $state(false);

  readonly #backend: Backend;
  readonly #settings: Settings;

  constructor(backend: Backend, settings: Settings) {
    this.#backend = backend;
    this.#settings = settings;
  }

  /** Adds a server and tests it; resolves before the test ends, with why it cannot be added. */
  async add(name: string, address: string, key: string): Promise<string | null> {
    const sent = key.trim() === "" ? null : key.trim();
    const problem = await this.#change(() => this.#backend.addServer(name, address, sent));
    if (problem === null) void this.test(name.trim());
    return problem;
  }

  async test(name: string) {
    const problem = await this.#change(() => this.#backend.testServer(name));
    this.outcomes = { ...this.outcomes, [name]: { problem } };
  }

  async remove(name: string): Promise<string | null> {
    return this.#change(() => this.#backend.removeServer(name));
  }

  async #change(change: () => Promise<Values>): Promise<string | null> {
    this.busy = true;
    try {
      // Pending changes are saved first: the shell changes its stored settings.
      await this.#settings.save();
      this.#settings.takeModels(await change());
      return null;
    } catch (thrown) {
      return errorWords(BackendError.from(thrown));
    } finally {
      this.busy = false;
    }
  }
}
