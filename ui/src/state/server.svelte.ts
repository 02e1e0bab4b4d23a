/** The local server's state, address and requests. */
import type { ServerRequest } from "../bindings/ServerRequest";
import type { ServerStatus } from "../bindings/ServerStatus";
import { BackendError, type Backend } from "../backend/backend";
import { frames } from "../frames";
import { errorWords } from "../messages/errors";

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
    let latest: ServerRequest[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    let watching = true;
    const show = () => (this.requests = latest);
    const refresh = async () => {
      // An error leaves the list as it is until the next answer.
      latest = await this.#backend.serverRequests().catch(() => latest);
      if (!watching) return;
      frames.request(show);
      timer = setTimeout(() => void refresh(), REFRESH_MS);
    };
    void refresh();
    return () => {
      watching = false;
      clearTimeout(timer);
      frames.cancel(show);
    };
  }
}
