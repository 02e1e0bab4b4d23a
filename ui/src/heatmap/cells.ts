/**
 * Draws one round: a cell for each draft token, the extra token on top, lines for the branches of a
 * tree. The strength of a cell's colour is the token's acceptance probability. The frame shows the
 * outcome: solid for accepted, struck through for rejected, dashed for unverified tokens.
 */
import type { Drafted } from "../bindings/Drafted";
import type { ExtraKind } from "../bindings/ExtraKind";
import type { Round } from "../bindings/Round";
import { visible } from "../trace/describe";
import { percent } from "../messages/numbers";
import { parentsOf } from "../trace/tree";
import type { Colours } from "./colours";
import * as layout from "./layout";
import type { Rect, View } from "./layout";
import { hasBranches, lanesOf, spotsOf, type Spot } from "./spots";

export type Pen = CanvasRenderingContext2D;

/** Weakest fill, at which an unlikely token is still visible. */
export const FAINTEST = 0.14;
/** Weakest fill of a tick, which has a colour but no frame. */
const FAINTEST_TICK = 0.35;
/** Strongest fill at which text on a cell is readable. */
export const STRONGEST_UNDER_TEXT = 0.42;
/** Smallest size of cells with their token's text. */
const TEXT_WIDTH = 34;
const TEXT_HEIGHT = 9;
/** Smallest width of cells with their acceptance probability beside the text. */
const NUMBER_WIDTH = 110;
const FONT = '"Inter Variable", system-ui, sans-serif';
const MONO = '"JetBrains Mono Variable", ui-monospace, monospace';

export function font(size: number, mono = false): string {
  return `${size}px ${mono ? MONO : FONT}`;
}

export function paintRound(pen: Pen, view: View, index: number, round: Round, colours: Colours) {
  const width = layout.widthOf(view, index);
  const spots = spotsOf(round, width);
  const branches = hasBranches(lanesOf(round), width);
  if (branches) paintBranches(pen, view, index, round, spots, colours);
  for (let slot = 0; slot < spots.length; slot += 1) {
    const spot = spots[slot];
    if (!spot) continue;
    const drafted = round.drafted[slot];
    const tick = spot.from > 0 && !branches;
    const cell = inner(layout.cellRect(view, index, spot), tick, branches);
    if (drafted && tick) paintTick(pen, cell, drafted, colours);
    else if (drafted) paintDrafted(pen, cell, drafted, round.staged, colours);
    else if (round.extra) paintExtra(pen, cell, round.extra.kind, round.extra.text, colours);
  }
}

/** A cell without its margins: none at the sides in narrow columns, more above with branches. */
function inner({ x, y, width, height }: Rect, tick: boolean, branches: boolean): Rect {
  const beside = width >= layout.MARKS_WIDTH || branches ? 1 : width >= 2 ? 0.5 : 0;
  const above = branches ? gapAbove(height) : tick ? 0.5 : 2;
  const left = tick ? 0 : beside;
  return {
    x: x + left,
    y: y + above,
    width: Math.max(0.75, width - left - beside),
    height: Math.max(0.75, height - above - (tick ? 0.5 : 1)),
  };
}

/** Margin between the rows of a tree, for its lines. */
function gapAbove(height: number): number {
  return Math.min(7, 0.3 * height);
}

/** Draws a token beside the accepted path of a narrow column: colour only. */
function paintTick(pen: Pen, cell: Rect, { outcome, acceptance }: Drafted, colours: Colours) {
  const faint = outcome === "discarded";
  pen.fillStyle = colours[outcome];
  pen.globalAlpha = faint ? 0.4 : Math.max(FAINTEST_TICK, strength(acceptance, 1));
  pen.fillRect(cell.x, cell.y, cell.width, cell.height);
  pen.globalAlpha = 1;
}

function paintDrafted(pen: Pen, cell: Rect, drafted: Drafted, staged: boolean, colours: Colours) {
  const marks = cell.width >= layout.MARKS_WIDTH - 2 && cell.height >= 4;
  const written = cell.width >= TEXT_WIDTH && cell.height >= TEXT_HEIGHT;
  const { outcome, acceptance } = drafted;
  if (outcome !== "discarded") {
    pen.fillStyle = colours[outcome];
    const strongest = strength(acceptance, written ? STRONGEST_UNDER_TEXT : 1);
    pen.globalAlpha = marks ? strongest : Math.max(FAINTEST_TICK, strongest);
    shape(pen, cell, drafted, staged);
    pen.fill();
    pen.globalAlpha = 1;
  }
  if (marks) frame(pen, cell, drafted, staged, colours);
  else if (outcome === "discarded") paintTrace(pen, cell, colours);
  if (marks && outcome === "rejected") strike(pen, cell, written, colours);
  if (written) write(pen, cell, drafted.text, acceptance, colours);
}

/** Opacity of a cell's fill. */
export function strength(acceptance: number | null, most: number): number {
  return FAINTEST + (most - FAINTEST) * (acceptance ?? 0);
}

/** Draws a frame: solid for a verified token, dashed for an unverified one. */
function frame(pen: Pen, cell: Rect, drafted: Drafted, staged: boolean, colours: Colours) {
  const dashed = drafted.outcome === "discarded";
  pen.strokeStyle = colours[drafted.outcome];
  pen.lineWidth = 1;
  if (dashed) pen.setLineDash([2, 2]);
  shape(pen, shrunk(cell, 0.5), drafted, staged);
  pen.stroke();
  if (dashed) pen.setLineDash([]);
}

/** Draws a line for an unverified token, in a cell too small for a frame. */
function paintTrace(pen: Pen, cell: Rect, colours: Colours) {
  pen.fillStyle = colours.discarded;
  pen.globalAlpha = 0.55;
  pen.fillRect(cell.x, cell.y + cell.height - 1, cell.width, 1);
  pen.globalAlpha = 1;
}

/** Draws a stroke from corner to corner, or in front of text, which it would hide. */
function strike(pen: Pen, cell: Rect, written: boolean, colours: Colours) {
  const line = () => {
    pen.beginPath();
    if (written) {
      pen.moveTo(cell.x + 2.5, cell.y + 3);
      pen.lineTo(cell.x + 9, cell.y + cell.height - 3);
    } else {
      pen.moveTo(cell.x + 1.5, cell.y + 2);
      pen.lineTo(cell.x + cell.width - 1.5, cell.y + cell.height - 2);
    }
    pen.stroke();
  };
  pen.strokeStyle = colours.casing;
  pen.lineWidth = 3.6;
  line();
  pen.strokeStyle = colours.rejected;
  pen.lineWidth = 1.6;
  line();
}

/**
 * Outline by drafter: square corners for a model, cut ones for a staged draft, a pointed top for a
 * draft head, round ends for an n-gram, a round top for recycling, a pointed side for a forced
 * token.
 */
function shape(pen: Pen, { x, y, width, height }: Rect, { drafter }: Drafted, staged: boolean) {
  const round = Math.min(width, height, 22) / 2;
  const square = Math.min(1.5, width / 4);
  pen.beginPath();
  if (drafter === "model" && staged) {
    const cut = Math.min(width / 3, height / 3, 4);
    pen.moveTo(x, y + height);
    pen.lineTo(x, y + cut);
    pen.lineTo(x + cut, y);
    pen.lineTo(x + width - cut, y);
    pen.lineTo(x + width, y + cut);
    pen.lineTo(x + width, y + height);
    pen.closePath();
  } else if (drafter === "head") {
    const roof = y + Math.min(width / 2, height / 3, 5);
    pen.moveTo(x, y + height);
    pen.lineTo(x, roof);
    pen.lineTo(x + width / 2, y);
    pen.lineTo(x + width, roof);
    pen.lineTo(x + width, y + height);
    pen.closePath();
  } else if (drafter === "forced") {
    const tip = x + width - Math.min(width / 2, height / 3, 5);
    pen.moveTo(x, y);
    pen.lineTo(tip, y);
    pen.lineTo(x + width, y + height / 2);
    pen.lineTo(tip, y + height);
    pen.lineTo(x, y + height);
    pen.closePath();
  } else if (drafter === "recycling") {
    pen.roundRect(x, y, width, height, [round, round, square, square]);
  } else {
    pen.roundRect(x, y, width, height, drafter === "ngram" ? round : square);
  }
}

/** Draws an extra token: a disc for bonus, a diamond for recovered, a ring without a draft. */
function paintExtra(pen: Pen, cell: Rect, kind: ExtraKind, text: string, colours: Colours) {
  const written = cell.width >= TEXT_WIDTH && cell.height >= TEXT_HEIGHT;
  const radius = Math.min(3.2, cell.width / 2.4, cell.height / 3);
  const x = written ? cell.x + 8 : cell.x + cell.width / 2;
  const y = cell.y + cell.height / 2;
  pen.beginPath();
  if (kind === "recovered") {
    const reach = radius * 1.25;
    pen.moveTo(x, y - reach);
    pen.lineTo(x + reach, y);
    pen.lineTo(x, y + reach);
    pen.lineTo(x - reach, y);
    pen.closePath();
  } else {
    pen.arc(x, y, radius, 0, 2 * Math.PI);
  }
  if (kind === "plain") {
    pen.strokeStyle = colours.plain;
    pen.lineWidth = 1.4;
    pen.stroke();
  } else {
    pen.fillStyle = kind === "bonus" ? colours.bonus : colours.recovered;
    pen.fill();
  }
  if (written) write(pen, cell, text, null, colours);
}

/** Writes a token's text in its cell, and its acceptance probability where there is room. */
function write(pen: Pen, cell: Rect, text: string, acceptance: number | null, colours: Colours) {
  const left = 14;
  const size = Math.min(12, Math.max(8, cell.height - 3));
  const middle = cell.y + cell.height / 2 + 0.5;
  let room = cell.width - left - 4;
  pen.fillStyle = colours.text;
  pen.textBaseline = "middle";
  if (acceptance !== null && cell.width >= NUMBER_WIDTH) {
    pen.font = font(size);
    pen.textAlign = "right";
    pen.fillText(percent(acceptance), cell.x + cell.width - 7, middle);
    room -= 3.4 * size;
  }
  pen.font = font(size, true);
  pen.textAlign = "left";
  // A letter of this font is 0.6 times its size wide.
  const most = Math.max(1, Math.floor(room / (0.6 * size)));
  pen.fillText(cut(visible(text.trimStart() || text), most), cell.x + left, middle);
}

/** The beginning of a text, without a split surrogate pair. */
function cut(text: string, most: number): string {
  if (text.length <= most) return text;
  return `${text.slice(0, most - 1).replace(/[\ud800-\udbff]$/, "")}…`;
}

/** Draws lines from each token to its children, in the colour of acceptance to accepted ones. */
function paintBranches(
  pen: Pen,
  view: View,
  index: number,
  round: Round,
  spots: readonly Spot[],
  colours: Colours,
) {
  const parents = parentsOf(round);
  const gap = gapAbove(layout.rowHeight(view));
  const path = new Path2D();
  const taken = new Path2D();
  spots.forEach((spot, slot) => {
    const parent = parents[slot] ?? null;
    const from = parent === null ? undefined : spots[parent];
    if (!from) return;
    const below = layout.cellRect(view, index, from);
    const above = layout.cellRect(view, index, spot);
    const [x0, x1] = [below.x + below.width / 2, above.x + above.width / 2];
    const [y0, y1] = [below.y + gap, above.y + above.height - 1];
    const line = round.drafted[slot]?.outcome === "accepted" ? taken : path;
    line.moveTo(x0, y0);
    line.bezierCurveTo(x0, (y0 + y1) / 2, x1, (y0 + y1) / 2, x1, y1);
  });
  pen.lineWidth = 1;
  pen.strokeStyle = colours.branch;
  pen.stroke(path);
  pen.lineWidth = 1.8;
  pen.strokeStyle = colours.accepted;
  pen.stroke(taken);
}

function shrunk({ x, y, width, height }: Rect, by: number): Rect {
  return {
    x: x + by,
    y: y + by,
    width: Math.max(0, width - 2 * by),
    height: Math.max(0, height - 2 * by),
  };
}
