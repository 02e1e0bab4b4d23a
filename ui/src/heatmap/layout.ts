/**
 * Where things are in the heatmap: pure geometry, in CSS pixels. A column is a round, a row a
 * position in the draft, counted from the bottom. Where in its column a token stands is for
 * spots.ts to say.
 */
import type { Spot } from "./spots";

/** Room for the row numbers on the left, and around the plot. */
export const GUTTER = 18;
export const PADDING = 6;

export const COLUMN_WIDTH = 10.5;
export const WIDEST_COLUMN = 28;
/** Below this width a column has no room for marks, only for colour. */
export const MARKS_WIDTH = 5;

/** Rows shown at the least. */
const FEWEST_ROWS = 5;
const TALLEST_ROW = 27;
const TALLEST_PLOT = 208;

export interface View {
  /** Size of the canvas. */
  width: number;
  height: number;
  rounds: number;
  /** Most rows any round fills. */
  tallest: number;
  columnWidth: number;
  /** Column at the right edge of the plot; whole and fractional. Kept at `rounds` while following. */
  right: number;
}

export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

export function plotWidth(view: View): number {
  return Math.max(1, view.width - GUTTER - PADDING);
}

/** Columns that fit beside each other, at least one. */
export function capacity(view: View): number {
  return Math.max(1, plotWidth(view) / view.columnWidth);
}

export function rowCount({ tallest }: Pick<View, "tallest">): number {
  return Math.max(FEWEST_ROWS, tallest);
}

/** Height of the canvas: short drafts need little, long ones get lower rows. */
export function heightFor(tallest: number): number {
  return Math.min(TALLEST_PLOT, 2 * PADDING + rowCount({ tallest }) * TALLEST_ROW);
}

export function rowHeight(view: View): number {
  return (view.height - 2 * PADDING) / rowCount(view);
}

/** The narrowest useful column: the one at which the whole reply fits. */
export function narrowestColumn(view: View): number {
  return Math.min(COLUMN_WIDTH, plotWidth(view) / Math.max(1, view.rounds));
}

/** The same view with its right edge and column width inside what makes sense. */
export function clamp(view: View): View {
  const columnWidth = Math.min(WIDEST_COLUMN, Math.max(narrowestColumn(view), view.columnWidth));
  const fit = capacity({ ...view, columnWidth });
  const right = Math.min(Math.max(view.right, Math.min(fit, view.rounds)), view.rounds);
  return { ...view, columnWidth, right };
}

/** Column at the left edge of the plot, a whole one while following; a reply that fits starts there. */
export function leftColumn(view: View): number {
  const left = Math.max(0, view.right - capacity(view));
  return follows(view) ? Math.max(0, Math.ceil(left - 1e-6)) : left;
}

/** Rounds that are at least partly in view: `first` to `last`, the latter excluded. */
export function visibleRounds(view: View): { first: number; last: number } {
  const left = leftColumn(view);
  return {
    first: Math.floor(left),
    last: Math.min(view.rounds, Math.ceil(left + capacity(view))),
  };
}

export function follows(view: View): boolean {
  return view.right >= view.rounds - 0.5;
}

export function columnX(view: View, round: number): number {
  return GUTTER + (round - leftColumn(view)) * view.columnWidth;
}

export function cellRect(view: View, round: number, { row, from, to }: Spot): Rect {
  const height = rowHeight(view);
  return {
    x: columnX(view, round) + from * view.columnWidth,
    y: view.height - PADDING - (row + 1) * height,
    width: (to - from) * view.columnWidth,
    height,
  };
}

/** A point of the plot as round, row, and share of the column's width. */
export interface Point {
  round: number;
  row: number;
  across: number;
}

/** What lies under a point, or null beside the plot; whether a token is there is not asked. */
export function pointAt(view: View, x: number, y: number): Point | null {
  if (x < GUTTER || x > view.width - PADDING) return null;
  const column = leftColumn(view) + (x - GUTTER) / view.columnWidth;
  const round = Math.floor(column);
  const row = Math.floor((view.height - PADDING - y) / rowHeight(view));
  if (round < 0 || round >= view.rounds || row < 0 || row >= rowCount(view)) return null;
  return { round, row, across: column - round };
}

/** Wider or narrower columns; the round under `anchorX` stays where it is, the newest if followed. */
export function zoom(view: View, factor: number, anchorX: number): View {
  const following = follows(view);
  const anchor = leftColumn(view) + (anchorX - GUTTER) / view.columnWidth;
  const zoomed = clamp({ ...view, columnWidth: view.columnWidth * factor });
  if (following) return clamp({ ...zoomed, right: view.rounds });
  const left = anchor - (anchorX - GUTTER) / zoomed.columnWidth;
  return clamp({ ...zoomed, right: left + capacity(zoomed) });
}

/** Moves the window over the rounds by a number of columns; positive towards the newest. */
export function scroll(view: View, columns: number): View {
  return clamp({ ...view, right: view.right + columns });
}

/** The whole reply. */
export function fit(view: View): View {
  return clamp({ ...view, columnWidth: narrowestColumn(view), right: view.rounds });
}

/** More or other rounds; a view that showed the newest one goes on showing it. */
export function withRounds(view: View, rounds: number, tallest: number): View {
  const right = follows(view) ? rounds : view.right;
  return clamp({ ...view, rounds, tallest, height: heightFor(tallest), right });
}

/** The nearest view that shows a round. */
export function reveal(view: View, round: number): View {
  const left = leftColumn(view);
  if (round < left) return clamp({ ...view, right: round + capacity(view) });
  if (round + 1 > left + capacity(view)) return clamp({ ...view, right: round + 1 });
  return view;
}
