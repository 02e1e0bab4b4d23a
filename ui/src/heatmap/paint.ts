/**
 * Draws the heatmap on a canvas: only the columns in view, and where several rounds share a pixel
 * their mean. Colour strength is the acceptance probability; every outcome also has a mark of its
 * own shape.
 */
import type { Drafted } from "../bindings/Drafted";
import type { Round } from "../bindings/Round";
import type { ExtraKind } from "../bindings/ExtraKind";
import { samePlace, type Place } from "../trace/round";
import * as layout from "./layout";
import type { Rect, View } from "./layout";

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
  round.drafted.forEach((drafted, slot) =>
    paintDrafted(pen, inner(view, { round: index, slot }), drafted, colours),
  );
  if (!round.extra) return;
  const cell = layout.cellRect(view, { round: index, slot: round.drafted.length });
  paintExtra(pen, cell, round.extra.kind, colours);
}

/** The cell less the gaps between cells; narrow columns have none beside them. */
function inner(view: View, place: Place): Rect {
  const { x, y, width, height } = layout.cellRect(view, place);
  const gap = width >= layout.MARKS_WIDTH ? 1 : width >= 3 ? 0.5 : 0;
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
      pen.fillRect(cell.x, cell.y + cell.height / 2, cell.width, 1);
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

/** Who drafted the token: square corners for a model, round ends for an n-gram. */
function shape(pen: Pen, { x, y, width, height }: Rect, { drafter }: Drafted) {
  const round = drafter === "ngram" ? Math.min(width, height) / 2 : Math.min(1.5, width / 4);
  pen.beginPath();
  pen.roundRect(x, y, width, height, round);
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
    for (let slot = 0; slot < layout.rowCount(view) - 1; slot += 1) {
      let [accepted, rejected, sampled] = [0, 0, 0];
      for (let at = begin; at < begin + perPixel; at += step) {
        const drafted = rounds[Math.floor(at)]?.drafted[slot];
        sampled += 1;
        if (drafted?.outcome === "accepted") accepted += 1;
        else if (drafted?.outcome === "rejected") rejected += 1;
      }
      const cell = layout.cellRect(view, { round: begin, slot });
      const strip = (colour: string, share: number) => {
        if (share === 0) return;
        pen.globalAlpha = share;
        pen.fillStyle = colour;
        pen.fillRect(layout.GUTTER + pixel, cell.y + 1, 1, cell.height - 2);
      };
      strip(colours.accepted, accepted / sampled);
      strip(colours.rejected, rejected / sampled);
    }
  }
  pen.globalAlpha = 1;
}

function paintFrames(pen: Pen, { view, hovered, selected }: Picture, colours: Colours) {
  const frame = (place: Place, width: number) => {
    const cell = shrunk(layout.cellRect(view, place), 0.5);
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
