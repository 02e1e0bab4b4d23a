/** uPlot's options for a plot in the page's colours and fonts. */
import type uPlot from "uplot";
import { rangeOf, short, type PlotAxis, type PlotMark, type PlotSeries } from "./plot";

/** Width of a digit relative to its height. */
const DIGIT = 0.62;
/** Largest distance of the pointer from a series that is read. */
const NEAR_PX = 24;
/** Space above the highest point for its mark, relative to the plot's height. */
const HEADROOM = 0.06;
/** Opacity of a quiet line. */
const QUIET_ALPHA = 0.35;
const WHOLE = [1, 2, 4, 5, 10, 20, 50, 100, 200, 500, 1000];

export interface Look {
  series: readonly PlotSeries[];
  x: PlotAxis;
  y: PlotAxis;
  /** Called with every drawing. */
  marks: () => readonly PlotMark[];
  /** Font size in whole pixels: uPlot accepts no others. */
  typePx: number;
  family: string;
  /** CSS value of a theme colour. */
  colour: (name: string) => string;
}

/** Options of a plot; `onread` receives the index of the x under the cursor, or null. */
export function optionsOf(
  look: Look,
  size: { width: number; height: number },
  onread: (index: number | null) => void,
): uPlot.Options {
  const { series, x, y, typePx, family, colour } = look;
  return {
    ...size,
    padding: [typePx * 1.4, typePx, 0, 0],
    legend: { show: false },
    cursor: {
      y: false,
      drag: { x: false, y: false, setScale: false },
      // Series with other x are read at their nearest point, within a limit.
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
    // Unlike other lengths, uPlot expects this one in device pixels.
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

/** Width of the longest value. uPlot's first call passes no values, unlike its types say. */
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
