/** The engine's latest status. The shell sends every change. */
import { frames } from "../frames";
import type { EngineStatus } from "../bindings/EngineStatus";
import { defaults } from "../bindings/defaults";
import { BackendError, type Backend } from "../backend/backend";
import { draftLabel } from "../trace/names";

const STARTING: EngineStatus = {
  phase: "loading",
  message: null,
  loading: null,
  target: null,
  thinks: null,
  sees: false,
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
    off: { kind: "starting" },
    remarks: [],
  },
  device: { api: null, name: "", facts: [] },
  device_choice: "auto",
  draft_device: null,
  device_remarks: [],
  device_notes: [],
  devices: [],
  memory: {
    target_bytes: 0,
    draft_bytes: 0,
    contexts_bytes: 0,
    process_bytes: 0,
    free_bytes: 0,
    gpu_bytes: 0,
    gpu_free_bytes: 0,
  },
  reading_rate: null,
  read_context: null,
  penalties: defaults.sampling,
};

export class Engine {
  status = $state.raw<EngineStatus>(STARTING);
  /** Whether a search for devices is running. */
  isLooking = $state(false);

  readonly #backend: Backend;
  /** Labels of all models ever listed: a loaded model still works after it is deleted. */
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
        // While a reply is written, the reason line changes often: it shares a frame with other
        // updates.
        const writing = status.phase === "replying" && this.status.phase === "replying";
        if (writing) frames.request(this.#show);
        else this.#show();
      });
    } catch (thrown) {
      const { code, message: detail } = BackendError.from(thrown);
      const message = { kind: "error", code, detail } as const;
      this.status = { ...STARTING, phase: "failed", message };
    }
  }

  readonly #show = () => {
    this.status = this.#latest;
  };

  /** Searches for devices; errors are ignored, and the status lists those found. */
  async lookForDevices() {
    this.isLooking = true;
    await this.#backend.lookForDevices().catch(() => undefined);
    this.isLooking = false;
  }

  /** The label of a target or a draft, including models that are no longer listed. */
  label(id: string): string | undefined {
    const label = this.#labels.get(id);
    return label === undefined ? undefined : draftLabel({ id, label });
  }
}
