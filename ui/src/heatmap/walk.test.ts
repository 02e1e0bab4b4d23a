import { expect, test } from "vitest";
import { round, threeRounds, treeRound } from "../trace/fixtures";
import { above, beside, nearest } from "./walk";

const rounds = [threeRounds[0] ?? round(0), { ...treeRound, index: 1 }, round(2)];

test("the keys move through the tokens of a row, then to the next round, and back the same way", () => {
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

test("the keys move up a round to its extra token and no further", () => {
  expect(above(rounds, { round: 1, slot: 0 }, 1)).toEqual({ round: 1, slot: 3 });
  expect(above(rounds, { round: 1, slot: 3 }, 1)).toEqual({ round: 1, slot: 6 });
  expect(above(rounds, { round: 1, slot: 6 }, 1)).toEqual({ round: 1, slot: 6 });
  expect(above(rounds, { round: 1, slot: 6 }, -1)).toEqual({ round: 1, slot: 4 });
});

test("a round without tokens is skipped", () => {
  expect(nearest(rounds, 2, 0, 0)).toBeNull();
  expect(beside(rounds, { round: 1, slot: 6 }, 1)).toEqual({ round: 1, slot: 6 });
  const around = [...rounds, { ...treeRound, index: 3 }];
  expect(beside(around, { round: 1, slot: 6 }, 1)).toEqual({ round: 3, slot: 6 });
});

test("a place that no longer exists leads nowhere", () => {
  expect(beside(rounds, { round: 7, slot: 0 }, 1)).toBeNull();
  expect(above(rounds, { round: 0, slot: 9 }, 1)).toBeNull();
  expect(nearest([], 0, 0, 0)).toBeNull();
});
