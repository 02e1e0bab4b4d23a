/** Curves of tokens over time: single runs on a common grid, and the median curve of a set-up. */
import { median } from "./pairs";

/** Milliseconds since the start of the run, and tokens emitted by then; both rising. */
export type Curve = readonly (readonly [ms: number, tokens: number])[];

/** Steps of the grid and of a median curve. */
const STEPS = 96;

/** Moments at equal intervals, up to the end of the longest curve. */
export function gridOf(curves: readonly Curve[]): number[] {
  const end = Math.max(0, ...curves.map(endOf));
  return Array.from({ length: STEPS + 1 }, (_, step) => (end * step) / STEPS);
}

/** A curve at the moments of a grid and at its own two ends. */
export function resampled(curve: Curve, grid: readonly number[]): Curve {
  const first = curve[0];
  const last = curve.at(-1);
  if (!first || !last) return [];
  const inside = grid.filter((ms) => ms > first[0] && ms < last[0]);
  const middle = inside.map((ms) => [ms, interpolated(curve, ms, 0, 1)] as const);
  return first === last ? [first] : [first, ...middle, last];
}

/** The median moment at each number of tokens, up to a number that most runs reach. */
export function medianCurve(curves: readonly Curve[]): Curve {
  const begun = curves.filter(({ length }) => length > 0);
  const most = median(begun.map((curve) => curve.at(-1)?.[1] ?? 0));
  const least = Math.max(0, ...begun.map((curve) => curve[0]?.[1] ?? 0));
  if (most === null || most < least) return [];
  return Array.from({ length: STEPS + 1 }, (_, step) => {
    const tokens = least + ((most - least) * step) / STEPS;
    const reached = begun.filter((curve) => (curve.at(-1)?.[1] ?? 0) >= tokens);
    return [
      median(reached.map((curve) => interpolated(curve, tokens, 1, 0))) ?? 0,
      tokens,
    ] as const;
  });
}

function endOf(curve: Curve): number {
  return curve.at(-1)?.[0] ?? 0;
}

/** Interpolates linearly: the coordinate `wanted` at which the coordinate `given` is `value`. */
function interpolated(curve: Curve, value: number, given: 0 | 1, wanted: 0 | 1): number {
  const after = curve.findIndex((point) => point[given] >= value);
  const high = curve[after] ?? curve.at(-1);
  const low = curve[after - 1] ?? high;
  if (!high || !low) return 0;
  const width = high[given] - low[given];
  const share = width > 0 ? (value - low[given]) / width : 0;
  return low[wanted] + share * (high[wanted] - low[wanted]);
}
