/** The traces of the open conversation's replies, fetched on demand. */
import { SvelteMap } from "svelte/reactivity";
import { BackendError, type Backend } from "../backend/backend";
import { Trace } from "./trace.svelte";
import { errorWords } from "../messages/errors";

export class Traces {
  readonly #backend: Backend;
  readonly #loaded = new SvelteMap<number, Trace>();
  readonly #wanted = new Map<number, Promise<void>>();
  readonly #onProblem: (message: string) => void;

  constructor(backend: Backend, onProblem: (message: string) => void) {
    this.#backend = backend;
    this.#onProblem = onProblem;
  }

  /** The trace of a reply, or undefined until it is fetched. */
  of(message: number): Trace | undefined {
    return this.#loaded.get(message);
  }

  /** Fetches the trace of a stored reply if necessary; resolves when it is available. */
  async want(message: number) {
    if (this.#loaded.has(message)) return;
    const coming = this.#wanted.get(message) ?? this.refresh(message);
    this.#wanted.set(message, coming);
    await coming;
    this.#wanted.delete(message);
  }

  async refresh(message: number) {
    try {
      this.#loaded.set(message, Trace.of(await this.#backend.trace(message)));
    } catch (thrown) {
      this.#onProblem(errorWords(BackendError.from(thrown)));
    }
  }

  keep(message: number, trace: Trace) {
    this.#loaded.set(message, trace);
  }

  /** Drops all traces except those of these replies. */
  retain(messages: ReadonlySet<number>) {
    for (const id of [...this.#loaded.keys()]) if (!messages.has(id)) this.#loaded.delete(id);
  }
}
