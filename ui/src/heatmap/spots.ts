/**
 * Positions of tokens in their round's column, as rows and shares of its width and the row's
 * height. The row is the depth in the draft. In a wide column the tokens of a tree stand beside
 * each other as branches. In a narrow one the accepted path takes most of the width, and the other
 * tokens are ticks at its right. The extra token stands on top.
 */
import type { Round } from "../bindings/Round";
import { depthsOf, parentsOf } from "../trace/tree";

export interface Spot {
  /** Row, counted from the bottom. */
  row: number;
  /** Left and right edge, as shares of the column's width. */
  from: number;
  to: number;
  /** Lower and upper edge, as shares of the row's height. */
  low: number;
  high: number;
}

/** Smallest width of a branch, in CSS pixels; narrower ones are ticks. */
const NARROWEST_LANE = 8;
/** Share of a narrow column for the accepted path, beside its siblings. */
const PATH_SHARE = 0.65;

/** Slots by row; each row begins with the accepted path, or else the first drafted. */
export function rowsOfSlots(round: Round): number[][] {
  const parents = parentsOf(round);
  const rows: number[][] = [];
  depthsOf(round).forEach((depth, slot) => (rows[depth] ??= []).push(slot));
  const accepted = (slot: number) => Number(round.drafted[slot]?.outcome === "accepted");
  rows.forEach((slots, row) => {
    const below = rows[row - 1] ?? [];
    const order = (slot: number) => below.indexOf(parents[slot] ?? -1);
    if (slots.length > 1) slots.sort((a, b) => accepted(b) - accepted(a) || order(a) - order(b));
  });
  if (round.extra) rows.push([round.drafted.length]);
  return rows;
}

/** Largest number of siblings in a row. */
export function lanesOf(round: Round): number {
  return rowsOfSlots(round).reduce((most, slots) => Math.max(most, slots.length), 1);
}

/** Whether a column of this width shows a tree as branches. */
export function hasBranches(lanes: number, columnWidth: number): boolean {
  return lanes > 1 && columnWidth >= lanes * NARROWEST_LANE;
}

/** Spots by slot, for a column of this width in CSS pixels. */
export function spotsOf(round: Round, columnWidth: number): Spot[] {
  const rows = rowsOfSlots(round);
  const lanes = rows.reduce((most, slots) => Math.max(most, slots.length), 1);
  const branches = hasBranches(lanes, columnWidth);
  const spots: Spot[] = [];
  rows.forEach((slots, row) => {
    slots.forEach((slot, lane) => {
      spots[slot] = branches
        ? { row, from: lane / lanes, to: (lane + 1) / lanes, low: 0, high: 1 }
        : narrow(row, lane, slots.length);
    });
  });
  return spots;
}

function narrow(row: number, lane: number, siblings: number): Spot {
  if (siblings === 1) return { row, from: 0, to: 1, low: 0, high: 1 };
  if (lane === 0) return { row, from: 0, to: PATH_SHARE, low: 0, high: 1 };
  const ticks = siblings - 1;
  return { row, from: PATH_SHARE, to: 1, low: (lane - 1) / ticks, high: lane / ticks };
}

/** The slot at a row and at shares of the column's width and the row's height, or null. */
export function slotAt(
  spots: readonly Spot[],
  row: number,
  across: number,
  up: number,
): number | null {
  const within = (at: number, from: number, to: number) => from <= at && (at < to || to === 1);
  const found = spots.findIndex(
    (spot) =>
      spot.row === row && within(across, spot.from, spot.to) && within(up, spot.low, spot.high),
  );
  return found < 0 ? null : found;
}
