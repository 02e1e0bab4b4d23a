/** Speed of a reply over time: tokens per second over a sliding window, never of a burst. */
import type { Round } from "../bindings/Round";
import { emitted } from "./round";
import { RATE_WINDOW_MS } from "./statistics";

/** Smallest number of rounds in a window: fewer would let one burst decide. */
const WINDOW_ROUNDS = 12;
/** Window of a short reply, as a share of its duration, so that a curve exists at all. */
const WINDOW_SHARE = 0.2;

export interface SpeedCurve {
  windowMs: number;
  /** Milliseconds from the reply's start, and tokens per second over the window that ends there. */
  points: [ms: number, rate: number][];
}

/** Follows a trace that only grows; each query reads only new rounds. */
export class Progress {
  readonly #rounds: readonly Round[];
  /** End of each round, and the tokens emitted by then, without the first round's. */
  readonly #atMs: number[] = [];
  readonly #tokens: number[] = [];

  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** The curve with at most `most` points; null while the reply is too short to slide a window. */
  curve(most = 120): SpeedCurve | null {
    this.#catchUp();
    const begin = this.#atMs[0];
    const end = this.#atMs.at(-1);
    const rounds = this.#atMs.length - 1;
    if (begin === undefined || end === undefined || rounds < 2 * WINDOW_ROUNDS) return null;
    const spent = end - begin;
    if (spent <= 0) return null;
    const usual = Math.min(RATE_WINDOW_MS, spent * WINDOW_SHARE);
    const windowMs = Math.max(usual, (spent / rounds) * WINDOW_ROUNDS);
    const points: SpeedCurve["points"] = [];
    for (let i = 0; i < most; i += 1) {
      const at = begin + windowMs + ((spent - windowMs) * i) / (most - 1);
      const tokens = this.#tokensBy(at) - this.#tokensBy(at - windowMs);
      points.push([at, (tokens * 1000) / windowMs]);
    }
    return { windowMs, points };
  }

  #catchUp() {
    for (let i = this.#atMs.length; i < this.#rounds.length; i += 1) {
      const round = this.#rounds[i];
      if (!round) return;
      const before = this.#tokens.at(-1);
      this.#atMs.push(round.at_ms);
      this.#tokens.push(before === undefined ? 0 : before + emitted(round));
    }
  }

  /** Tokens by a moment; the round at that moment counts by the share of its time. */
  #tokensBy(ms: number): number {
    let [low, high] = [0, this.#atMs.length - 1];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if ((this.#atMs[middle] ?? 0) <= ms) low = middle;
      else high = middle;
    }
    const [from = 0, to = 0] = [this.#atMs[low], this.#atMs[high]];
    const [before = 0, after = 0] = [this.#tokens[low], this.#tokens[high]];
    if (to <= from) return after;
    return before + (after - before) * Math.max(0, Math.min(1, (ms - from) / (to - from)));
  }
}
