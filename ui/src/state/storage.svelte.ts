/** How much the stored traces take, and deleting them. */
import type { TraceStorage } from "../bindings/TraceStorage";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/shell";

export class Storage {
  /** Null until it is known. */
  used = $state.raw<TraceStorage | null>(null);
  /** While traces are being deleted. */
  busy = $state(false);
  problem = $state<string | null>(null);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  load(): Promise<void> {
    return this.#take(() => this.#backend.traceStorage());
  }

  /** Deletes the traces of replies older than so many days; null deletes all. */
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
