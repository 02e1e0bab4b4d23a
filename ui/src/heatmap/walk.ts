/** Navigation with arrow keys: along a row, across rounds, up and down a draft. */
import type { Round } from "../bindings/Round";
import type { TokenRef } from "../trace/round";
import { rowsOfSlots } from "./spots";

/** The token nearest to a row and a branch of a round; null in a round without tokens. */
export function nearest(
  rounds: readonly Round[],
  round: number,
  row: number,
  lane: number,
): TokenRef | null {
  const at = Math.max(0, Math.min(rounds.length - 1, round));
  const held = rounds[at];
  if (!held) return null;
  const rows = rowsOfSlots(held);
  const slots = rows[Math.max(0, Math.min(rows.length - 1, row))] ?? [];
  const slot = slots[Math.max(0, Math.min(slots.length - 1, lane))];
  return slot === undefined ? null : { round: at, slot };
}

/** The next sibling of a token, or the token in its row of the next round that has one. */
export function beside(rounds: readonly Round[], from: TokenRef, step: 1 | -1): TokenRef | null {
  const here = stand(rounds, from);
  if (!here) return null;
  const slot = here.slots[here.lane + step];
  if (slot !== undefined) return { round: from.round, slot };
  for (let round = from.round + step; round >= 0 && round < rounds.length; round += step) {
    const found = nearest(rounds, round, here.row, step > 0 ? 0 : Infinity);
    if (found) return found;
  }
  return from;
}

/** The token above or below another in its round. */
export function above(rounds: readonly Round[], from: TokenRef, step: 1 | -1): TokenRef | null {
  const here = stand(rounds, from);
  return here && nearest(rounds, from.round, here.row + step, here.lane);
}

function stand(rounds: readonly Round[], { round, slot }: TokenRef) {
  const held = rounds[round];
  if (!held) return null;
  const rows = rowsOfSlots(held);
  const row = rows.findIndex((slots) => slots.includes(slot));
  const slots = rows[row];
  return slots ? { row, slots, lane: slots.indexOf(slot) } : null;
}
