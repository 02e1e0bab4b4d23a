/**
 * Draws the heatmap on a canvas: only the columns in view, and where several rounds share a pixel
 * their mean. Colour strength is the acceptance probability; every outcome also has a mark of its
 * own shape.
 */
import type { Drafted } from "../bindings/Drafted";
import type { ExtraKind } from "../bindings/ExtraKind";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import { samePlace, type Place } from "../trace/round";
import { depthsOf } from "../trace/tree";
import * as layout from "./layout";
import type { Rect, View } from "./layout";
import { spotsOf, type Spot } from "./spots";

export interface Colours {
  accepted: string;
  rejected: string;
  discarded: string;
  bonus: string;
  recovered: string;
  plain: string;
  /** Strokes on top of a cell. */
  stroke: string;
  label: string;
  focus: string;
}

/** Weakest colour of an accepted token, so that an unlikely one is still seen. */
const FAINTEST = 0.25;
/** Rounds looked at for one pixel column when several share it. */
const SAMPLES = 8;

type Pen = CanvasRenderingContext2D;

export interface Picture {
  view: View;
  rounds: readonly Round[];
  hovered: Place | null;
  selected: Place | null;
}

/** `scale` is device pixels per CSS pixel. */
export function paint(pen: Pen, picture: Picture, colours: Colours, scale: number) {
  const { view, rounds } = picture;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, view.width, view.height);
  paintRowNumbers(pen, view, colours);
  pen.save();
  pen.beginPath();
  pen.rect(layout.GUTTER, 0, view.width - layout.GUTTER, view.height);
  pen.clip();
  if (view.columnWidth < 1) {
    paintMeans(pen, view, rounds, colours);
  } else {
    const { first, last } = layout.visibleRounds(view);
    for (let index = first; index < last; index += 1) {
      const round = rounds[index];
      if (round) paintRound(pen, view, index, round, colours);
    }
  }
  paintFrames(pen, picture, colours);
  pen.restore();
}

function paintRowNumbers(pen: Pen, view: View, colours: Colours) {
  pen.fillStyle = colours.label;
  pen.font = '10px "Inter Variable", system-ui, sans-serif';
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const height = layout.rowHeight(view);
  const every = Math.ceil(12 / height);
  for (let row = 0; row < layout.rowCount(view) - 1; row += every) {
    const y = view.height - layout.PADDING - (row + 0.5) * height;
    pen.fillText(String(row + 1), layout.GUTTER / 2, y + 0.5);
  }
}

function paintRound(pen: Pen, view: View, index: number, round: Round, colours: Colours) {
  spotsOf(round).forEach((spot, slot) => {
    const drafted = round.drafted[slot];
    if (drafted) paintDrafted(pen, inner(view, index, spot), drafted, colours);
    else if (round.extra) {
      paintExtra(pen, layout.cellRect(view, index, spot), round.extra.kind, colours);
    }
  });
}

/** The cell less the gaps between cells; narrow columns have none beside them. */
function inner(view: View, round: number, spot: Spot): Rect {
  const { x, y, width, height } = layout.cellRect(view, round, spot);
  const gap = width >= layout.MARKS_WIDTH ? 1 : width >= 2 ? 0.5 : 0;
  return { x: x + gap, y: y + 1, width: width - 2 * gap, height: Math.max(1, height - 3) };
}

function paintDrafted(pen: Pen, cell: Rect, drafted: Drafted, colours: Colours) {
  const marks = cell.width >= layout.MARKS_WIDTH - 2;
  if (drafted.outcome === "discarded") {
    pen.strokeStyle = colours.discarded;
    pen.lineWidth = 1;
    if (marks) {
      pen.setLineDash([2, 2]);
      shape(pen, shrunk(cell, 0.5), drafted);
      pen.stroke();
      pen.setLineDash([]);
    } else {
      pen.fillStyle = colours.discarded;
      pen.fillRect(cell.x, cell.y + cell.height - 1, cell.width, 1);
    }
    return;
  }
  const accepted = drafted.outcome === "accepted";
  pen.globalAlpha = accepted ? FAINTEST + (1 - FAINTEST) * (drafted.acceptance ?? 1) : 1;
  pen.fillStyle = accepted ? colours.accepted : colours.rejected;
  shape(pen, cell, drafted);
  pen.fill();
  pen.globalAlpha = 1;
  if (accepted || !marks) return;
  pen.strokeStyle = colours.stroke;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(cell.x + 2, cell.y + 2.5);
  pen.lineTo(cell.x + cell.width - 2, cell.y + cell.height - 2.5);
  pen.stroke();
}

/** Who drafted the token: square corners for a model, round ends for an n-gram, a round top for recycling. */
function shape(pen: Pen, { x, y, width, height }: Rect, { drafter }: Drafted) {
  const round = Math.min(width, height) / 2;
  const square = Math.min(1.5, width / 4);
  const corners = { model: square, ngram: round, recycling: [round, round, square, square] };
  pen.beginPath();
  pen.roundRect(x, y, width, height, corners[drafter]);
}

/** A disc for a bonus token, a diamond for a recovered one, a ring for one without a draft. */
function paintExtra(pen: Pen, cell: Rect, kind: ExtraKind, colours: Colours) {
  const radius = Math.min(3.2, cell.width / 2.4, cell.height / 3);
  const x = cell.x + cell.width / 2;
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
    return;
  }
  pen.fillStyle = kind === "bonus" ? colours.bonus : colours.recovered;
  pen.fill();
}

/** Several rounds a pixel: each row shows how many of the sampled tokens were accepted, or how not. */
function paintMeans(pen: Pen, view: View, rounds: readonly Round[], colours: Colours) {
  const left = layout.leftColumn(view);
  const perPixel = 1 / view.columnWidth;
  const step = Math.max(1, perPixel / SAMPLES);
  for (let pixel = 0; pixel < layout.plotWidth(view); pixel += 1) {
    const begin = left + pixel * perPixel;
    const sampled: (readonly Outcome[])[] = [];
    for (let at = begin; at < begin + perPixel; at += step) {
      const round = rounds[Math.floor(at)];
      sampled.push(round ? outcomesByRow(round) : []);
    }
    for (let row = 0; row < layout.rowCount(view) - 1; row += 1) {
      const cell = layout.cellRect(view, begin, { row, from: 0, to: 1 });
      const strip = (colour: string, outcome: Outcome) => {
        const share = sampled.filter((rows) => rows[row] === outcome).length / sampled.length;
        if (share === 0) return;
        pen.globalAlpha = share;
        pen.fillStyle = colour;
        pen.fillRect(layout.GUTTER + pixel, cell.y + 1, 1, cell.height - 2);
      };
      strip(colours.accepted, "accepted");
      strip(colours.rejected, "rejected");
    }
  }
  pen.globalAlpha = 1;
}

/** What became of each row: accepted if one of its guesses was, else rejected if one was. */
function outcomesByRow(round: Round): Outcome[] {
  const rows: Outcome[] = [];
  depthsOf(round).forEach((row, slot) => {
    const outcome = round.drafted[slot]?.outcome ?? "discarded";
    const held = rows[row] ?? "discarded";
    if (held === "discarded" || outcome === "accepted") rows[row] = outcome;
  });
  return rows;
}

function paintFrames(pen: Pen, { view, rounds, hovered, selected }: Picture, colours: Colours) {
  const frame = (place: Place, width: number) => {
    const round = rounds[place.round];
    const spot = round && spotsOf(round)[place.slot];
    if (!spot) return;
    const cell = shrunk(layout.cellRect(view, place.round, spot), 0.5);
    pen.strokeStyle = colours.focus;
    pen.lineWidth = width;
    pen.beginPath();
    pen.roundRect(cell.x - 0.5, cell.y - 1, Math.max(3, cell.width + 1), cell.height, 3);
    pen.stroke();
  };
  if (selected) frame(selected, 2);
  if (hovered && !samePlace(hovered, selected)) frame(hovered, 1.2);
}

function shrunk({ x, y, width, height }: Rect, by: number): Rect {
  return { x: x + by, y: y + by, width: width - 2 * by, height: height - 2 * by };
}
