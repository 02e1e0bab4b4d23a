import { describe, expect, test } from "vitest";
import * as layout from "./layout";
import type { View } from "./layout";

const whole = (row: number) => ({ row, from: 0, to: 1, low: 0, high: 1 });

const view = (change: Partial<View> = {}): View =>
  layout.clamp({
    width: 340,
    height: layout.HEIGHT,
    rounds: 1000,
    tallest: 5,
    columnWidth: layout.COLUMN_WIDTH,
    right: 1000,
    opened: null,
    ...change,
  });

test("a point inside a cell is found in that cell", () => {
  const shown = view();
  for (const round of [975, 990, 999]) {
    for (const row of [0, 2, 4]) {
      const spot = { row, from: 0.5, to: 0.75, low: 0.2, high: 0.6 };
      const cell = layout.cellRect(shown, round, spot);
      const middle = [cell.x + cell.width / 2, cell.y + cell.height / 2] as const;
      const point = layout.pointAt(shown, ...middle);
      expect(point).toMatchObject({ round, row });
      expect(point?.across).toBeCloseTo(0.625);
      expect(point?.up).toBeCloseTo(0.4);
    }
  }
});

test("beside the plot there is no cell", () => {
  expect(layout.pointAt(view(), layout.GUTTER - 1, 50)).toBeNull();
  expect(layout.pointAt(view({ rounds: 3, right: 3 }), 100, 50)).toBeNull();
});

test("the first position is the lowest row", () => {
  const [low, high] = [0, 3].map((row) => layout.cellRect(view(), 990, whole(row)));
  expect(low?.y).toBeGreaterThan(high?.y ?? Infinity);
});

test("only as many rounds are visible as fit, for any length", () => {
  const long = view({ rounds: 100_000, right: 100_000 });
  const { first, last } = layout.visibleRounds(long);
  expect(last).toBe(100_000);
  expect(last - first).toBeLessThanOrEqual(Math.ceil(layout.capacity(long)) + 1);
});

test("a short reply stands at the right, where its next round appears", () => {
  const shown = view({ rounds: 4, right: 4 });
  const newest = layout.cellRect(shown, 3, whole(0));
  expect(newest.x + newest.width).toBe(layout.GUTTER + layout.plotWidth(shown));
  expect(layout.visibleRounds(shown)).toEqual({ first: 0, last: 4 });
  const grown = layout.withRounds(shown, 5, 5);
  expect(layout.columnX(grown, 3)).toBe(newest.x - layout.COLUMN_WIDTH);
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

  test("a view that was scrolled back keeps its position", () => {
    const back = layout.scroll(view(), -200);
    expect(layout.follows(back)).toBe(false);
    expect(layout.withRounds(back, 1010, 5).right).toBe(back.right);
  });

  test("scrolling stops at both ends of the reply", () => {
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

  test("zooming out stops when the whole reply fits", () => {
    const whole = layout.zoom(view(), 1e-9, 100);
    expect(layout.visibleRounds(whole)).toEqual({ first: 0, last: 1000 });
    expect(whole).toEqual(layout.fit(view()));
  });

  test("zooming in stops when one round fills the plot", () => {
    const one = layout.zoom(view(), 1e9, 100);
    expect(one.columnWidth).toBe(layout.plotWidth(one));
    expect(layout.visibleRounds(one)).toEqual({ first: 999, last: 1000 });
  });

  test("every step ends columns on pixels, or pixels on columns, and changes something", () => {
    let shown = layout.fit(view({ rounds: 100_000, right: 100_000 }));
    while (shown.columnWidth < layout.widestColumn(shown)) {
      const wider = layout.zoom(shown, 1.18, 200);
      expect(wider.columnWidth).toBeGreaterThan(shown.columnWidth);
      const { columnWidth } = wider;
      const whole = columnWidth >= 1 ? columnWidth : 1 / columnWidth;
      expect(whole).toBeCloseTo(Math.round(whole), 9);
      expect(layout.zoom(wider, 1 / 1.18, 200).columnWidth).toBeLessThan(columnWidth);
      shown = wider;
    }
  });

  test("a round can be shown alone", () => {
    expect(layout.visibleRounds(layout.only(view(), 300))).toEqual({ first: 300, last: 301 });
  });

  test("a view of the whole reply keeps showing all of it", () => {
    let shown = layout.fit(view());
    for (let rounds = 1000; rounds < 5000; rounds += 13) {
      shown = layout.withRounds(shown, rounds, 5);
      expect(layout.visibleRounds(shown)).toEqual({ first: 0, last: rounds });
    }
  });

  test("zooming a short reply out keeps the width of its columns", () => {
    const short = view({ rounds: 5, right: 5 });
    expect(layout.zoom(short, 0.01, 100).columnWidth).toBe(layout.COLUMN_WIDTH);
  });
});

test("revealing a round scrolls as little as possible", () => {
  const shown = view();
  expect(layout.reveal(shown, 990)).toEqual(shown);
  const early = layout.reveal(shown, 10);
  expect(layout.leftColumn(early)).toBeCloseTo(10);
  expect(layout.reveal(early, 500).right).toBe(501);
});

describe("an opened column", () => {
  const back = layout.scroll(view(), -300);
  const opened = layout.open(back, { round: 690, lanes: 4 });

  test("is as wide as its siblings need, and moves the others aside", () => {
    expect(layout.widthOf(opened, 690)).toBe(4 * layout.LANE_WIDTH);
    expect(layout.columnX(opened, 691)).toBe(layout.columnX(opened, 690) + 4 * layout.LANE_WIDTH);
    expect(layout.columnX(opened, 690)).toBe(layout.columnX(opened, 689) + layout.COLUMN_WIDTH);
  });

  test("leaves room for its neighbours however wide its tree", () => {
    const wide = layout.open(back, { round: 690, lanes: 100 });
    expect(layout.widthOf(wide, 690)).toBeLessThan(0.9 * layout.plotWidth(wide));
  });

  test("is not opened for a chain, nor where many rounds share a pixel", () => {
    expect(layout.open(back, { round: 690, lanes: 1 }).opened).toBeNull();
    const all = { ...layout.fit(back), opened: { round: 690, lanes: 4 } };
    expect(layout.widthOf(all, 690)).toBe(all.columnWidth);
  });

  test("is found under the pointer over its whole width, and its neighbours beside it", () => {
    const x = layout.columnX(opened, 690);
    const at = (add: number) => layout.pointAt(opened, x + add, 50);
    expect([-1, 1, 40, 71, 73].map((add) => at(add)?.round)).toEqual([689, 690, 690, 690, 691]);
    expect(at(36)?.across).toBeCloseTo(0.5);
  });

  test("stays in view when it opens at either edge", () => {
    const { first, last } = layout.visibleRounds(back);
    for (const round of [first, last - 1]) {
      const shown = layout.reveal(layout.open(back, { round, lanes: 8 }), round);
      const x = layout.columnX(shown, round);
      expect(x).toBeGreaterThanOrEqual(layout.GUTTER - 1);
      expect(x + layout.widthOf(shown, round)).toBeLessThanOrEqual(shown.width);
    }
  });

  test("lets the newest round be followed past it", () => {
    let shown = layout.open(view(), { round: 998, lanes: 6 });
    for (let rounds = 1001; rounds < 1060; rounds += 1) {
      shown = layout.withRounds(shown, rounds, 5);
      const end = layout.columnX(shown, rounds - 1) + layout.widthOf(shown, rounds - 1);
      expect(end).toBeLessThanOrEqual(layout.GUTTER + layout.plotWidth(shown));
      expect(end).toBeGreaterThan(layout.GUTTER + layout.plotWidth(shown) - layout.COLUMN_WIDTH);
    }
  });
});

test("the scale follows the rounds in view, and shrinks by a few rows or not at all", () => {
  const rows = Array.from({ length: 1000 }, (_, round) => (round === 500 ? 16 : 6));
  const back = layout.reveal(view(), 500);
  expect(layout.scaleFor(back, rows)).toBe(16);
  expect(layout.scaleFor({ ...view(), tallest: 16 }, rows)).toBe(6);
  expect(layout.scaleFor({ ...view(), tallest: 8 }, rows)).toBe(8);
  expect(layout.scaleFor(view(), [])).toBe(5);
  expect(layout.scaleFor({ ...layout.fit(view()), tallest: 5 }, rows)).toBe(16);
});

test("longer drafts make lower rows on a canvas that keeps its height", () => {
  const [short, long] = [5, 17].map((tallest) => layout.withRounds(view(), 1000, tallest));
  expect(long?.height).toBe(short?.height);
  expect(layout.rowHeight(long ?? view())).toBeLessThan(layout.rowHeight(short ?? view()));
});
