/** Updates of the program: what is known of a newer version, and the steps to it. */
import type { UpdateStatus } from "../bindings/UpdateStatus";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";

export class Updates {
  /** The status; null until it is fetched. */
  status = $state.raw<UpdateStatus | null>(null);
  /** Why the last step was not begun. */
  refusal = $state<string | null>(null);

  readonly #backend: Backend;
  readonly #onFound: (version: string) => void;
  /** The last version that was announced. */
  #announced: string | null = null;

  /** `onFound` runs once for each newer version. */
  constructor(backend: Backend, onFound: (version: string) => void) {
    this.#backend = backend;
    this.#onFound = onFound;
  }

  async watch() {
    await this.#try(() => this.#backend.watchUpdates((status) => this.#show(status)));
  }

  check() {
    void this.#try(() => this.#backend.checkForUpdates());
  }

  download() {
    void this.#try(() => this.#backend.downloadUpdate());
  }

  cancel() {
    void this.#try(() => this.#backend.cancelUpdate());
  }

  install() {
    void this.#try(() => this.#backend.installUpdate());
  }

  #show(status: UpdateStatus) {
    this.status = status;
    const version = status.phase === "found" ? status.found?.version : undefined;
    if (version === undefined || version === this.#announced) return;
    this.#announced = version;
    this.#onFound(version);
  }

  async #try(step: () => Promise<void>) {
    this.refusal = null;
    try {
      await step();
    } catch (thrown) {
      this.refusal = errorWords(BackendError.from(thrown));
    }
  }
}
