/** Contents of a plot, and their conversion for uPlot. Pure functions without drawing. */
import { count } from "../../../messages/numbers";

/** Rising x, then the y of each series at them: uPlot's aligned data. */
export type Aligned = [xs: number[], ...ys: (number | null)[][]];

/** A point of a line: x, then y. */
export type Point = readonly [x: number, y: number];

export interface PlotSeries {
  label: string;
  /** Points by rising x. */
  points: readonly Point[];
  /** Name of a theme colour without dashes: "accepted". */
  colour: string;
  /** Lengths of strokes and gaps in CSS pixels; solid by default. */
  dash?: readonly number[];
  /** Whether every point gets a dot. */
  dots?: boolean;
  /** A thin background line, without a label and readings. */
  quiet?: boolean;
}

/** A highlighted point with a word above it. */
export interface PlotMark {
  at: Point;
  label: string;
  colour: string;
}

export interface PlotAxis {
  /** Name of the measured quantity: "draft length". */
  label: string;
  /** Unit of the quantity: "tokens/s"; none for counts. */
  unit?: string;
  /** Smallest range shown; data widen it. */
  from?: number;
  to?: number;
  /** Text of a tick; plain digits by default. */
  format?: (value: number) => string;
  /** Whether only integers get a tick. */
  whole?: boolean;
}

/** All x of the series, rising, with the y of each series or null. */
export function aligned(series: readonly PlotSeries[]): Aligned {
  const xs = [...new Set(series.flatMap(({ points }) => points.map(([x]) => x)))];
  xs.sort((a, b) => a - b);
  const columns = series.map(({ points }) => {
    const known = new Map(points.map(([x, y]) => [x, y]));
    return xs.map((x) => known.get(x) ?? null);
  });
  return [xs, ...columns];
}

/** Range of an axis: its smallest range, widened by the data; never empty. */
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

/** A number with about three significant digits: "0.42", "3.1", "1,210". */
export function short(value: number): string {
  const size = Math.abs(value);
  const digits = size === 0 || size >= 100 ? 0 : size >= 1 ? 1 : 2;
  return count(value, digits);
}

/** A value with its unit, or after its name if it has none: "3.2 s", "draft length 5". */
export function amountOf(axis: PlotAxis, value: number): string {
  const digits = (axis.format ?? short)(value);
  return axis.unit === undefined ? `${axis.label} ${digits}` : `${digits} ${axis.unit}`;
}

/** Values of all series at an x: "3.2 s: with a draft 38.2, plain 16.8 tokens/s". */
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

/** New index after a key in a list of `length`; null for other keys. */
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
