/** Small questions about one round, shared by every fold over a trace. */
import type { Drafted } from "../bindings/Drafted";
import type { Extra } from "../bindings/Extra";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";

/**
 * A token's place in a trace: the round, counted in the order of arrival, and the slot in it:
 * 0.. for drafted tokens in draft order, `drafted.length` for the extra token.
 */
export interface Place {
  round: number;
  slot: number;
}

export function samePlace(a: Place | null, b: Place | null): boolean {
  return a?.round === b?.round && a?.slot === b?.slot;
}

export function count(round: Round, outcome: Outcome): number {
  let found = 0;
  for (const drafted of round.drafted) if (drafted.outcome === outcome) found += 1;
  return found;
}

/** Tokens the round added to the reply. */
export function emitted(round: Round): number {
  return count(round, "accepted") + (round.extra ? 1 : 0);
}

/** The token at a slot, or null where the round has none. */
export function tokenAt(
  round: Round | undefined,
  slot: number,
): { drafted: Drafted } | { extra: Extra } | null {
  if (!round) return null;
  const drafted = round.drafted[slot];
  if (drafted) return { drafted };
  return slot === round.drafted.length && round.extra ? { extra: round.extra } : null;
}
