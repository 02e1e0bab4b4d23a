/** What a plot shows, and the lists uPlot wants for it. Draws nothing itself. */
import { count } from "../../../messages/numbers";

/** Rising x, then for each series its y there: what uPlot calls aligned data. */
export type Aligned = [xs: number[], ...ys: (number | null)[][]];

/** A point of a line: x, then y. */
export type Point = readonly [x: number, y: number];

export interface PlotSeries {
  label: string;
  /** By rising x. */
  points: readonly Point[];
  /** A colour of the theme by its name, without dashes: "accepted". */
  colour: string;
  /** Lengths of strokes and gaps in CSS pixels; a whole line without. */
  dash?: readonly number[];
  /** Whether every point gets a dot. */
  dots?: boolean;
  /** A thin line behind the others, not named and not read: one of many. */
  quiet?: boolean;
}

/** A point that stands out, with a word above it. */
export interface PlotMark {
  at: Point;
  label: string;
  colour: string;
}

export interface PlotAxis {
  /** What is measured: "draft length". */
  label: string;
  /** What it is measured in: "tokens/s"; none for counts. */
  unit?: string;
  /** Shown at least from here to there; data beyond widen it. */
  from?: number;
  to?: number;
  /** Words for a tick; plain digits without. */
  format?: (value: number) => string;
  /** Whether only whole numbers get a tick. */
  whole?: boolean;
}

/** All x that occur, rising, and for each series its y there, or null where it has no point. */
export function aligned(series: readonly PlotSeries[]): Aligned {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))];
  xs.sort((a, b) => a - b);
  const columns = series.map(({ points }) => {
    const known = new Map(points.map(([x, y]) => [x, y]));
    return xs.map((x) => known.get(x) ?? null);
  });
  return [xs, ...columns];
}

/** The range of an axis: what it is to show at least, widened by the data; never empty. */
export function rangeOf(axis: PlotAxis, low: number | null, high: number | null): [number, number] {
  const from = Math.min(axis.from ?? Infinity, low ?? Infinity);
  const to = Math.max(axis.to ?? -Infinity, high ?? -Infinity);
  if (!Number.isFinite(from)) return Number.isFinite(to) ? [to - 1, to] : [0, 1];
  return to > from ? [from, to] : [from, from + 1];
}

/** The y of the point nearest to an x; null without points. */
export function nearestY(points: readonly Point[], x: number): number | null {
  let best: Point | null = null;
  for (const point of points) {
    if (!best || Math.abs(point[0] - x) <= Math.abs(best[0] - x)) best = point;
  }
  return best && best[1];
}

/** A number with as many digits as its size deserves: "0.42", "3.1", "1,210". */
export function short(value: number): string {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 100 ? 0 : size >= 1 ? 1 : 2;
  return count(value, digits);
}

/** An amount with its unit, or after its name where it has none: "3.2 s", "draft length 5". */
export function amountOf(axis: PlotAxis, value: number): string {
  const digits = (axis.format ?? short)(value);
  return axis.unit === undefined ? `${axis.label} ${digits}` : `${digits} ${axis.unit}`;
}

/** What all series say at an x: "3.2 s: with a draft 38.2, plain 16.8 tokens/s". */
export function readingOf(
  series: readonly PlotSeries[],
  x: PlotAxis,
  y: PlotAxis,
  at: number,
): string {
  const digits = y.format ?? short;
  const values = series.flatMap(({ label, points, quiet }) => {
    const value = nearestY(points, at);
    return value === null || quiet ? [] : [`${label} ${digits(value)}`];
  });
  return `${amountOf(x, at)}: ${values.join(", ")} ${y.unit ?? y.label}`;
}

/** Where a key leads from a place in a list of `length`; null for keys that lead nowhere. */
export function stepped(key: string, from: number | null, length: number): number | null {
  if (length === 0) return null;
  const last = length - 1;
  const steps: Record<string, number> = {
    ArrowRight: from === null ? 0 : from + 1,
    ArrowLeft: from === null ? last : from - 1,
    PageDown: (from ?? 0) - Math.ceil(length / 10),
    PageUp: (from ?? 0) + Math.ceil(length / 10),
    Home: 0,
    End: last,
  };
  const wanted = steps[key];
  return wanted === undefined ? null : Math.max(0, Math.min(last, wanted));
}
