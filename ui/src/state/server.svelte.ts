/** The local server's state, address and requests. */
import type { ServerRequest } from "../bindings/ServerRequest";
import type { ServerStatus } from "../bindings/ServerStatus";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import { polled } from "./polled";

const REFRESH_MS = 1000;

export class Server {
  status = $state.raw<ServerStatus>({ url: null, problem: null });
  /** Requests, the latest first; updated while {@link watchRequests} is active. */
  requests = $state.raw<ServerRequest[]>([]);

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

  /** Keeps the list of requests current until the returned function is called. */
  watchRequests(): () => void {
    return polled(
      () => this.#backend.serverRequests(),
      (requests) => (this.requests = requests),
      REFRESH_MS,
    );
  }
}
