/** Totals of a conversation over its replies, stored ones and the one under way. */
import type { Message } from "../bindings/Message";
import type { Statistics } from "./statistics";

/** A reply that is being written. */
export interface Live {
  message: number;
  statistics: Statistics;
}

export interface Totals {
  /** Number of replies; the parts of a continued one count once. */
  replies: number;
  tokens: number;
  judged: number;
  accepted: number;
  /** accepted / judged; null when nothing was judged. */
  acceptanceRate: number | null;
}

export function totalsOf(messages: readonly Message[], live: Live | null): Totals {
  const totals = { replies: 0, tokens: 0, judged: 0, accepted: 0 };
  const replies = new Set<number>();
  for (const { id, parent, summary } of messages) {
    const underWay = live?.message === id ? live : null;
    const counted = underWay?.statistics ?? summary;
    if (!counted || counted.rounds === 0) continue;
    const continues = parent !== null && replies.has(parent);
    replies.add(id);
    if (!continues) totals.replies += 1;
    totals.tokens += counted.tokens;
    totals.judged += counted.judged;
    totals.accepted += counted.accepted;
  }
  return {
    ...totals,
    acceptanceRate: totals.judged > 0 ? totals.accepted / totals.judged : null,
  };
}
