/** Pairs of runs: which set-up was faster in each, and the verdict over all. */
import type { ArenaRun } from "../bindings/ArenaRun";
import type { Verdict } from "../bindings/Verdict";

/** Indices of the two set-ups, in the order chosen. */
export const SIDES = [0, 1] as const;
export type Side = (typeof SIDES)[number];

/** A value for each set-up. */
export type Pair<Value> = readonly [Value, Value];

export interface PairSpeed {
  pair: number;
  /**
   * Speed of the first set-up relative to the second: the second's time per token over the first's.
   */
  ratio: number;
}

/** Speed ratios of all complete pairs. A run without tokens has no time per token. */
export function pairSpeeds(runs: readonly ArenaRun[]): PairSpeed[] {
  const firsts = runs.filter(({ setup, tokens }) => setup === 0 && tokens > 0);
  const speeds = firsts.flatMap((first): PairSpeed[] => {
    const second = runs.find(({ setup, pair }) => setup === 1 && pair === first.pair);
    if (!second || second.tokens === 0 || first.elapsed_ms <= 0) return [];
    return [{ pair: first.pair, ratio: timeOfToken(second) / timeOfToken(first) }];
  });
  return speeds.toSorted((a, b) => a.pair - b.pair);
}

/**
 * The winner is the set-up that is faster in every pair. Without a winner, ratios are the first's.
 */
export function verdictOf(runs: readonly ArenaRun[]): Verdict {
  const ratios = pairSpeeds(runs).map(({ ratio }) => ratio);
  const pairs = ratios.length;
  const spread = (of: number[]) => ({
    ratio: middle(of),
    lowest: Math.min(...of),
    highest: Math.max(...of),
    pairs,
  });
  if (pairs === 0) return { winner: null, ratio: 1, lowest: 1, highest: 1, pairs };
  if (ratios.every((ratio) => ratio > 1)) return { winner: 0, ...spread(ratios) };
  if (ratios.every((ratio) => ratio < 1)) {
    return { winner: 1, ...spread(ratios.map((ratio) => 1 / ratio)) };
  }
  return { winner: null, ...spread(ratios) };
}

/** Median of ratios; the geometric mean of the middle two, so that inverting all inverts it. */
function middle(ratios: readonly number[]): number {
  return Math.exp(median(ratios.map(Math.log)) ?? 0);
}

/** The median; null without values. */
export function median(values: readonly number[]): number | null {
  const sorted = values.toSorted((a, b) => a - b);
  const half = Math.floor(sorted.length / 2);
  const upper = sorted[half];
  const lower = sorted.length % 2 === 0 ? sorted[half - 1] : upper;
  return upper === undefined || lower === undefined ? null : (lower + upper) / 2;
}

function timeOfToken({ elapsed_ms, tokens }: ArenaRun): number {
  return elapsed_ms / tokens;
}
