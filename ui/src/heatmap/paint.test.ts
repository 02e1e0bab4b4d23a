import { beforeEach, expect, test } from "vitest";
import type { DrafterKind } from "../bindings/DrafterKind";
import type { Round } from "../bindings/Round";
import { drafted, extra, round, treeRound } from "../trace/fixtures";
import * as layout from "./layout";
import { paint, type Colours } from "./paint";

const COLOURS: Colours = {
  accepted: "green",
  rejected: "orange",
  discarded: "grey",
  bonus: "blue",
  recovered: "amber",
  plain: "white",
  stroke: "black",
  label: "label",
  focus: "focus",
};

/** Canvas calls by name, each with the colours and strength that held. */
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
    height: layout.heightFor(5),
    rounds: rounds.length,
    tallest: 5,
    columnWidth: layout.COLUMN_WIDTH,
    right: rounds.length,
  };
  return {
    view: layout.clamp({ ...base, ...change }),
    rounds,
    hovered: null,
    selected: null,
  };
}

const named = (name: string) => calls.filter((call) => call.name === name);

beforeEach(() => {
  calls = [];
});

test("each outcome has a mark of its own besides its colour", () => {
  const rounds = [
    round(0, { drafted: [drafted("a", "accepted")], extra: extra("b", "bonus") }),
    round(1, {
      drafted: [drafted("x", "rejected"), drafted("y", "discarded")],
      extra: extra("c", "recovered"),
    }),
  ];
  paint(pen(), picture(rounds), COLOURS, 1);
  expect(named("setLineDash").some(({ args }) => String(args[0]) === "2,2")).toBe(true);
  expect(named("stroke").filter(({ stroke }) => stroke === "black")).toHaveLength(1);
  expect(named("arc")).toHaveLength(1);
  expect(named("closePath")).toHaveLength(1);
});

test("a likelier token is stronger in colour, and an unlikely one can still be seen", () => {
  const rounds = [1, 0.5, 0].map((acceptance, index) =>
    round(index, { drafted: [drafted("a", "accepted", { acceptance })] }),
  );
  paint(pen(), picture(rounds), COLOURS, 1);
  const strengths = named("fill")
    .filter(({ fill }) => fill === "green")
    .map(({ alpha }) => Number(alpha));
  expect(strengths[0]).toBe(1);
  expect(strengths[1]).toBeLessThan(1);
  expect(strengths[2]).toBeLessThan(strengths[1] ?? 0);
  expect(strengths[2]).toBeGreaterThan(0.1);
});

test("an n-gram's cells have round ends, recycling's a round top, a model's neither", () => {
  const by = (drafter: DrafterKind) => {
    calls = [];
    paint(
      pen(),
      picture([round(0, { drafted: [drafted("a", "accepted", { drafter })] })]),
      COLOURS,
      1,
    );
    return named("roundRect")[0]?.args[4];
  };
  expect(by("ngram")).toBeGreaterThan(2 * Number(by("model")));
  expect(by("recycling")).toEqual([by("ngram"), by("ngram"), by("model"), by("model")]);
});

test("guesses of the same depth are drawn beside each other, the accepted one widest", () => {
  paint(pen(), picture([treeRound], { columnWidth: layout.WIDEST_COLUMN }), COLOURS, 1);
  const cells = named("roundRect").map(({ args }) => args.slice(0, 3).map(Number));
  const [rejected, accepted, other] = cells.map(([x = 0, y = 0, width = 0]) => ({ x, y, width }));
  expect(accepted?.y).toBe(rejected?.y);
  expect(accepted?.x).toBeLessThan(rejected?.x ?? 0);
  expect(rejected?.x).toBeLessThan(other?.x ?? 0);
  expect(accepted?.width).toBeGreaterThan(rejected?.width ?? Infinity);
});

const many = Array.from({ length: 100_000 }, (_, index) =>
  round(index, {
    drafted: Array.from({ length: 4 }, () => drafted("a", "accepted")),
    extra: extra("b", "bonus"),
  }),
);

test("of 100,000 rounds only the visible ones are drawn", () => {
  const shown = picture(many);
  paint(pen(), shown, COLOURS, 1);
  const { first, last } = layout.visibleRounds(shown.view);
  expect(named("roundRect")).toHaveLength(4 * (last - first));
});

test("the whole of 100,000 rounds is drawn by pixels, not by rounds", () => {
  const shown = picture(many);
  paint(pen(), { ...shown, view: layout.fit(shown.view) }, COLOURS, 1);
  expect(named("roundRect")).toHaveLength(0);
  expect(named("fillRect").length).toBeGreaterThan(1000);
  expect(named("fillRect").length).toBeLessThan(10_000);
});
