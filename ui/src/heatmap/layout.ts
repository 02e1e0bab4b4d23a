/**
 * Where things are in the heatmap: pure geometry, in CSS pixels. A column is a round, a row a
 * position in the draft, counted from the bottom. One column may be opened, wide enough for the
 * branches of its tree. Where in its column a token stands is for spots.ts to say.
 */
import type { Spot } from "./spots";

/** Room for the row numbers on the left, and around the plot. */
export const GUTTER = 18;
export const PADDING = 6;

export const COLUMN_WIDTH = 10;
/** Below this width a column has no room for marks, only for colour. */
export const MARKS_WIDTH = 5;
/** A guess of an opened tree has so much room beside its siblings. */
export const LANE_WIDTH = 18;

/** Height of the canvas, whatever a reply drafts: nothing below it moves while drafts grow. */
export const HEIGHT = 160;

/** Rows shown at the least. */
const FEWEST_ROWS = 5;
/** An opened column leaves some of the plot to its neighbours. */
const OPENED_SHARE = 0.8;

export interface View {
  /** Size of the canvas. */
  width: number;
  height: number;
  rounds: number;
  /** Most rows any round fills; between two numbers while the scale eases from one to the next. */
  tallest: number;
  /** Whole pixels a round, or one part in a whole number of rounds a pixel. */
  columnWidth: number;
  /** Column at the right edge of the plot; whole and fractional. Kept at `rounds` while following. */
  right: number;
  /** The round whose column is opened, and how many guesses stand beside each other in it. */
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

/** The scale shrinks only by so many rows and more: it would change with every round. */
const FEWEST_LESS = 3;

/** Rows that the scale shall have: those of the rounds in view, of which `rows` has the numbers. */
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

/** Top of a row. */
export function rowY(view: View, row: number): number {
  return view.height - PADDING - (row + 1) * rowHeight(view);
}

/** The widest useful column: one round fills the plot. */
export function widestColumn(view: View): number {
  return Math.max(COLUMN_WIDTH, Math.floor(plotWidth(view)));
}

/** The narrowest useful column: the one at which the whole reply fits. */
function narrowestColumn(view: View): number {
  return Math.min(COLUMN_WIDTH, wholeWidth(plotWidth(view) / Math.max(1, view.rounds)));
}

/** The nearest narrower width at which columns end on pixels, or pixels on columns. */
function wholeWidth(width: number): number {
  return width >= 1 ? Math.floor(width + 1e-6) : 1 / Math.ceil(1 / width - 1e-6);
}

/** The same view with its right edge and column width inside what makes sense. */
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

/** Width of a round's column. */
export function widthOf(view: View, round: number): number {
  const { opened, columnWidth } = view;
  if (opened?.round !== round || columnWidth < 1) return columnWidth;
  const most = Math.floor(OPENED_SHARE * plotWidth(view));
  return Math.max(columnWidth, Math.min(most, opened.lanes * LANE_WIDTH));
}

/** Pixels from the left edge of the first column to a place in the columns. */
function distanceTo(view: View, column: number): number {
  const distance = column * view.columnWidth;
  if (!view.opened || column <= view.opened.round) return distance;
  const more = widthOf(view, view.opened.round) - view.columnWidth;
  return distance + more * Math.min(1, column - view.opened.round);
}

/** The place in the columns so many pixels from the left edge of the first. */
function columnAt(view: View, distance: number): number {
  const column = distance / view.columnWidth;
  if (!view.opened || column <= view.opened.round) return column;
  const width = widthOf(view, view.opened.round);
  const into = distance - view.opened.round * view.columnWidth;
  if (into <= width) return view.opened.round + into / width;
  return view.opened.round + 1 + (into - width) / view.columnWidth;
}

/**
 * Whole pixels of the columns that lie left of the plot; negative where fewer columns than fit stand at its
 * right, where new ones come in. While following, the leftmost column is a whole one, and what is painted moves
 * by whole columns.
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

/** Columns in view, in rounds; at least one. */
export function capacity(view: View): number {
  return Math.max(1, columnAt(view, offset(view) + plotWidth(view)) - leftColumn(view));
}

/** Rounds that are at least partly in view: `first` to `last`, the latter excluded. */
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

/** Whether the whole reply is in view, and was asked for. */
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

/** What lies under a point, or null beside the plot; whether a token is there is not asked. */
export function pointAt(view: View, x: number, y: number): Point | null {
  if (x < GUTTER || x > view.width - PADDING) return null;
  const column = columnAt(view, offset(view) + x - GUTTER);
  const rows = (view.height - PADDING - y) / rowHeight(view);
  const [round, row] = [Math.floor(column), Math.floor(rows)];
  if (round < 0 || round >= view.rounds || row < 0 || row >= rowCount(view)) return null;
  return { round, row, across: column - round, up: rows - row };
}

/** The view whose left edge is so many pixels from the first column. */
function from(view: View, left: number): View {
  return clamp({ ...view, right: columnAt(view, left + plotWidth(view)) });
}

/** Wider or narrower columns; the round under `anchorX` stays where it is, the newest if followed. */
export function zoom(view: View, factor: number, anchorX: number): View {
  const anchor = columnAt(view, offset(view) + anchorX - GUTTER);
  const zoomed = clamp({ ...view, columnWidth: stepped(view.columnWidth, factor) });
  if (follows(view)) return clamp({ ...zoomed, right: view.rounds });
  return from(zoomed, distanceTo(zoomed, anchor) - (anchorX - GUTTER));
}

/** About so many times as wide, and different at least by the smallest step there is. */
function stepped(width: number, factor: number): number {
  const wanted = width * factor;
  if (width >= 1 && factor > 1) return Math.max(width + 1, Math.round(wanted));
  if (width > 1) return wanted < 1 ? wanted : Math.min(width - 1, Math.round(wanted));
  const rounds = Math.round(1 / width);
  if (factor > 1) return 1 / Math.max(1, Math.min(rounds - 1, Math.round(1 / wanted)));
  return 1 / Math.max(rounds + 1, Math.round(1 / wanted));
}

/** Moves the window over the rounds by a number of columns; positive towards the newest. */
export function scroll(view: View, columns: number): View {
  return clamp({ ...view, right: view.right + columns });
}

/** The whole reply. */
export function fit(view: View): View {
  return clamp({ ...view, columnWidth: narrowestColumn(view), right: view.rounds, opened: null });
}

/** One round, as wide as the plot. */
export function only(view: View, round: number): View {
  const zoomed = clamp({ ...view, columnWidth: widestColumn(view) });
  return clamp({ ...zoomed, right: round + 1 });
}

/**
 * More or other rounds; a view that showed the newest one goes on showing it, and one that showed
 * all of them goes on showing all.
 */
export function withRounds(view: View, rounds: number, tallest: number): View {
  const right = follows(view) ? rounds : view.right;
  const grown = { ...view, rounds, tallest, right };
  return clamp(showsAll(view) ? { ...grown, columnWidth: narrowestColumn(grown) } : grown);
}

/** The nearest view that shows a round. */
export function reveal(view: View, round: number): View {
  const [begin, end] = [distanceTo(view, round), distanceTo(view, round + 1)];
  const left = offset(view);
  if (begin < left - 1e-6) return from(view, begin);
  if (end > left + plotWidth(view)) return clamp({ ...view, right: round + 1 });
  return view;
}

/** Opens the column of a round with so many guesses beside each other, or closes the one opened. */
export function open(view: View, opened: View["opened"]): View {
  return clamp({ ...view, opened: opened && opened.lanes > 1 ? opened : null });
}
