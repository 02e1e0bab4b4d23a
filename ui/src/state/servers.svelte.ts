/** The servers elsewhere that a person added: adding, asking and removing them, and what came of it. */
import { BackendError, type Backend } from "../backend/backend";
import type { Settings as Values } from "../bindings/Settings";
import { errorWords } from "../messages/shell";
import type { Settings } from "./settings.svelte";

/** What came of asking a server: a problem in a sentence, or null where it answered. */
export type Outcome = { problem: string | null };

export class Servers {
  /** By the names of the servers that were asked. */
  outcomes = $state.raw<Readonly<Record<string, Outcome>>>({});
  /** Whether something is asked. */
  busy = $state(false);

  readonly #backend: Backend;
  readonly #settings: Settings;

  constructor(backend: Backend, settings: Settings) {
    this.#backend = backend;
    this.#settings = settings;
  }

  /** Adds a server, and asks it for its models; resolves with why it cannot be added before it has answered. */
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
      // What is not saved yet goes first: the shell changes what it has.
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
