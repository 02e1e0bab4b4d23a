/** The size of stored traces, and their deletion. */
import type { TraceStorage } from "../bindings/TraceStorage";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";

export class Storage {
  /** The size; null until it is fetched. */
  used = $state.raw<TraceStorage | null>(null);
  /** Whether traces are being deleted. */
  busy = $state(false);
  problem = $state<string | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  load(): Promise<void> {
    return this.#take(() => this.#backend.traceStorage());
  }

  /** Deletes traces older than a number of days; null deletes all. */
  async delete(olderThanDays: number | null) {
    if (this.busy) return;
    this.busy = true;
    await this.#take(() => this.#backend.deleteTraces(olderThanDays));
    this.busy = false;
  }

  async #take(ask: () => Promise<TraceStorage>) {
    try {
      this.used = await ask();
      this.problem = null;
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    }
  }
}
