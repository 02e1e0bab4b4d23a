/** Whether the local server runs, and where. */
import type { ServerStatus } from "../bindings/ServerStatus";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/shell";

export class Server {
  status = $state.raw<ServerStatus>({ url: null, problem: null });

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async load() {
    try {
      this.status = await this.#backend.serverStatus();
    } catch (thrown) {
      this.status = { url: null, problem: errorWords(BackendError.from(thrown)) };
    }
  }
}
