/**
 * The arena's form, the contest on the screen, and stored contests. One contest runs at a time, and
 * only while the engine is idle.
 */
import type { Arena as Stored } from "../bindings/Arena";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { Setup } from "../bindings/Setup";
import { facts } from "../bindings/facts";
import { draftName, labelOf, obstacleOf } from "../arena/label";
import type { Pair, Side } from "../arena/pairs";
import { BackendError, type Backend } from "../backend/backend";
import { Contest } from "./contest.svelte";
import type { Engine } from "./engine.svelte";
import type { Settings } from "./settings.svelte";
import type { Toasts } from "./toasts.svelte";
import { t } from "../messages/say";
import { errorWords } from "../messages/errors";

export const USUAL_TOKENS = 256;
const USUAL_PAIRS = 5;
/** Format version of the exported file, see docs/arena.md. */
const EXPORT_VERSION = 1;

export class Arena {
  prompt = $state("");
  pairs = $state(USUAL_PAIRS);
  maxTokens = $state<number>(USUAL_TOKENS);
  /** The chosen set-ups; null means the current settings against no draft. */
  #chosen = $state.raw<Pair<Setup> | null>(null);
  /** The contest shown instead of the form: running, finished or stored. */
  contest = $state.raw<Contest | null>(null);
  /** Newest first. */
  stored = $state.raw<readonly Stored[]>([]);
  /** Why the last contest did not start. */
  problem = $state<string | null>(null);

  readonly #backend: Backend;
  readonly #settings: Settings;
  readonly #engine: Engine;
  readonly #toasts: Toasts;
  readonly #occupied: () => string | null;

  /** `occupied` returns why the engine is busy with something else, or null. */
  constructor(
    backend: Backend,
    settings: Settings,
    engine: Engine,
    toasts: Toasts,
    occupied: () => string | null,
  ) {
    this.#backend = backend;
    this.#settings = settings;
    this.#engine = engine;
    this.#toasts = toasts;
    this.#occupied = occupied;
  }

  get running(): boolean {
    return this.contest?.stage === "running";
  }

  get setups(): Pair<Setup> {
    if (this.#chosen) return this.#chosen;
    const { speculation, sampling } = this.#settings.values;
    const { draft, drafts } = this.#engine.status;
    const usable = drafts.find(({ id, problem }) => id !== facts.draftNone && !problem);
    const drafting =
      draft === facts.draftNone || draft === "" ? (usable?.id ?? facts.draftNone) : draft;
    const setup: Setup = { draft: drafting, speculation, mode: sampling.mode };
    return [setup, { ...setup, draft: facts.draftNone }];
  }

  /** Why the contest cannot start, in a sentence that says what to do; null if it can. */
  get obstacle(): string | null {
    const { target, drafts } = this.#engine.status;
    if (target === null) return t("arena.noModel");
    return obstacleOf(this.setups, drafts) ?? this.#occupied();
  }

  change(side: Side, change: Partial<Setup>) {
    const [one, other] = this.setups;
    this.#chosen = side === 0 ? [{ ...one, ...change }, other] : [one, { ...other, ...change }];
    this.problem = null;
  }

  async load() {
    try {
      this.stored = await this.#backend.arenas();
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  /** Starts the contest of the form. */
  async start() {
    if (this.running) return;
    const request: ArenaRequest = {
      prompt: this.prompt,
      setups: [...this.setups],
      pairs: this.pairs,
      max_tokens: this.maxTokens,
    };
    this.problem = this.obstacle;
    if (this.problem === null) await this.#run(request);
  }

  /** Repeats the contest on the screen, or a stored one. */
  async again({ prompt, setups, pairs, max_tokens }: ArenaRequest) {
    if (this.running) return;
    this.prompt = prompt;
    this.#chosen = setups;
    this.pairs = Math.max(facts.arenaPairs.min, Math.min(facts.arenaPairs.max, pairs));
    this.maxTokens = max_tokens;
    this.showForm();
    await this.start();
  }

  async stop() {
    const contest = this.contest;
    if (!contest || contest.stage !== "running") return;
    contest.stopping = true;
    try {
      await this.#backend.stop();
    } catch (thrown) {
      contest.stopping = false;
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  open(stored: Stored) {
    if (this.running) return;
    const contest = Contest.of(stored);
    if (contest) this.contest = contest;
    else {
      this.#toasts.show(
        t("arena.cannotShow", { id: String(stored.id), count: stored.setups.length }),
      );
    }
  }

  /** Shows the form again, with its contents. */
  showForm() {
    if (!this.running) this.contest = null;
  }

  async delete(id: number) {
    try {
      await this.#backend.deleteArena(id);
      this.stored = this.stored.filter((arena) => arena.id !== id);
      if (this.contest?.stored?.id === id) this.contest = null;
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  async export(arena: Stored) {
    const setups = arena.setups.map((one) => ({ label: labelOf(one.setup, one.draft), ...one }));
    const exported = { format: "foretoken-arena", version: EXPORT_VERSION, ...arena, setups };
    const text = JSON.stringify(exported, null, 2);
    try {
      const path = await this.#backend.saveFile(`foretoken-arena-${arena.id}.json`, `${text}\n`);
      this.#toasts.show(t("arena.saved", { path }));
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  async #run(request: ArenaRequest) {
    const { drafts, target } = this.#engine.status;
    const [one, other] = request.setups;
    const labels: Pair<string> = [
      labelOf(one, draftName(one, drafts)),
      labelOf(other, draftName(other, drafts)),
    ];
    const contest = new Contest(request, labels, target?.label ?? "");
    this.contest = contest;
    try {
      // The shell reads sampling from the stored settings.
      await this.#settings.save();
      const stored = await this.#backend.runArena(request, (event) => contest.take(event));
      contest.finish(stored);
      this.stored = [stored, ...this.stored.filter(({ id }) => id !== stored.id)];
    } catch (thrown) {
      const error = BackendError.from(thrown);
      contest.fail(error);
      if (contest.begun) return;
      // The request was refused, so the form has to be corrected.
      this.contest = null;
      if (error.code !== "cancelled") this.problem = errorWords(error);
    }
  }
}
