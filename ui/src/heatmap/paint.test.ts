import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { DrafterKind } from "../bindings/DrafterKind";
import type { Round } from "../bindings/Round";
import { drafted, extra, round, treeRound } from "../trace/fixtures";
import { rowsOf } from "../trace/tree";
import * as layout from "./layout";
import { Synthesis } from "../trace/synthetic";
import { FAINTEST } from "./cells";
import type { Colours } from "./colours";
import { Painter, type Picture } from "./paint";

const COLOURS: Colours = {
  accepted: "green",
  rejected: "orange",
  discarded: "grey",
  bonus: "blue",
  recovered: "amber",
  plain: "white",
  casing: "black",
  branch: "branch",
  label: "label",
  text: "text",
};

/** Canvas calls by name, each with the current colours and opacity. */
let calls: { name: string; args: unknown[]; fill: unknown; stroke: unknown; alpha: unknown }[];

function pen(): CanvasRenderingContext2D {
  const state: Record<string, unknown> = { globalAlpha: 1 };
  return new Proxy(state, {
    get: (held, name: string) =>
      name in held
        ? held[name]
        : (...args: unknown[]) =>
            calls.push({
              name,
              args,
              fill: held["fillStyle"],
              stroke: held["strokeStyle"],
              alpha: held["globalAlpha"],
            }),
  }) as unknown as CanvasRenderingContext2D;
}

function picture(rounds: readonly Round[], change: Partial<layout.View> = {}) {
  const base = {
    width: 340,
    height: layout.HEIGHT,
    rounds: rounds.length,
    tallest: 5,
    columnWidth: layout.COLUMN_WIDTH,
    right: rounds.length,
    opened: null,
  };
  return { view: layout.clamp({ ...base, ...change }), rounds };
}

function paint(shown: Picture) {
  new Painter(pen()).paint(shown, COLOURS, 1);
}

const named = (name: string) => calls.filter((call) => call.name === name);

beforeEach(() => {
  calls = [];
  lines = [];
  vi.stubGlobal("Path2D", FakePath);
});
afterEach(() => {
  vi.unstubAllGlobals();
});

const cells = () => calls.filter(({ name, fill }) => name === "fill" && fill !== "blue");

test("each outcome has a mark of its own besides its colour", () => {
  const rounds = [
    round(0, { drafted: [drafted("a", "accepted")], extra: extra("b", "bonus") }),
    round(1, {
      drafted: [drafted("x", "rejected"), drafted("y", "discarded")],
      extra: extra("c", "recovered"),
    }),
  ];
  paint(picture(rounds));
  expect(named("setLineDash").some(({ args }) => String(args[0]) === "2,2")).toBe(true);
  const strokes = named("stroke").map(({ stroke }) => stroke);
  expect(strokes.filter((stroke) => stroke === "green")).toHaveLength(1);
  expect(strokes.filter((stroke) => stroke === "black")).toHaveLength(1);
  expect(strokes.filter((stroke) => stroke === "orange")).toHaveLength(2);
  expect(named("arc")).toHaveLength(1);
  expect(named("closePath")).toHaveLength(1);
});

test.each(["accepted", "rejected"] as const)(
  "the opacity of a token that was %s is its acceptance probability, with a visible minimum",
  (outcome) => {
    const rounds = [1, 0.5, 0].map((acceptance, index) =>
      round(index, { drafted: [drafted("a", outcome, { acceptance })] }),
    );
    paint(picture(rounds));
    const strengths = cells().map(({ alpha }) => Number(alpha));
    expect(strengths).toEqual([1, (1 + FAINTEST) / 2, FAINTEST]);
  },
);

test("the shape of a token shows its drafter", () => {
  const by = (drafter: DrafterKind, staged = false) => {
    calls = [];
    const held = round(0, { drafted: [drafted("a", "accepted", { drafter })], staged });
    paint(picture([held]));
    return named("roundRect")[0]?.args[4];
  };
  expect(by("ngram")).toBeGreaterThan(2 * Number(by("model")));
  expect(by("recycling")).toEqual([by("ngram"), by("ngram"), by("model"), by("model")]);
  expect(by("model", true)).toBeUndefined();
  const corners = named("lineTo").length;
  expect(corners).toBeGreaterThanOrEqual(5);
  expect(by("head")).toBeUndefined();
  // Four corners instead of five, for the same number of strokes.
  expect(named("lineTo")).toHaveLength((corners * 4) / 5);
  const ends = () => named("lineTo").map(({ args }) => Number(args[0]));
  const right = Math.max(...ends());
  expect(by("forced")).toBeUndefined();
  // One point at the right instead of a whole side.
  expect(ends().filter((x) => x === right)).toHaveLength(1);
});

/** Lines of branches, by their end points. */
let lines: string[];
class FakePath {
  moveTo(x: number, y: number) {
    lines.push(`from ${Math.round(x)} ${Math.round(y)}`);
  }
  bezierCurveTo(...to: number[]) {
    lines.push(`to ${to.slice(4).map(Math.round).join(" ")}`);
  }
}

test("a tree in a wide column has a line from each token to those that follow it", () => {
  paint(picture([treeRound], { columnWidth: 90 }));
  // Lines to the second row, two of them to siblings; the first row follows the text.
  expect(lines.filter((line) => line.startsWith("to"))).toHaveLength(3);
  expect(new Set(lines.filter((line) => line.startsWith("from"))).size).toBe(2);
  const stroked = named("stroke").map(({ stroke }) => stroke);
  expect(stroked).toContain("branch");
  expect(stroked).toContain("green");
});

test("a tree in a narrow column has no lines, and no marks beside the accepted path", () => {
  paint(picture([treeRound]));
  expect(cells().map(({ fill }) => fill)).toEqual(["green", "green"]);
  const ticks = named("fillRect").filter(({ alpha }) => alpha !== 1);
  expect(ticks.map(({ fill }) => fill).sort()).toEqual(["grey", "grey", "orange", "orange"]);
  expect(named("stroke").map(({ stroke }) => stroke)).not.toContain("black");
});

test("a round that fills the plot has its tokens' text in its cells", () => {
  const rounds = [
    round(0, {
      drafted: [
        drafted(" lantern", "accepted", { acceptance: 0.81 }),
        drafted("\n", "rejected"),
        drafted("x".repeat(4096), "discarded"),
        drafted("\u0000", "discarded"),
      ],
      extra: extra("", "recovered"),
    }),
  ];
  paint(picture(rounds, { columnWidth: 1e9 }));
  const written = named("fillText").map(({ args }) => String(args[0]));
  expect(written).toContain("lantern");
  expect(written).toContain("81%");
  expect(written).toContain("↵");
  const long = written.find((text) => text.startsWith("xxx"));
  expect(long?.endsWith("…")).toBe(true);
  expect(long?.length).toBeLessThan(50);
});

test("rounds of every shape draw: none drafted, no extra token, trees 16 deep and 8 wide, a missing round", () => {
  const rounds = [
    round(0),
    round(1, { draft_length: 0 }),
    round(2, { drafted: [drafted("", "accepted", { acceptance: null })] }),
    round(9, { drafted: [drafted("a", "rejected", { parent: 5 })], extra: extra("", "recovered") }),
    ...new Synthesis(1, 100).take(300),
  ];
  const tallest = Math.max(...rounds.map(rowsOf));
  for (const columnWidth of [1 / 2, 1, 4, 10, 70, 1e9]) {
    for (const right of [2, 3, 4, 5, 40, 110, 173, 304]) {
      const shown = picture(rounds, { columnWidth, right, tallest });
      for (const opened of [null, { round: right - 1, lanes: 8 }]) {
        calls = [];
        paint({ ...shown, view: layout.open(shown.view, opened) });
        const boxes = calls.filter(({ name }) => name === "roundRect" || name === "fillRect");
        const sizes = boxes.map(({ args }) => args.slice(0, 4).map(Number));
        expect(sizes.flat().every(Number.isFinite)).toBe(true);
        expect(sizes.every(([, , wide = 0, high = -1]) => wide > 0 && high >= 0)).toBe(true);
      }
    }
  }
});

const many = Array.from({ length: 100_000 }, (_, index) =>
  round(index, {
    drafted: Array.from({ length: 4 }, () => drafted("a", "accepted")),
    extra: extra("b", "bonus"),
  }),
);

test("of 100,000 rounds only the visible ones are drawn", () => {
  const shown = picture(many);
  paint(shown);
  const { first, last } = layout.visibleRounds(shown.view);
  expect(cells()).toHaveLength(4 * (last - first));
});

test("the whole of 100,000 rounds is drawn by pixels, not by rounds", () => {
  const shown = picture(many);
  paint({ ...shown, view: layout.fit(shown.view) });
  expect(named("roundRect")).toHaveLength(0);
  expect(named("fillRect").length).toBeGreaterThan(1000);
  expect(named("fillRect").length).toBeLessThan(10_000);
});

test("where many rounds share a pixel, each row is divided by outcomes", () => {
  const outcomes = ["accepted", "accepted", "rejected", "discarded"] as const;
  const rounds = Array.from({ length: 6400 }, (_, index) =>
    round(index, {
      drafted: index % 2 ? [drafted("a", outcomes[(index >> 1) % 4] ?? "accepted")] : [],
    }),
  );
  paint(picture(rounds, { columnWidth: 1 / 16 }));
  const height = (colour: string) =>
    Number(named("fillRect").find(({ fill }) => fill === colour)?.args[3]);
  const room = layout.rowHeight(picture(rounds).view) - 2;
  expect(height("green")).toBeCloseTo(room / 4);
  expect(height("orange")).toBeCloseTo(room / 8);
  expect(height("grey")).toBeCloseTo(room / 8);
});

test.each([10, 1 / 8])(
  "while a reply is followed at %d pixels a round, only new parts are drawn",
  (columnWidth) => {
    const rounds = new Synthesis(2, 100).take(8000);
    const tallest = 17;
    const at = (length: number) =>
      picture(rounds, { rounds: length, right: length, columnWidth, tallest });
    const painter = new Painter(pen());
    painter.paint(at(7000), COLOURS, 1);
    const whole = calls.length;
    calls = [];
    painter.paint(at(7008), COLOURS, 1);
    const [moved] = named("drawImage");
    expect(moved?.args[1]).toBe(layout.GUTTER + Math.round(8 * columnWidth));
    expect(calls.length).toBeLessThan(whole / 2);
    calls = [];
    painter.paint(at(7008), COLOURS, 1);
    expect(calls.length).toBeLessThan(whole / 10);
  },
);

test("a change of the width, the colours or the reply, or a half pixel, redraws everything", () => {
  const rounds = new Synthesis(2, 100).take(500);
  const painter = new Painter(pen());
  const shown = picture(rounds.slice(0, 400));
  const again = (next: Picture, colours = COLOURS, scale = 1) => {
    calls = [];
    painter.paint(next, colours, scale);
    return named("fillText").some(({ fill }) => fill === "label");
  };
  expect(again(shown)).toBe(true);
  expect(again(shown)).toBe(false);
  expect(again({ ...shown, view: layout.zoom(shown.view, 2, 100) })).toBe(true);
  expect(again(shown)).toBe(true);
  expect(again({ ...shown, view: layout.scroll(shown.view, -5) })).toBe(true);
  expect(again(shown, { ...COLOURS })).toBe(true);
  expect(again(picture(rounds))).toBe(true);
  expect(again(picture(rounds), COLOURS, 1.25)).toBe(true);
  painter.repaintAll();
  expect(again(picture(rounds), COLOURS, 1.25)).toBe(true);
});
