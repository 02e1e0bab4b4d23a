/** Numbers of one reply in the inspector: from its trace, or from its summary without rounds. */
import type { Summary } from "../bindings/Summary";
import type { Round } from "../bindings/Round";
import { t } from "../messages/say";
import { emitted } from "./round";
import { meanRate, type Statistics } from "./statistics";

export interface ReplyNumbers {
  /** Without percentiles and positions if there is only the summary. */
  statistics: Statistics;
  /** Tokens per second: over the window while the reply grows, over all of it once complete. */
  rate: number | null;
  isComplete: boolean;
}

/** Available rounds and their numbers; incomplete while a reply grows or is replayed. */
export interface TraceNumbers {
  rounds: readonly Round[];
  statistics: Statistics;
}

/** The numbers of a reply; null if there is nothing to count. A remote reply has no rounds. */
export function replyNumbers(
  counted: TraceNumbers | null,
  summary: Summary | null,
): ReplyNumbers | null {
  if (counted && counted.statistics.rounds > 0) return traceNumbers(counted, summary);
  if (!summary || summary.tokens === 0) return null;
  return {
    statistics: statisticsOfSummary(summary),
    rate: summary.tokens_per_second,
    isComplete: true,
  };
}

/** Sentence about a context that came from the disk; empty if none did. */
export function restoredWords(summary: Summary | null | undefined): string {
  const tokens = summary?.restored_tokens ?? 0;
  return tokens > 0 ? t("reply.restored", { tokens }) : "";
}

function traceNumbers({ rounds, statistics }: TraceNumbers, summary: Summary | null): ReplyNumbers {
  const isComplete = summary?.rounds === statistics.rounds;
  const [first, last] = [rounds[0], rounds[statistics.rounds - 1]];
  const later = first && last ? last.at_ms - first.at_ms : 0;
  const mean = first ? meanRate(statistics.tokens - emitted(first), later) : null;
  return { statistics, rate: isComplete ? mean : statistics.tokensPerSecond, isComplete };
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
