import { expect, test } from "vitest";
import { drafted, extra, round, threeRounds, treeRound } from "../trace/fixtures";
import { above, beside, nearest, slotAt, spotsOf } from "./spots";

const rounds = [threeRounds[0] ?? round(0), { ...treeRound, index: 1 }, round(2)];

test("a chain's tokens fill a row each, the extra token on top", () => {
  const chain = round(0, {
    drafted: [drafted("a", "accepted"), drafted("b", "accepted")],
    extra: extra("c", "bonus"),
  });
  expect(spotsOf(chain)).toEqual([0, 1, 2].map((row) => ({ row, from: 0, to: 1 })));
});

test("guesses of the same depth share a row, the accepted one at the left and widest", () => {
  expect(spotsOf(treeRound)).toEqual([
    { row: 0, from: 0.5, to: 0.75 },
    { row: 0, from: 0, to: 0.5 },
    { row: 0, from: 0.75, to: 1 },
    { row: 1, from: 0.5, to: 0.75 },
    { row: 1, from: 0, to: 0.5 },
    { row: 1, from: 0.75, to: 1 },
    { row: 2, from: 0, to: 1 },
  ]);
});

test("the first guess is widest where none was accepted", () => {
  const missed = round(0, {
    drafted: [drafted("a", "rejected"), drafted("b", "rejected")],
    extra: extra("c", "recovered"),
  });
  const [first, second] = spotsOf(missed);
  expect(first).toMatchObject({ row: 0, from: 0 });
  expect(second).toMatchObject({ row: 0, to: 1 });
  expect(first?.to).toBeGreaterThan(0.5);
});

test("each token is found in the middle of its spot, and none beside the tree", () => {
  const spots = spotsOf(treeRound);
  spots.forEach(({ row, from, to }, slot) =>
    expect(slotAt(spots, row, (from + to) / 2)).toBe(slot),
  );
  expect(slotAt(spots, 3, 0.5)).toBeNull();
});

test("the keys walk the guesses of a row, then to the next round, and back the same way", () => {
  const row = [
    { round: 0, slot: 1 },
    { round: 1, slot: 4 },
    { round: 1, slot: 3 },
    { round: 1, slot: 5 },
  ];
  for (const [at, place] of row.entries()) {
    if (at < 3) expect(beside(rounds, place, 1)).toEqual(row[at + 1]);
    expect(beside(rounds, place, -1)).toEqual(row[Math.max(0, at - 1)]);
  }
});

test("the keys climb a round to its extra token and no further", () => {
  expect(above(rounds, { round: 1, slot: 0 }, 1)).toEqual({ round: 1, slot: 3 });
  expect(above(rounds, { round: 1, slot: 3 }, 1)).toEqual({ round: 1, slot: 6 });
  expect(above(rounds, { round: 1, slot: 6 }, 1)).toEqual({ round: 1, slot: 6 });
  expect(above(rounds, { round: 1, slot: 6 }, -1)).toEqual({ round: 1, slot: 4 });
});

test("a round without tokens has none to go to", () => {
  expect(nearest(rounds, 2, 0, 0)).toBeNull();
});
