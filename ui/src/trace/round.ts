/** Helpers for a single round, shared by all computations on a trace. */
import type { Drafted } from "../bindings/Drafted";
import type { Extra } from "../bindings/Extra";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";

/**
 * A token of a trace: the index of its round in order of arrival, and its slot. Slots from 0 are
 * draft tokens in draft order; `drafted.length` is the extra token.
 */
export interface TokenRef {
  round: number;
  slot: number;
}

export function sameToken(a: TokenRef | null, b: TokenRef | null): boolean {
  return a?.round === b?.round && a?.slot === b?.slot;
}

export function count(round: Round, outcome: Outcome): number {
  let found = 0;
  for (const drafted of round.drafted) if (drafted.outcome === outcome) found += 1;
  return found;
}

/** Number of tokens a round adds to the reply. */
export function emitted(round: Round): number {
  return count(round, "accepted") + (round.extra ? 1 : 0);
}

/** The token at a slot, or null if there is none. */
export function tokenAt(
  round: Round | undefined,
  slot: number,
): { drafted: Drafted } | { extra: Extra } | null {
  if (!round) return null;
  const drafted = round.drafted[slot];
  if (drafted) return { drafted };
  return slot === round.drafted.length && round.extra ? { extra: round.extra } : null;
}
