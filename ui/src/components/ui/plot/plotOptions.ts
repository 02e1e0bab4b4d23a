/** How a plot looks: what uPlot is told, in the page's colours and type. */
import type uPlot from "uplot";
import { rangeOf, short, type PlotAxis, type PlotMark, type PlotSeries } from "./plot";

/** Width of a digit, of its height. */
const DIGIT = 0.62;
/** How far from the pointer a series is still read. */
const NEAR_PX = 24;
/** Room above the highest point for its mark, of the plot's height. */
const HEADROOM = 0.06;
/** Of a quiet line. */
const QUIET_ALPHA = 0.35;
const WHOLE = [1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000];

export interface Look {
  series: readonly PlotSeries[];
  x: PlotAxis;
  y: PlotAxis;
  /** Asked at every drawing. */
  marks: () => readonly PlotMark[];
  /** Whole pixels: uPlot reads no others. */
  typePx: number;
  family: string;
  /** The value of a theme's colour. */
  colour: (name: string) => string;
}

/** `onread` hears which x is under the cursor, by its index; null for none. */
export function optionsOf(
  look: Look,
  size: { width: number; height: number },
  onread: (index: number | null) => void,
): uPlot.Options {
  const { series, x, y, typePx, family, colour } = look;
  return {
    ...size,
    padding: [typePx * 1.4, 8, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false, setScale: false },
      // Series with other x are read at their own nearest point, unless that is far off.
      hover: { skip: [null, undefined], prox: NEAR_PX },
      points: {
        size: (_, index) => (series[index - 1]?.quiet ? 0 : 8),
        width: 2,
        fill: colour("panel"),
      },
    },
    scales: {
      x: { time: false, range: (_, low, high) => rangeOf(x, low, high) },
      y: {
        range: (_, low, high) => {
          const [from, to] = rangeOf(y, low, high);
          return [from, to + (to - from) * HEADROOM];
        },
      },
    },
    axes: [
      {
        ...ruled(x, look),
        space: typePx * 4,
        grid: { show: false },
        size: typePx + 8,
        label: x.unit === undefined ? x.label : `${x.label}, ${x.unit}`,
        labelSize: typePx + 6,
        labelFont: `${typePx}px ${family}`,
      },
      {
        ...ruled(y, look),
        space: typePx * 2.6,
        grid: { stroke: colour("line"), width: 1 },
        size: wide(typePx),
      },
    ],
    series: [{}, ...series.map((one) => lineOf(one, colour))],
    hooks: {
      draw: [(drawn) => drawMarks(drawn, look)],
      setCursor: [(drawn) => onread(drawn.cursor.idx ?? null)],
    },
  };
}

function lineOf(series: PlotSeries, colour: Look["colour"]): uPlot.Series {
  const { label, dash, dots = false, quiet = false } = series;
  const stroke = colour(series.colour);
  return {
    label,
    stroke,
    width: quiet ? 1 : dash ? 1.5 : 2,
    alpha: quiet ? QUIET_ALPHA : 1,
    spanGaps: true,
    points: { show: dots, size: 6, width: 1.5, fill: colour("panel"), stroke },
    // The only length that uPlot wants in the screen's own pixels.
    ...(dash ? { dash: dash.map((px) => px * window.devicePixelRatio) } : {}),
  };
}

function ruled(axis: PlotAxis, { typePx, family, colour }: Look): uPlot.Axis {
  return {
    font: `${typePx}px ${family}`,
    stroke: colour("faint"),
    gap: 5,
    ticks: { show: false },
    values: (_, splits) => splits.map((value) => (axis.format ?? short)(value)),
    ...(axis.whole ? { incrs: WHOLE } : {}),
  };
}

/** As wide as the longest value. The types promise values; the first time there are none. */
function wide(typePx: number): uPlot.Axis.Size {
  return (_, values: string[] | null) => {
    const longest = Math.max(1, ...(values ?? []).map((value) => value.length));
    return Math.ceil(longest * typePx * DIGIT) + 8;
  };
}

function drawMarks(drawn: uPlot, { marks, typePx, family, colour }: Look) {
  const pen = drawn.ctx;
  const scale = window.devicePixelRatio;
  pen.save();
  pen.font = `600 ${typePx * scale}px ${family}`;
  pen.textAlign = "center";
  for (const mark of marks()) {
    const left = drawn.valToPos(mark.at[0], "x", true);
    const top = drawn.valToPos(mark.at[1], "y", true);
    pen.beginPath();
    pen.arc(left, top, 5 * scale, 0, 2 * Math.PI);
    pen.fillStyle = colour(mark.colour);
    pen.fill();
    pen.fillStyle = colour("text");
    const half = pen.measureText(mark.label).width / 2;
    const { left: first, width: across } = drawn.bbox;
    const middle = Math.max(first + half, Math.min(first + across - half, left));
    pen.fillText(mark.label, middle, top - 11 * scale);
  }
  pen.restore();
}
