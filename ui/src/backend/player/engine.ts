/** Engine of the player: its settings, models and status, and one job at a time. */
import type { Advice } from "../../bindings/Advice";
import type { Commands } from "../../bindings/commands";
import type { EngineStatus } from "../../bindings/EngineStatus";
import type { ModelEntry } from "../../bindings/ModelEntry";
import type { Settings } from "../../bindings/Settings";
import { defaults } from "../../bindings/defaults";
import { facts } from "../../bindings/facts";
import { BackendError } from "../backend";
import type { Channel } from "../channel";
import type { RecordedCall } from "../recording";
import { recordedStatus } from "../recordings";
import { answered, notFound, recorded, until, type Handlers } from "./answers";

const WATCHABLE_SPEED = 0.05;

const FAILURE: EngineStatus["message"] = {
  kind: "error",
  code: "bad_model",
  detail:
    "/models/broken.gguf is not a model Foretoken can read: expected a GGUF file, found one that ends after 4,096 bytes. Download it again, or choose another model.",
};

export class Engine {
  /** Share of the recorded pace. */
  readonly speed: number;
  // The starter pair wrote the recordings.
  #settings: Settings = { ...structuredClone(defaults), target: "starter" };
  readonly #recorded = recordedStatus();
  #targets = this.#recorded.targets;
  readonly #watchers: ((status: EngineStatus) => void)[] = [];
  #phase: EngineStatus["phase"] = "loading";
  #stopped = false;

  /** The option `engine` is the phase in which the engine stays. */
  constructor(options: URLSearchParams, settleMs: number) {
    this.speed = Number(options.get("speed")) || WATCHABLE_SPEED;
    const held = options.get("engine");
    if (held === "loading") return;
    setTimeout(() => this.#enter(held === "failed" ? "failed" : "ready"), settleMs);
  }

  readonly handlers: Handlers = {
    settings: () => structuredClone(this.#settings),
    save_settings: ({ settings }) => this.configure(settings),
    watch_engine: ({ onChange }) => {
      this.#watchers.push((status) => onChange.onmessage(status));
      onChange.onmessage(this.#status());
    },
    cancel_loading: () => this.#enter("ready"),
    add_model: async ({ path }) => {
      const label = path.split("/").at(-1) ?? path;
      const added = await answered("add_model", { path });
      return this.addTarget({ ...added, id: path, name: path, label });
    },
    remove_model: ({ id }) => this.#removeTarget(id),
    delete_model: ({ id }) => this.#removeTarget(id),
    advise: async ({ onAdvice }) => {
      this.#stopped = false;
      let last: Advice | undefined;
      await this.#play(recorded("advise"), 1, (event) =>
        onAdvice.onmessage((last = event as Advice)),
      );
      if (last && this.hasStopped()) onAdvice.onmessage({ ...last, state: "waiting" });
    },
    stop_advice: () => (this.#stopped = true),
    stop: () => (this.#stopped = true),
  };

  get settings(): Settings {
    return this.#settings;
  }

  configure(settings: Settings): Settings {
    const problem = this.#targets.find(({ id }) => id === settings.target)?.problem;
    if (problem) throw new BackendError("bad_setting", problem.reason);
    this.#settings = structuredClone(settings);
    this.#announce();
    return structuredClone(settings);
  }

  /** The model that wrote the recordings. */
  get starter(): ModelEntry {
    const [starter] = this.#recorded.targets;
    return starter ?? notFound(0);
  }

  get target(): ModelEntry {
    return this.#targets.find(({ id }) => id === this.#settings.target) ?? this.starter;
  }

  get draft() {
    const { target, drafts } = this.#settings;
    const options = this.#recorded.drafts;
    return options.find(({ id }) => id === drafts[target]) ?? options[0];
  }

  get isDrafting(): boolean {
    return this.#why().state === "on";
  }

  addTarget(model: ModelEntry): ModelEntry {
    this.#targets = [...this.#targets.filter(({ id }) => id !== model.id), model];
    this.#announce();
    return model;
  }

  #removeTarget(model: string) {
    this.#targets = this.#targets.filter(({ id }) => id !== model);
    this.#announce();
  }

  refuseBusy() {
    if (this.#phase !== "replying") return;
    const message = "a reply, a check or an arena is running: stop it or wait until it finishes.";
    throw new BackendError("busy", message);
  }

  /** Throws if the engine cannot start a job now. */
  refuseUnready() {
    this.refuseBusy();
    if (this.#phase === "ready") return;
    const message = "No model is loaded: wait, or choose one in the Library.";
    throw new BackendError("no_target", message);
  }

  /** Starts a job, which lasts until `end`. */
  begin() {
    this.#stopped = false;
    this.#enter("replying");
  }

  end() {
    this.#enter("ready");
  }

  /** Whether the job was stopped. A method, since the value changes while a job waits. */
  hasStopped() {
    return this.#stopped;
  }

  /** Plays a recorded call as a job; returns its answer. */
  async run<Event>(name: keyof Commands, channel: Channel<Event[]>): Promise<unknown> {
    this.begin();
    const call = recorded(name);
    await this.#play(call, 1 / this.speed, (event) => channel.onmessage([event as Event]));
    this.end();
    if (this.hasStopped()) throw new BackendError("cancelled", "this was stopped.");
    return call.answer;
  }

  /**
   * Plays recorded events from the first one on, `factor` times as slowly; returns early after a
   * stop.
   */
  async #play({ events }: RecordedCall, factor: number, onEvent: (event: unknown) => void) {
    const begin = performance.now() - (events[0]?.at_ms ?? 0) * factor;
    for (const { at_ms, event } of events) {
      await until(begin + at_ms * factor);
      if (this.hasStopped()) return;
      onEvent(event);
    }
  }

  #enter(phase: EngineStatus["phase"]) {
    this.#phase = phase;
    this.#announce();
  }

  #announce() {
    for (const watcher of this.#watchers) watcher(this.#status());
  }

  #why(): EngineStatus["why"] {
    const { length } = this.#settings.speculation;
    if (this.draft?.id === facts.draftNone) return off({ kind: "no_draft" });
    if (length.type === "off") return off({ kind: "settings" });
    const tokens = length.type === "auto" ? null : length.tokens;
    return { ...off(null), state: "on", drafter: this.draft?.label ?? null, length: tokens };
  }

  #status(): EngineStatus {
    const isLoaded = this.#phase === "ready" || this.#phase === "replying";
    const isLoading = this.#phase === "loading";
    return {
      ...this.#recorded,
      phase: this.#phase,
      message: this.#phase === "failed" ? FAILURE : null,
      loading: isLoading ? { label: this.starter.label, percent: 43, draft: false } : null,
      target: isLoaded ? this.target : null,
      targets: this.#targets,
      draft: this.draft?.id ?? facts.draftNone,
      why: isLoaded ? this.#why() : off({ kind: "no_model" }),
      device_choice: this.#settings.device,
    };
  }
}

function off(reason: EngineStatus["why"]["off"]): EngineStatus["why"] {
  const nothing = { drafter: null, length: null, reason: null, expected: null };
  return { state: "off", ...nothing, off: reason, remarks: [] };
}
