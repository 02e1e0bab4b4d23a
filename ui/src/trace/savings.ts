/**
 * What drafting saved or lost: the time a reply's tokens took, against what plain decoding would have
 * taken for them on this device, by its measured speed. The first round is left out: its time is the
 * prompt's, which plain decoding reads as well.
 */
import type { Speedup } from "../bindings/Speedup";
import type { Summary } from "../bindings/Summary";
import { duration } from "./describe";
import { emitted } from "./round";
import type { Round } from "../bindings/Round";
import type { Statistics } from "./statistics";
import { t } from "../messages/say";
import { decimal } from "../messages/numbers";

/** How fast a reply was written, and how fast plain decoding is. */
export interface Pace {
  /** Emitted after the first round. */
  tokens: number;
  /** What they took. */
  ms: number;
  /** Tokens a second without drafts; null where it was never measured. */
  plain: number | null;
  /** Whether anything was drafted: without drafts a reply is plain decoding itself. */
  drafted: boolean;
}

export interface Saving {
  /** Saved; negative where time was lost. */
  ms: number;
  /** Speed against plain decoding's. */
  speedup: number;
  /** Tokens a second of plain decoding; over several replies, of all their tokens. */
  plain: number;
}

/** The pace of the rounds that were counted; null before a second one. */
export function paceOfTrace(rounds: readonly Round[], statistics: Statistics): Pace | null {
  const first = rounds[0];
  const last = rounds[statistics.rounds - 1];
  if (!first || !last || last === first) return null;
  return {
    tokens: statistics.tokens - emitted(first),
    ms: last.at_ms - first.at_ms,
    plain: statistics.decision?.tokens_per_second[0] ?? null,
    drafted: statistics.drafted > 0,
  };
}

/** The pace of a stored reply; null where it ended with its first round. */
export function paceOfSummary(summary: Summary): Pace | null {
  const ms = summary.elapsed_ms - summary.ttft_ms;
  if (summary.tokens_per_second === null || ms <= 0) return null;
  return {
    tokens: (summary.tokens_per_second * ms) / 1000,
    ms,
    plain: summary.plain_tokens_per_second,
    drafted: summary.drafted > 0,
  };
}

/** What was saved over some replies together; null where none of them can be compared. */
export function savingOf(paces: readonly (Pace | null)[]): Saving | null {
  const found = comparedOf(paces);
  if (!found) return null;
  const { tokens, ms, plainMs } = found;
  return { ms: plainMs - ms, speedup: plainMs / ms, plain: (tokens * 1000) / plainMs };
}

/** Speed-up of a reply over plain decoding, from the paces of its parts. */
export function speedupOfPaces(paces: readonly (Pace | null)[]): Speedup | null {
  const found = comparedOf(paces);
  if (!found) return null;
  const { ms, plainMs } = found;
  return {
    factor: plainMs / ms,
    saved_ms: plainMs - ms,
    plain_ms: plainMs,
    elapsed_ms: ms,
    replies: 1,
  };
}

function comparedOf(paces: readonly (Pace | null)[]) {
  let [tokens, ms, plainMs] = [0, 0, 0];
  for (const pace of paces) {
    if (!pace?.drafted || pace.plain === null || pace.plain <= 0) continue;
    if (pace.ms <= 0 || pace.tokens <= 0) continue;
    tokens += pace.tokens;
    ms += pace.ms;
    plainMs += (pace.tokens * 1000) / pace.plain;
  }
  return plainMs === 0 ? null : { tokens, ms, plainMs };
}

/** "2.1x"; two decimals near 1, where they decide. */
export function times(ratio: number): string {
  return `${decimal(ratio, ratio >= 0.905 && ratio < 1.095 ? 2 : 1)}x`;
}

/** "+2.4 s", "−0.3 s": a minus sign, not a hyphen. */
export function signed(ms: number): string {
  return `${ms < 0 ? "−" : "+"}${duration(Math.abs(ms))}`;
}

/** "2.4 s saved, 1.7x the speed without drafts", "0.3 s lost, 0.9x the speed without drafts". */
export function savingWords({ ms, speedup }: Saving): string {
  if (speedup >= 0.995 && speedup < 1.005) return t("trace.asFast");
  const given = { time: duration(Math.abs(ms)), speedup: times(speedup) };
  return t(ms < 0 ? "trace.lost" : "trace.saved", given);
}
