/** What the engine last said about itself. Never guesses: the shell sends every change. */
import type { EngineStatus } from "../bindings/EngineStatus";
import { BackendError, type Backend } from "../backend/backend";

const STARTING: EngineStatus = {
  phase: "loading",
  message: "Starting",
  target: null,
  targets: [],
  drafts: [],
  draft: "",
  why: { state: "off", text: "starting" },
  device: "",
};

export class Engine {
  status = $state.raw<EngineStatus>(STARTING);

  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async watch() {
    try {
      await this.#backend.watchEngine((status) => (this.status = status));
    } catch (thrown) {
      const { message } = BackendError.from(thrown);
      this.status = { ...STARTING, phase: "failed", message };
    }
  }
}
