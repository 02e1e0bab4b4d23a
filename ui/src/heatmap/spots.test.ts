import { expect, test } from "vitest";
import { drafted, extra, round, treeRound } from "../trace/fixtures";
import { hasBranches, lanesOf, slotAt, spotsOf } from "./spots";

const NARROW = 10;
const WIDE = 60;
const whole = (row: number) => ({ row, from: 0, to: 1, low: 0, high: 1 });

test("a chain has a token per row, with the extra token on top", () => {
  const chain = round(0, {
    drafted: [drafted("a", "accepted"), drafted("b", "accepted")],
    extra: extra("c", "bonus"),
  });
  expect(spotsOf(chain, NARROW)).toEqual([0, 1, 2].map(whole));
});

test("in a wide column tokens of the same depth stand beside each other, the accepted one first", () => {
  expect(lanesOf(treeRound)).toBe(3);
  const spots = spotsOf(treeRound, WIDE);
  const lanes = spots.map(({ row, from, to }) => [row, Math.round(3 * from), Math.round(3 * to)]);
  expect(lanes).toEqual([
    [0, 1, 2],
    [0, 0, 1],
    [0, 2, 3],
    [1, 1, 2],
    [1, 0, 1],
    [1, 2, 3],
    [2, 0, 1],
  ]);
});

test("in a narrow column the accepted path takes most of the width, with ticks beside it", () => {
  const spots = spotsOf(treeRound, NARROW);
  const [first, path, other] = spots;
  expect(path?.to).toBeGreaterThan(0.5);
  expect(path).toMatchObject({ from: 0, low: 0, high: 1 });
  for (const tick of [first, other]) expect(tick).toMatchObject({ from: path?.to, to: 1 });
  expect(first?.high).toBe(other?.low);
});

test("a column shows branches as soon as each token has room", () => {
  expect(hasBranches(3, 23)).toBe(false);
  expect(hasBranches(3, 24)).toBe(true);
  expect(hasBranches(1, 300)).toBe(false);
});

test("siblings stand together", () => {
  const held = round(0, {
    drafted: [
      drafted("a", "discarded"),
      drafted("b", "accepted"),
      drafted("a1", "discarded", { parent: 0 }),
      drafted("b1", "discarded", { parent: 1 }),
      drafted("b2", "discarded", { parent: 1 }),
    ],
  });
  const row = spotsOf(held, WIDE).map(({ from }, slot) => ({ from, slot }));
  const order = row.slice(2).sort((a, b) => a.from - b.from);
  expect(order.map(({ slot }) => slot)).toEqual([3, 4, 2]);
});

test.each([NARROW, WIDE])("each token is found in the middle of its spot at width %d", (width) => {
  const spots = spotsOf(treeRound, width);
  spots.forEach(({ row, from, to, low, high }, slot) =>
    expect(slotAt(spots, row, (from + to) / 2, (low + high) / 2)).toBe(slot),
  );
  expect(slotAt(spots, 3, 0.5, 0.5)).toBeNull();
});
