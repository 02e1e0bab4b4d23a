/** The numbers of a whole conversation: sums over its replies, stored ones and the one under way. */
import type { Message } from "../bindings/Message";
import type { Round } from "../bindings/Round";
import { paceOfSummary, paceOfTrace, savingOf, type Pace, type Saving } from "./savings";
import type { Statistics } from "./statistics";

/** A reply that is being written. */
export interface Live {
  message: number;
  rounds: readonly Round[];
  statistics: Statistics;
}

export interface Totals {
  replies: number;
  tokens: number;
  judged: number;
  accepted: number;
  /** accepted / judged; null when nothing was judged. */
  acceptanceRate: number | null;
  /** Null where no reply can be compared with plain decoding. */
  saving: Saving | null;
}

export function totalsOf(messages: readonly Message[], live: Live | null): Totals {
  const totals = { replies: 0, tokens: 0, judged: 0, accepted: 0 };
  const paces: (Pace | null)[] = [];
  for (const { id, summary } of messages) {
    const underWay = live?.message === id ? live : null;
    const counted = underWay?.statistics ?? summary;
    if (!counted || counted.rounds === 0) continue;
    totals.replies += 1;
    totals.tokens += counted.tokens;
    totals.judged += counted.judged;
    totals.accepted += counted.accepted;
    if (underWay) paces.push(paceOfTrace(underWay.rounds, underWay.statistics));
    else if (summary) paces.push(paceOfSummary(summary));
  }
  return {
    ...totals,
    acceptanceRate: totals.judged > 0 ? totals.accepted / totals.judged : null,
    saving: savingOf(paces),
  };
}
