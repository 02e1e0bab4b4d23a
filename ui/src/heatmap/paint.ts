/**
 * Paints the heatmap on a canvas, and only the part that changed. While it follows a reply, the old
 * picture moves by whole pixels and only new columns are drawn. Single rounds are drawn by
 * cells.ts; where many share a pixel, their sums are drawn here.
 */
import type { Round } from "../bindings/Round";
import { font, paintRound, strength, type Pen } from "./cells";
import type { Colours } from "./colours";
import * as layout from "./layout";
import type { View } from "./layout";
import { ACCEPTANCE_OF, FIELD_OF, FIELDS, Sums } from "./sums";

export interface Picture {
  view: View;
  rounds: readonly Round[];
}

/** State of the canvas. */
interface Painted extends Picture {
  colours: Colours;
  scale: number;
  offset: number;
}

export class Painter {
  readonly #pen: Pen;
  #painted: Painted | null = null;
  #sums: Sums | null = null;

  constructor(pen: Pen) {
    this.#pen = pen;
  }

  /**
   * Paints a picture; `scale` is device pixels per CSS pixel. After the canvas is resized, call
   * {@link repaintAll} first.
   */
  paint({ view, rounds }: Picture, colours: Colours, scale: number) {
    const before = this.#painted;
    const next: Painted = { view, rounds, colours, scale, offset: layout.offset(view) };
    if (before?.rounds !== rounds) this.#sums = null;
    const moved = before && movedBy(before, next);
    this.#pen.setTransform(scale, 0, 0, scale, 0, 0);
    if (moved === null) this.#paintWhole(next);
    else this.#paintNew(next, before?.view.rounds ?? 0, moved);
    this.#painted = next;
  }

  /** Repaints everything next time: the canvas was cleared, or its colours changed. */
  repaintAll() {
    this.#painted = null;
  }

  #paintWhole(next: Painted) {
    const { view, colours } = next;
    this.#pen.clearRect(0, 0, view.width, view.height);
    paintRowNumbers(this.#pen, view, colours);
    this.#paintFrom(next, 0);
  }

  /** Moves the picture to the left, and paints new and incomplete columns. */
  #paintNew(next: Painted, known: number, moved: number) {
    const { view, scale } = next;
    const pen = this.#pen;
    if (moved > 0) {
      const [left, width] = [layout.GUTTER, layout.plotWidth(view) + layout.PADDING - moved];
      pen.save();
      pen.beginPath();
      pen.rect(left, 0, view.width - left, view.height);
      pen.clip();
      pen.globalCompositeOperation = "copy";
      const [x, w, h] = [(left + moved) * scale, width * scale, view.height * scale];
      pen.drawImage(pen.canvas, x, 0, w, h, left, 0, width, view.height);
      pen.restore();
    }
    this.#paintFrom(next, Math.floor(known * view.columnWidth) - next.offset);
  }

  /** Paints the plot from a distance in pixels off its left edge. */
  #paintFrom(next: Painted, from: number) {
    const { view, rounds, colours } = next;
    const left = layout.GUTTER + Math.max(0, from);
    const pen = this.#pen;
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, view.width - left, view.height);
    pen.clip();
    pen.clearRect(left, 0, view.width - left, view.height);
    if (view.columnWidth < 1) this.#paintMeans(next, Math.max(0, from));
    else {
      const { first, last } = layout.visibleRounds(view);
      for (let index = first; index < last; index += 1) {
        const round = rounds[index];
        const x = layout.columnX(view, index) + layout.widthOf(view, index);
        if (round && x > left) paintRound(pen, view, index, round, colours);
      }
    }
    pen.restore();
  }

  /**
   * Paints several rounds per pixel. From below, the height of a row is divided into shares of
   * accepted, rejected and unverified tokens; the rest of it had no draft.
   */
  #paintMeans({ view, rounds, colours, offset }: Painted, from: number) {
    this.#sums ??= new Sums(rounds);
    const pen = this.#pen;
    const perPixel = Math.round(1 / view.columnWidth);
    const begin = Math.max(from, -offset);
    const end = Math.min(layout.plotWidth(view), Math.ceil(view.rounds / perPixel) - offset);
    const rows = layout.rowCount(view) - 1;
    const height = layout.rowHeight(view);
    let before = this.#sums.before((offset + begin) * perPixel);
    for (let pixel = begin; pixel < end; pixel += 1) {
      const held = Math.min(view.rounds, (offset + pixel + 1) * perPixel);
      const after = this.#sums.before(held);
      const count = held - (offset + pixel) * perPixel;
      for (let row = 0; row < rows; row += 1) {
        const sum = (field: number) =>
          (after[row * FIELDS + field] ?? 0) - (before[row * FIELDS + field] ?? 0);
        let y = layout.rowY(view, row) + height - 1;
        for (const outcome of ["accepted", "rejected", "discarded"] as const) {
          const places = sum(FIELD_OF[outcome]);
          if (places === 0) continue;
          const share = (places / count) * (height - 2);
          y -= share;
          pen.fillStyle = colours[outcome];
          pen.globalAlpha =
            outcome === "discarded" ? 0.22 : strength(sum(ACCEPTANCE_OF[outcome]) / places, 1);
          pen.fillRect(layout.GUTTER + pixel, y, 1, share);
        }
      }
      before = after;
    }
    pen.globalAlpha = 1;
  }
}

/** Pixels by which the old picture moves to the left; null if everything must be repainted. */
function movedBy(before: Painted, next: Painted): number | null {
  const [old, now] = [before.view, next.view];
  const same =
    before.rounds === next.rounds &&
    before.colours === next.colours &&
    before.scale === next.scale &&
    old.width === now.width &&
    old.height === now.height &&
    layout.rowCount(old) === layout.rowCount(now) &&
    old.columnWidth === now.columnWidth &&
    old.opened === now.opened &&
    (now.opened === null || layout.widthOf(now, now.opened.round) === now.columnWidth) &&
    old.rounds <= now.rounds;
  if (!same) return null;
  const moved = next.offset - before.offset;
  const whole =
    Number.isInteger(moved * next.scale) && Number.isInteger(layout.GUTTER * next.scale);
  // Columns beyond the right edge were not painted; they are new only if rounds end there.
  const atEnd = layout.follows(old) && layout.follows(now);
  return moved >= 0 && whole && (atEnd || moved === 0) ? moved : null;
}

function paintRowNumbers(pen: Pen, view: View, colours: Colours) {
  pen.fillStyle = colours.label;
  pen.font = font(10);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  const height = layout.rowHeight(view);
  const every = Math.ceil(12 / height);
  for (let row = 0; row < layout.rowCount(view) - 1; row += every) {
    pen.fillText(String(row + 1), layout.GUTTER / 2, layout.rowY(view, row) + 0.5 * height + 0.5);
  }
}
