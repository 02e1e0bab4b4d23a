import { expect, test } from "vitest";
import { round, threeRounds, treeRound } from "./fixtures";
import { placeOf } from "./position";

test("a token is found by its index among emitted tokens", () => {
  const places = [0, 1, 2, 3, 4].map((position) => placeOf(threeRounds, position));
  expect(places).toEqual([
    { round: 0, slot: 0 },
    { round: 0, slot: 1 },
    { round: 0, slot: 2 },
    { round: 1, slot: 2 },
    { round: 2, slot: 0 },
  ]);
});

test("rejected and unverified tokens do not count", () => {
  expect(placeOf([treeRound], 1)).toEqual({ round: 0, slot: 4 });
  expect(placeOf([treeRound], 2)).toEqual({ round: 0, slot: 6 });
});

test("an index beyond the end, or before the start, has no place", () => {
  expect(placeOf(threeRounds, 5)).toBeNull();
  expect(placeOf(threeRounds, -1)).toBeNull();
  expect(placeOf([], 0)).toBeNull();
  expect(placeOf([round(0)], 0)).toBeNull();
});
