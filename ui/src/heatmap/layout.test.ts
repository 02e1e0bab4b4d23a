import { describe, expect, test } from "vitest";
import * as layout from "./layout";
import type { View } from "./layout";

const whole = (row: number) => ({ row, from: 0, to: 1 });

const view = (change: Partial<View> = {}): View =>
  layout.clamp({
    width: 340,
    height: layout.heightFor(5),
    rounds: 1000,
    tallest: 5,
    columnWidth: layout.COLUMN_WIDTH,
    right: 1000,
    ...change,
  });

test("a point inside a cell is found in that cell", () => {
  const shown = view();
  for (const round of [975, 990, 999]) {
    for (const row of [0, 2, 4]) {
      const cell = layout.cellRect(shown, round, { row, from: 0.5, to: 0.75 });
      const middle = [cell.x + cell.width / 2, cell.y + cell.height / 2] as const;
      const point = layout.pointAt(shown, ...middle);
      expect(point).toMatchObject({ round, row });
      expect(point?.across).toBeCloseTo(0.625);
    }
  }
});

test("beside the plot there is no cell", () => {
  expect(layout.pointAt(view(), layout.GUTTER - 1, 50)).toBeNull();
  expect(layout.pointAt(view({ rounds: 3, right: 3 }), 200, 50)).toBeNull();
});

test("the first position is the lowest row", () => {
  const [low, high] = [0, 3].map((row) => layout.cellRect(view(), 990, whole(row)));
  expect(low?.y).toBeGreaterThan(high?.y ?? Infinity);
});

test("only as many rounds are visible as fit, however long the reply is", () => {
  const long = view({ rounds: 100_000, right: 100_000 });
  const { first, last } = layout.visibleRounds(long);
  expect(last).toBe(100_000);
  expect(last - first).toBeLessThanOrEqual(Math.ceil(layout.capacity(long)) + 1);
});

test("a reply that fits starts at the left", () => {
  expect(layout.leftColumn(view({ rounds: 4, right: 4 }))).toBe(0);
});

test("while following, the leftmost column is a whole one and the newest round is inside", () => {
  const shown = view();
  expect(Number.isInteger(layout.leftColumn(shown))).toBe(true);
  const newest = layout.cellRect(shown, 999, whole(0));
  expect(newest.x + newest.width).toBeLessThanOrEqual(shown.width - layout.PADDING + 1e-6);
});

describe("following", () => {
  test("a view at the newest round stays there when rounds arrive", () => {
    expect(layout.withRounds(view(), 1010, 5).right).toBe(1010);
  });

  test("a view that was scrolled back stays where it is", () => {
    const back = layout.scroll(view(), -200);
    expect(layout.follows(back)).toBe(false);
    expect(layout.withRounds(back, 1010, 5).right).toBe(back.right);
  });

  test("scrolling cannot leave the reply on either side", () => {
    expect(layout.leftColumn(layout.scroll(view(), -1e9))).toBe(0);
    expect(layout.scroll(view(), 1e9).right).toBe(1000);
  });
});

describe("zooming", () => {
  test("the round under the pointer stays under it", () => {
    const back = layout.scroll(view(), -300);
    const x = 150;
    const round = (at: View) => layout.leftColumn(at) + (x - layout.GUTTER) / at.columnWidth;
    expect(round(layout.zoom(back, 1.5, x))).toBeCloseTo(round(back));
  });

  test("zooming out ends where the whole reply fits", () => {
    const whole = layout.zoom(view(), 1e-9, 100);
    expect(layout.visibleRounds(whole)).toEqual({ first: 0, last: 1000 });
    expect(whole).toEqual(layout.fit(view()));
  });

  test("zooming in ends at the widest column", () => {
    expect(layout.zoom(view(), 1e9, 100).columnWidth).toBe(layout.WIDEST_COLUMN);
  });

  test("a short reply cannot be stretched by zooming out", () => {
    const short = view({ rounds: 5, right: 5 });
    expect(layout.zoom(short, 0.01, 100).columnWidth).toBe(layout.COLUMN_WIDTH);
  });
});

test("revealing a round moves the view no further than needed", () => {
  const shown = view();
  expect(layout.reveal(shown, 990)).toEqual(shown);
  const early = layout.reveal(shown, 10);
  expect(layout.leftColumn(early)).toBeCloseTo(10);
  expect(layout.reveal(early, 500).right).toBe(501);
});

test("longer drafts make lower rows once the canvas is as tall as it gets", () => {
  const [short, long] = [5, 17].map((tallest) =>
    layout.rowHeight(view({ tallest, height: layout.heightFor(tallest) })),
  );
  expect(long).toBeLessThan(short ?? 0);
  expect(layout.heightFor(17)).toBe(layout.heightFor(12));
});
