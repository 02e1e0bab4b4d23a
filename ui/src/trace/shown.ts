/**
 * The numbers the inspector shows of one reply: those of its trace, or of its summary where the rounds
 * are not there.
 */
import type { Summary } from "../bindings/Summary";
import type { Round } from "../bindings/Round";
import { emitted } from "./round";
import { meanRate, type Statistics } from "./statistics";

export interface Shown {
  /** Without percentiles and positions where only the summary is there. */
  statistics: Statistics;
  /** Tokens a second: over the window while the reply grows, over all of it once it is whole. */
  rate: number | null;
  whole: boolean;
}

/** The rounds that are there, and their numbers; less than all while a reply grows or is replayed. */
export interface Counted {
  rounds: readonly Round[];
  statistics: Statistics;
}

/** Null where neither has anything to count. A reply from elsewhere has no rounds. */
export function shownOf(counted: Counted | null, summary: Summary | null): Shown | null {
  if (counted && counted.statistics.rounds > 0) return shownOfTrace(counted, summary);
  if (!summary || summary.tokens === 0) return null;
  return {
    statistics: statisticsOfSummary(summary),
    rate: summary.tokens_per_second,
    whole: true,
  };
}

function shownOfTrace({ rounds, statistics }: Counted, summary: Summary | null): Shown {
  const whole = summary?.rounds === statistics.rounds;
  const [first, last] = [rounds[0], rounds[statistics.rounds - 1]];
  const later = first && last ? last.at_ms - first.at_ms : 0;
  const mean = first ? meanRate(statistics.tokens - emitted(first), later) : null;
  return { statistics, rate: whole ? mean : statistics.tokensPerSecond, whole };
}

function statisticsOfSummary(summary: Summary): Statistics {
  return {
    rounds: summary.rounds,
    tokens: summary.tokens,
    drafted: summary.drafted,
    judged: summary.judged,
    accepted: summary.accepted,
    acceptanceRate: summary.acceptance_rate,
    tokensPerRound: summary.rounds === 0 ? null : summary.tokens_per_round,
    tokensPerSecond: summary.tokens_per_second,
    ttftMs: summary.ttft_ms,
    tokenMs: null,
    times: summary.times,
    byPosition: [],
    expertsRead: null,
    decision: null,
  };
}
