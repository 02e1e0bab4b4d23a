/**
 * One contest, running or stored. Its measurements remain if it fails or is stopped. Texts and
 * curves are updated a few times a second, not with every round.
 */
import type { Arena } from "../bindings/Arena";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { ArenaRun } from "../bindings/ArenaRun";
import type { Setup } from "../bindings/Setup";
import type { Verdict } from "../bindings/Verdict";
import type { Curve } from "../arena/curves";
import { distinct, labelOf } from "../arena/label";
import { verdictOf, type Pair, type Side } from "../arena/pairs";
import { BackendError } from "../backend/backend";
import { frames } from "../frames";
import { errorWords } from "../messages/errors";

export type Stage = "running" | "finished" | "stopped" | "failed";

export class Contest {
  readonly prompt: string;
  readonly setups: Pair<Setup>;
  readonly pairs: number;
  readonly maxTokens: number;
  readonly target: string;

  stage = $state<Stage>("running");
  stopping = $state(false);
  /** Finished runs. */
  runs = $state.raw<readonly ArenaRun[]>([]);
  /** The run under way. */
  current = $state.raw<{ pair: number; side: Side } | null>(null);
  curve = $state.raw<Curve>([]);
  texts = $state.raw<Pair<string>>(["", ""]);
  /** Why the contest failed or was stopped, in a sentence. */
  problem = $state<string | null>(null);
  /** The stored contest, once it has finished. */
  stored = $state.raw<Arena | null>(null);
  /**
   * Labels of the set-ups: fixed at the start of a contest, in the current language for a stored
   * one.
   */
  readonly names: Pair<string> = $derived(distinct(this.#names()));
  readonly verdict: Verdict = $derived(this.stored?.verdict ?? verdictOf(this.runs));

  /** Whether a run has begun. A refusal before that concerns the request. */
  begun = false;
  #writing = "";
  #points: [number, number][] = [];
  readonly #labels: Pair<string>;

  constructor(request: ArenaRequest, labels: Pair<string>, target: string) {
    this.prompt = request.prompt;
    this.setups = request.setups;
    this.pairs = request.pairs;
    this.maxTokens = request.max_tokens;
    this.target = target;
    this.#labels = labels;
  }

  /** A stored contest; undefined if one of its two set-ups is missing. */
  static of(stored: Arena): Contest | undefined {
    const [one, other] = stored.setups;
    if (!one || !other) return undefined;
    const request: ArenaRequest = {
      prompt: stored.prompt,
      setups: [one.setup, other.setup],
      pairs: Math.max(0, ...stored.runs.map(({ pair }) => pair + 1)),
      max_tokens: stored.max_tokens,
    };
    const contest = new Contest(request, ["", ""], stored.target);
    contest.finish(stored);
    return contest;
  }

  get request(): ArenaRequest {
    const { prompt, setups, pairs, maxTokens } = this;
    return { prompt, setups: [...setups], pairs, max_tokens: maxTokens };
  }

  take(event: ArenaEvent) {
    this.begun = true;
    switch (event.type) {
      case "run":
        this.current = { pair: event.pair, side: event.setup === 0 ? 0 : 1 };
        this.#writing = "";
        this.#points = [];
        this.#show();
        break;
      case "progress":
        this.#writing += event.text;
        this.#points.push([event.at_ms, event.tokens]);
        frames.request(this.#show);
        break;
      case "finished":
        this.#show();
        this.runs = [...this.runs, event.run];
        this.curve = [];
        this.#points = [];
        break;
    }
  }

  #names(): Pair<string> {
    if (!this.stored) return this.#labels;
    const { setups } = this.stored;
    const [one = "", other = ""] = setups.map(({ setup, draft }) => labelOf(setup, draft));
    return [one, other];
  }

  finish(stored: Arena) {
    this.#settle("finished");
    this.stored = stored;
    this.runs = stored.runs;
    const [first = "", second = ""] = stored.texts;
    this.texts = [first, second];
  }

  fail(error: BackendError) {
    this.#show();
    this.#settle(error.code === "cancelled" ? "stopped" : "failed");
    this.problem = errorWords(error);
  }

  #settle(stage: Stage) {
    frames.cancel(this.#show);
    this.stage = stage;
    this.stopping = false;
    this.current = null;
    this.curve = [];
  }

  readonly #show = () => {
    frames.cancel(this.#show);
    if (!this.current) return;
    const [one, other] = this.texts;
    this.texts = this.current.side === 0 ? [this.#writing, other] : [one, this.#writing];
    this.curve = [...this.#points];
  };
}
