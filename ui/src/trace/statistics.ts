/**
 * Statistics of a reply, computed over its rounds. Rates are over time, never of one round:
 * accepted tokens arrive in bursts, and a burst has no rate.
 */
import type { Decision } from "../bindings/Decision";
import type { Round } from "../bindings/Round";
import type { Times } from "../bindings/Times";
import { Histogram } from "./histogram";
import { count, emitted } from "./round";
import { depthsOf } from "./tree";

/** Width of the sliding window for tokens per second. */
export const RATE_WINDOW_MS = 2000;
/** Rounds kept for the rate before old ones are dropped. */
const RECENT = 4096;

/** Acceptance at a position in the draft. Siblings count once: at most one can be accepted. */
export interface Position {
  judged: number;
  accepted: number;
}

export interface Statistics {
  rounds: number;
  /** Emitted tokens. */
  tokens: number;
  drafted: number;
  judged: number;
  accepted: number;
  /** accepted / judged; null when nothing was judged. */
  acceptanceRate: number | null;
  /** tokens / rounds; null without rounds. */
  tokensPerRound: number | null;
  /** Speed over the last {@link RATE_WINDOW_MS}; null before the second round. */
  tokensPerSecond: number | null;
  /** Time to the end of the first round; null without rounds. */
  ttftMs: number | null;
  /** Milliseconds per token after the first round: median and 95th percentile, within 1 %. */
  tokenMs: { p50: number; p95: number } | null;
  times: Times;
  /** Verified and accepted positions, by position in the draft. */
  byPosition: Position[];
  /** Mean number of experts read per layer in a round; null in a dense model. */
  expertsRead: number | null;
  /** The governor's latest decision; null if it never chose the draft length. */
  decision: Decision | null;
}

export function statisticsOf(rounds: readonly Round[]): Statistics {
  const accumulator = new Accumulator();
  for (const round of rounds) accumulator.add(round);
  return accumulator.snapshot();
}

/** Computes statistics incrementally, at constant cost per round. */
export class Accumulator {
  #rounds = 0;
  #tokens = 0;
  #drafted = 0;
  #judged = 0;
  #accepted = 0;
  #ttftMs: number | null = null;
  #decision: Decision | null = null;
  readonly #experts = { read: 0, rounds: 0 };
  /** The latest rounds, including all in the window of the rate. */
  #recent: Round[] = [];
  #maxRecent = RECENT;
  readonly #times: Times = { draft_ms: 0, verify_ms: 0, sample_ms: 0, rest_ms: 0 };
  readonly #byPosition: Position[] = [];
  readonly #tokenMs = new Histogram();

  add(round: Round) {
    const tokens = emitted(round);
    const accepted = count(round, "accepted");
    const last = this.#recent.at(-1);
    if (last && tokens > 0) {
      this.#tokenMs.add(Math.max(0, round.at_ms - last.at_ms) / tokens, tokens);
    }
    this.#rounds += 1;
    this.#tokens += tokens;
    this.#drafted += round.drafted.length;
    this.#accepted += accepted;
    this.#judged += round.drafted.length - count(round, "discarded");
    this.#ttftMs ??= round.at_ms;
    this.#decision = round.decision ?? this.#decision;
    if (round.experts != null) {
      this.#experts.read += round.experts;
      this.#experts.rounds += 1;
    }
    this.#times.draft_ms += round.times.draft_ms;
    this.#times.verify_ms += round.times.verify_ms;
    this.#times.sample_ms += round.times.sample_ms;
    this.#times.rest_ms += round.times.rest_ms;
    this.#countPositions(round, accepted);
    this.#recent.push(round);
    if (this.#recent.length >= this.#maxRecent) this.#dropBefore(round.at_ms - RATE_WINDOW_MS);
  }

  snapshot(): Statistics {
    return {
      rounds: this.#rounds,
      tokens: this.#tokens,
      drafted: this.#drafted,
      judged: this.#judged,
      accepted: this.#accepted,
      acceptanceRate: this.#judged > 0 ? this.#accepted / this.#judged : null,
      tokensPerRound: this.#rounds > 0 ? this.#tokens / this.#rounds : null,
      tokensPerSecond: rateOf(this.#recent),
      ttftMs: this.#ttftMs,
      tokenMs: this.#tokenMs.percentiles(),
      times: { ...this.#times },
      byPosition: this.#byPosition.map((position) => ({ ...position })),
      expertsRead: this.#experts.rounds > 0 ? this.#experts.read / this.#experts.rounds : null,
      decision: this.#decision,
    };
  }

  /** Counts a round's accepted path, and the position after it if tokens were rejected there. */
  #countPositions(round: Round, accepted: number) {
    let judged = accepted;
    if (count(round, "rejected") > 0) {
      const depths = depthsOf(round);
      round.drafted.forEach(({ outcome }, slot) => {
        if (outcome === "rejected") judged = Math.max(judged, (depths[slot] ?? 0) + 1);
      });
    }
    for (let depth = 0; depth < judged; depth += 1) {
      const at = (this.#byPosition[depth] ??= { judged: 0, accepted: 0 });
      at.judged += 1;
      if (depth < accepted) at.accepted += 1;
    }
  }

  /**
   * Drops rounds that ended before the window, except the last: it marks the start of the next one.
   * Runs again once twice as many are kept, so that the cost per round stays constant.
   */
  #dropBefore(start: number) {
    const inside = this.#recent.findIndex((round) => round.at_ms > start);
    this.#recent = this.#recent.slice(Math.max(0, inside - 1));
    this.#maxRecent = Math.max(RECENT, 2 * this.#recent.length);
  }
}

/**
 * Tokens per second over the last `windowMs` of a trace. A round across the window's start counts
 * by the share of its time inside. The first round is excluded, since its time includes the
 * prefill.
 */
export function rateOf(rounds: readonly Round[], windowMs = RATE_WINDOW_MS): number | null {
  const end = rounds.at(-1)?.at_ms;
  const begin = rounds[0]?.at_ms;
  if (end === undefined || begin === undefined || end <= begin) return null;
  const start = Math.max(begin, end - windowMs);
  let tokens = 0;
  for (let i = rounds.length - 1; i > 0; i -= 1) {
    const round = rounds[i];
    const before = rounds[i - 1];
    if (!round || !before || round.at_ms <= start) break;
    const spent = round.at_ms - before.at_ms;
    const inside = round.at_ms - Math.max(start, before.at_ms);
    tokens += emitted(round) * (spent > 0 ? inside / spent : 1);
  }
  return (tokens * 1000) / (end - start);
}

/** Tokens per second over a duration; null without tokens or without a duration. */
export function meanRate(tokens: number, ms: number): number | null {
  return tokens > 0 && ms > 0 ? (tokens * 1000) / ms : null;
}

/** Duration of the round at `index` in milliseconds, by the reply's clock. */
export function roundMs(rounds: readonly Round[], index: number): number {
  const round = rounds[index];
  if (!round) return 0;
  const { draft_ms, verify_ms, sample_ms, rest_ms } = round.times;
  return draft_ms + verify_ms + sample_ms + rest_ms;
}
