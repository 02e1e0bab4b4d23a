import { expect, test } from "vitest";
import { round, threeRounds, treeRound } from "./fixtures";
import { tokenRefAt } from "./tokenRef";

test("a token is found by its index among emitted tokens", () => {
  const places = [0, 1, 2, 3, 4].map((position) => tokenRefAt(threeRounds, position));
  expect(places).toEqual([
    { round: 0, slot: 0 },
    { round: 0, slot: 1 },
    { round: 0, slot: 2 },
    { round: 1, slot: 2 },
    { round: 2, slot: 0 },
  ]);
});

test("rejected and unverified tokens do not count", () => {
  expect(tokenRefAt([treeRound], 1)).toEqual({ round: 0, slot: 4 });
  expect(tokenRefAt([treeRound], 2)).toEqual({ round: 0, slot: 6 });
});

test("an index beyond the end, or before the start, is no token", () => {
  expect(tokenRefAt(threeRounds, 5)).toBeNull();
  expect(tokenRefAt(threeRounds, -1)).toBeNull();
  expect(tokenRefAt([], 0)).toBeNull();
  expect(tokenRefAt([round(0)], 0)).toBeNull();
});
