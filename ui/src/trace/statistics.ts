/**
 * The numbers of a reply: folds over its rounds. Rates are over time, never over one round: accepted
 * tokens arrive in bursts, and a burst has no rate.
 */
import type { Decision } from "../bindings/Decision";
import type { Round } from "../bindings/Round";
import type { Times } from "../bindings/Times";
import { count, emitted } from "./round";
import { depthsOf } from "./tree";

/** Width of the sliding window for tokens per second. */
export const RATE_WINDOW_MS = 2000;

/** Several guesses for one place count once: at most one of them can be accepted. */
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
  /** Over the last {@link RATE_WINDOW_MS}; null before a second round gives it a duration. */
  tokensPerSecond: number | null;
  /** Time to the end of the first round; null without rounds. */
  ttftMs: number | null;
  /** Milliseconds a token took after the first round, median and 95th percentile. */
  tokenMs: { p50: number; p95: number } | null;
  times: Times;
  /** Places that were judged, and those whose token was drafted, by position in the draft. */
  byPosition: Position[];
  /** The governor's last; null where the draft length was never its choice. */
  decision: Decision | null;
}

export function statisticsOf(rounds: readonly Round[]): Statistics {
  const times: Times = { draft_ms: 0, verify_ms: 0, sample_ms: 0, rest_ms: 0 };
  const byPosition: Position[] = [];
  let decision: Decision | null = null;
  let [tokens, drafted, judged, accepted] = [0, 0, 0, 0];
  for (const round of rounds) {
    tokens += emitted(round);
    drafted += round.drafted.length;
    accepted += count(round, "accepted");
    judged += round.drafted.length - count(round, "discarded");
    countPositions(round, byPosition);
    decision = round.decision ?? decision;
    times.draft_ms += round.times.draft_ms;
    times.verify_ms += round.times.verify_ms;
    times.sample_ms += round.times.sample_ms;
    times.rest_ms += round.times.rest_ms;
  }
  return {
    rounds: rounds.length,
    tokens,
    drafted,
    judged,
    accepted,
    acceptanceRate: judged > 0 ? accepted / judged : null,
    tokensPerRound: rounds.length > 0 ? tokens / rounds.length : null,
    tokensPerSecond: rateOf(rounds),
    ttftMs: rounds[0]?.at_ms ?? null,
    tokenMs: tokenMsOf(rounds),
    times,
    byPosition,
    decision,
  };
}

/** Adds a round: its accepted path, and the place behind it where guesses were rejected. */
function countPositions(round: Round, byPosition: Position[]) {
  const accepted = count(round, "accepted");
  const rejected = depthsOf(round).filter((_, slot) => round.drafted[slot]?.outcome === "rejected");
  const judged = Math.max(accepted, ...rejected.map((depth) => depth + 1));
  for (let depth = 0; depth < judged; depth += 1) {
    const at = (byPosition[depth] ??= { judged: 0, accepted: 0 });
    at.judged += 1;
    if (depth < accepted) at.accepted += 1;
  }
}

/**
 * Tokens per second over the last `windowMs` of a trace. A round that the window cuts counts with
 * the share of its time that lies inside. The first round is left out: its time is the prompt's.
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

/** Each token of a round took an equal share of the round's time. */
function tokenMsOf(rounds: readonly Round[]): Statistics["tokenMs"] {
  const shares: { ms: number; tokens: number }[] = [];
  let total = 0;
  for (let i = 1; i < rounds.length; i += 1) {
    const round = rounds[i];
    const before = rounds[i - 1];
    const tokens = round ? emitted(round) : 0;
    if (!round || !before || tokens === 0) continue;
    shares.push({ ms: (round.at_ms - before.at_ms) / tokens, tokens });
    total += tokens;
  }
  if (total === 0) return null;
  shares.sort((a, b) => a.ms - b.ms);
  const percentile = (share: number) => {
    let seen = 0;
    for (const { ms, tokens } of shares) {
      seen += tokens;
      if (seen >= share * total) return ms;
    }
    return shares.at(-1)?.ms ?? 0;
  };
  return { p50: percentile(0.5), p95: percentile(0.95) };
}

/** Milliseconds the round at `index` took, by the clock of the reply. */
export function roundMs(rounds: readonly Round[], index: number): number {
  const round = rounds[index];
  if (!round) return 0;
  const { draft_ms, verify_ms, sample_ms, rest_ms } = round.times;
  return draft_ms + verify_ms + sample_ms + rest_ms;
}
