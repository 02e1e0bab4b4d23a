/** What the engine last said about itself. Never guesses: the shell sends every change. */
import { frames } from "../frames";
import type { EngineStatus } from "../bindings/EngineStatus";
import { defaults } from "../bindings/defaults";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/shell";

const STARTING: EngineStatus = {
  phase: "loading",
  message: null,
  loading: null,
  target: null,
  thinks: null,
  merges_system: false,
  targets: [],
  drafts: [],
  draft: "",
  why: {
    state: "off",
    drafter: null,
    length: null,
    reason: null,
    expected: null,
    text: "no model is loaded yet",
  },
  device: "",
  device_choice: "auto",
  draft_device: null,
  device_remarks: [],
  device_notes: [],
  devices: [],
  memory: {
    target_bytes: 0,
    draft_bytes: 0,
    process_bytes: 0,
    free_bytes: 0,
    gpu_bytes: 0,
    gpu_free_bytes: 0,
  },
  reading_rate: null,
  penalties: defaults.sampling,
};

export class Engine {
  status = $state.raw<EngineStatus>(STARTING);
  /** Whether devices are being looked for. */
  isLooking = $state(false);

  readonly #backend: Backend;
  /** Labels of all that was ever listed: a model that is deleted while it is loaded goes on working. */
  readonly #labels = new Map<string, string>();
  #latest = STARTING;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  async watch() {
    try {
      await this.#backend.watchEngine((status) => {
        for (const { id, label } of [...status.targets, ...status.drafts]) {
          this.#labels.set(id, label);
        }
        this.#latest = status;
        // While a reply is written the why line changes as often as can be read: not in a frame of its own.
        const writing = status.phase === "replying" && this.status.phase === "replying";
        if (writing) frames.ask(this.#show);
        else this.#show();
      });
    } catch (thrown) {
      const message = errorWords(BackendError.from(thrown));
      this.status = { ...STARTING, phase: "failed", message };
    }
  }

  readonly #show = () => {
    this.status = this.#latest;
  };

  /** Has what could compute listed; what cannot be looked for is not listed. */
  async lookForDevices() {
    this.isLooking = true;
    await this.#backend.lookForDevices().catch(() => undefined);
    this.isLooking = false;
  }

  /** What a target or a draft is called, also one that is no longer listed. */
  label(id: string): string | undefined {
    return this.#labels.get(id);
  }
}
