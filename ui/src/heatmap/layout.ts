/**
 * Geometry of the heatmap, in CSS pixels. A column is a round, a row a position in the draft,
 * counted from the bottom. One column can be opened, wide enough for the branches of its tree.
 * Positions within a column are in spots.ts.
 */
import type { Spot } from "./spots";

/** Width of the row numbers on the left, and padding around the plot. */
export const GUTTER = 18;
export const PADDING = 6;

export const COLUMN_WIDTH = 10;
/** Smallest width of a column with marks; narrower ones have colours only. */
export const MARKS_WIDTH = 5;
/** Width of a branch in an opened tree. */
export const LANE_WIDTH = 18;

/** Fixed height of the canvas: nothing below it moves while drafts grow. */
export const HEIGHT = 160;

/** Smallest number of rows. */
const FEWEST_ROWS = 5;
/** Largest share of the plot for an opened column. */
const OPENED_SHARE = 0.8;

export interface View {
  /** Size of the canvas. */
  width: number;
  height: number;
  rounds: number;
  /** Most rows of any round; fractional while the scale eases. */
  tallest: number;
  /** Width of a column: whole pixels, or one pixel for a whole number of rounds. */
  columnWidth: number;
  /** Column at the right edge of the plot, fractional; equals `rounds` while following. */
  right: number;
  /** The opened round, and the number of branches beside each other in it. */
  opened: { round: number; lanes: number } | null;
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

export function rowCount({ tallest }: Pick<View, "tallest">): number {
  return Math.max(FEWEST_ROWS, tallest);
}

/** Smallest decrease of the scale: it would change with every round otherwise. */
const FEWEST_LESS = 3;

/** Number of rows for the scale, from the rounds in view; `rows` has the rows of each round. */
export function scaleFor(view: View, rows: readonly number[]): number {
  const { first, last } = visibleRounds(view);
  let tallest = 0;
  for (let round = first; round < last; round += 1) tallest = Math.max(tallest, rows[round] ?? 0);
  const [wanted, now] = [rowCount({ tallest }), rowCount(view)];
  return wanted > now || wanted <= now - FEWEST_LESS ? wanted : now;
}

export function rowHeight(view: View): number {
  return (view.height - 2 * PADDING) / rowCount(view);
}

export function rowY(view: View, row: number): number {
  return view.height - PADDING - (row + 1) * rowHeight(view);
}

/** Widest column: one round fills the plot. */
export function widestColumn(view: View): number {
  return Math.max(COLUMN_WIDTH, Math.floor(plotWidth(view)));
}

/** Narrowest column: the whole reply fits. */
function narrowestColumn(view: View): number {
  return Math.min(COLUMN_WIDTH, wholeWidth(plotWidth(view) / Math.max(1, view.rounds)));
}

/** The next narrower width at which columns end on pixels, or pixels on columns. */
function wholeWidth(width: number): number {
  return width >= 1 ? Math.floor(width + 1e-6) : 1 / Math.ceil(1 / width - 1e-6);
}

/** The view with its right edge and column width limited to valid values. */
export function clamp(view: View): View {
  const columnWidth = Math.min(
    widestColumn(view),
    Math.max(narrowestColumn(view), wholeWidth(view.columnWidth)),
  );
  const clamped = { ...view, columnWidth };
  const filled = columnAt(clamped, plotWidth(view));
  clamped.right = Math.min(Math.max(view.right, Math.min(filled, view.rounds)), view.rounds);
  return clamped;
}

export function widthOf(view: View, round: number): number {
  const { opened, columnWidth } = view;
  if (opened?.round !== round || columnWidth < 1) return columnWidth;
  const most = Math.floor(OPENED_SHARE * plotWidth(view));
  return Math.max(columnWidth, Math.min(most, opened.lanes * LANE_WIDTH));
}

/** Pixels from the left edge of the first column to a position in columns. */
function distanceTo(view: View, column: number): number {
  const distance = column * view.columnWidth;
  if (!view.opened || column <= view.opened.round) return distance;
  const more = widthOf(view, view.opened.round) - view.columnWidth;
  return distance + more * Math.min(1, column - view.opened.round);
}

/** Position in columns at a distance in pixels from the left edge of the first column. */
function columnAt(view: View, distance: number): number {
  const column = distance / view.columnWidth;
  if (!view.opened || column <= view.opened.round) return column;
  const width = widthOf(view, view.opened.round);
  const into = distance - view.opened.round * view.columnWidth;
  if (into <= width) return view.opened.round + into / width;
  return view.opened.round + 1 + (into - width) / view.columnWidth;
}

/**
 * Whole pixels of columns hidden left of the plot; negative while the columns do not fill it and
 * stand at its right. While following, the leftmost column is a whole one, so that the painting
 * moves by whole columns.
 */
export function offset(view: View): number {
  const hidden = distanceTo(view, view.right) - plotWidth(view);
  if (hidden <= 0) return Math.ceil(hidden - 1e-6) + 0;
  const pixel = Math.ceil(hidden - 1e-6);
  if (!follows(view) || view.columnWidth < 1) return pixel;
  const column = Math.ceil(columnAt(view, hidden) - 1e-6);
  return view.opened?.round === column - 1 ? pixel : distanceTo(view, column);
}

export function leftColumn(view: View): number {
  return columnAt(view, offset(view));
}

/** Number of columns that fit in the plot; at least one. */
export function capacity(view: View): number {
  return Math.max(1, columnAt(view, offset(view) + plotWidth(view)) - leftColumn(view));
}

/** Rounds at least partly in view: `first` inclusive, `last` exclusive. */
export function visibleRounds(view: View): { first: number; last: number } {
  const end = columnAt(view, offset(view) + plotWidth(view));
  return {
    first: Math.max(0, Math.floor(leftColumn(view) + 1e-9)),
    last: Math.min(view.rounds, Math.ceil(end - 1e-9)),
  };
}

export function follows(view: View): boolean {
  return view.right >= view.rounds - 0.5;
}

/** Whether the view was zoomed out to the whole reply. */
function showsAll(view: View): boolean {
  return view.columnWidth < COLUMN_WIDTH && view.columnWidth === narrowestColumn(view);
}

export function columnX(view: View, round: number): number {
  return GUTTER + distanceTo(view, round) - offset(view);
}

export function cellRect(view: View, round: number, { row, from, to, low, high }: Spot): Rect {
  const height = rowHeight(view);
  const width = widthOf(view, round);
  return {
    x: columnX(view, round) + from * width,
    y: rowY(view, row) + (1 - high) * height,
    width: (to - from) * width,
    height: (high - low) * height,
  };
}

/** A point of the plot as round, row, share of the column's width, share of the row's height. */
export interface Point {
  round: number;
  row: number;
  across: number;
  up: number;
}

/** The point of the plot at canvas coordinates, or null outside. May have no token. */
export function pointAt(view: View, x: number, y: number): Point | null {
  if (x < GUTTER || x > view.width - PADDING) return null;
  const column = columnAt(view, offset(view) + x - GUTTER);
  const rows = (view.height - PADDING - y) / rowHeight(view);
  const [round, row] = [Math.floor(column), Math.floor(rows)];
  if (round < 0 || round >= view.rounds || row < 0 || row >= rowCount(view)) return null;
  return { round, row, across: column - round, up: rows - row };
}

/** The view with its left edge at a distance in pixels from the first column. */
function from(view: View, left: number): View {
  return clamp({ ...view, right: columnAt(view, left + plotWidth(view)) });
}

/**
 * Scales the columns' width; the round under `anchorX` stays in place, the newest while following.
 */
export function zoom(view: View, factor: number, anchorX: number): View {
  const anchor = columnAt(view, offset(view) + anchorX - GUTTER);
  const zoomed = clamp({ ...view, columnWidth: stepped(view.columnWidth, factor) });
  if (follows(view)) return clamp({ ...zoomed, right: view.rounds });
  return from(zoomed, distanceTo(zoomed, anchor) - (anchorX - GUTTER));
}

/** The width times `factor`, changed by at least the smallest step. */
function stepped(width: number, factor: number): number {
  const wanted = width * factor;
  if (width >= 1 && factor > 1) return Math.max(width + 1, Math.round(wanted));
  if (width > 1) return wanted < 1 ? wanted : Math.min(width - 1, Math.round(wanted));
  const rounds = Math.round(1 / width);
  if (factor > 1) return 1 / Math.max(1, Math.min(rounds - 1, Math.round(1 / wanted)));
  return 1 / Math.max(rounds + 1, Math.round(1 / wanted));
}

/** Scrolls by a number of columns; positive towards the newest. */
export function scroll(view: View, columns: number): View {
  return clamp({ ...view, right: view.right + columns });
}

/** Zooms out to the whole reply. */
export function fit(view: View): View {
  return clamp({ ...view, columnWidth: narrowestColumn(view), right: view.rounds, opened: null });
}

/** Zooms in to one round. */
export function only(view: View, round: number): View {
  const zoomed = clamp({ ...view, columnWidth: widestColumn(view) });
  return clamp({ ...zoomed, right: round + 1 });
}

/**
 * Replaces the rounds. A view of the newest round keeps following, and a view of the whole reply
 * keeps showing all of it.
 */
export function withRounds(view: View, rounds: number, tallest: number): View {
  const right = follows(view) ? rounds : view.right;
  const grown = { ...view, rounds, tallest, right };
  return clamp(showsAll(view) ? { ...grown, columnWidth: narrowestColumn(grown) } : grown);
}

/** Scrolls as little as possible to show a round. */
export function reveal(view: View, round: number): View {
  const [begin, end] = [distanceTo(view, round), distanceTo(view, round + 1)];
  const left = offset(view);
  if (begin < left - 1e-6) return from(view, begin);
  if (end > left + plotWidth(view)) return clamp({ ...view, right: round + 1 });
  return view;
}

/** Opens the column of a round, or closes the opened one for null. */
export function open(view: View, opened: View["opened"]): View {
  return clamp({ ...view, opened: opened && opened.lanes > 1 ? opened : null });
}
