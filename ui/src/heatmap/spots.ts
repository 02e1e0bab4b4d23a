/**
 * Where tokens stand in their round's column, in rows and shares of its width: the row is the depth
 * in the draft, and guesses of the same depth share the row. The extra token stands on top.
 */
import type { Round } from "../bindings/Round";
import type { Place } from "../trace/round";
import { depthsOf } from "../trace/tree";

export interface Spot {
  /** From the bottom. */
  row: number;
  /** Left and right edge, 0..=1 of the column. */
  from: number;
  to: number;
}

/** The accepted guess, or else the first, is so many times as wide as another of its row. */
const FIRST_WIDTH = 2;

/** By slot. */
export function spotsOf(round: Round): Spot[] {
  const rows: number[][] = [];
  depthsOf(round).forEach((depth, slot) => (rows[depth] ??= []).push(slot));
  const spots: Spot[] = [];
  rows.forEach((slots, row) => {
    const accepted = (slot: number) => Number(round.drafted[slot]?.outcome === "accepted");
    const whole = slots.length - 1 + FIRST_WIDTH;
    let at = 0;
    for (const slot of slots.toSorted((a, b) => accepted(b) - accepted(a))) {
      const width = at === 0 ? FIRST_WIDTH : 1;
      spots[slot] = { row, from: at / whole, to: (at + width) / whole };
      at += width;
    }
  });
  if (round.extra) spots[round.drafted.length] = { row: rows.length, from: 0, to: 1 };
  return spots;
}

/** The slot at a row and a share of the column's width, or null where no token stands. */
export function slotAt(spots: readonly Spot[], row: number, across: number): number | null {
  const found = spots.findIndex(
    (spot) => spot.row === row && spot.from <= across && (across < spot.to || spot.to === 1),
  );
  return found < 0 ? null : found;
}

/** The token nearest to a row of a round, or null in a round without tokens. */
export function nearest(
  rounds: readonly Round[],
  round: number,
  row: number,
  across: number,
): Place | null {
  const at = Math.max(0, Math.min(rounds.length - 1, round));
  const held = rounds[at];
  if (!held) return null;
  const spots = spotsOf(held);
  const top = Math.max(0, ...spots.map((spot) => spot.row));
  const slot = slotAt(spots, Math.max(0, Math.min(top, row)), across);
  return slot === null ? null : { round: at, slot };
}

/** Beside a token: the next guess of its row, or the token of that row in the next round. */
export function beside(rounds: readonly Round[], from: Place, step: 1 | -1): Place | null {
  const held = rounds[from.round];
  if (!held) return null;
  const spots = spotsOf(held);
  const here = spots[from.slot];
  if (!here) return null;
  const edge = step > 0 ? here.to : here.from;
  const slot = spots.findIndex(
    (spot) => spot.row === here.row && (step > 0 ? spot.from : spot.to) === edge,
  );
  if (slot >= 0) return { round: from.round, slot };
  const round = from.round + step;
  if (round < 0 || round >= rounds.length) return from;
  return nearest(rounds, round, here.row, step > 0 ? 0 : 1);
}

/** Above or below a token in its round. */
export function above(rounds: readonly Round[], from: Place, step: 1 | -1): Place | null {
  const held = rounds[from.round];
  const here = held && spotsOf(held)[from.slot];
  return here ? nearest(rounds, from.round, here.row + step, here.from) : null;
}
