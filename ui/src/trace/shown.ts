/**
 * The numbers the inspector shows of one reply: those of its trace, or of its summary where the rounds
 * are not there.
 */
import type { Summary } from "../bindings/Summary";
import type { Round } from "../bindings/Round";
import { paceOfSummary, paceOfTrace, savingOf, type Saving } from "./savings";
import { meanRate, type Statistics } from "./statistics";

export interface Shown {
  /** Without percentiles and positions where only the summary is there. */
  statistics: Statistics;
  /** Tokens a second: over the window while the reply grows, over all of it once it is whole. */
  rate: number | null;
  whole: boolean;
  /** Tokens a second of plain decoding on this device; null where it was never measured. */
  plain: number | null;
  saving: Saving | null;
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
    plain: summary.plain_tokens_per_second,
    saving: savingOf([paceOfSummary(summary)]),
  };
}

function shownOfTrace({ rounds, statistics }: Counted, summary: Summary | null): Shown {
  const whole = summary?.rounds === statistics.rounds;
  const pace = paceOfTrace(rounds, statistics);
  const plain = pace?.plain ?? summary?.plain_tokens_per_second ?? null;
  const mean = pace && meanRate(pace.tokens, pace.ms);
  return {
    statistics,
    rate: whole ? mean : statistics.tokensPerSecond,
    whole,
    plain,
    saving: savingOf([pace && { ...pace, plain }]),
  };
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
