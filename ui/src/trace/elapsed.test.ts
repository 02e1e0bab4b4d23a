import { expect, test } from "vitest";
import { elapsedUntil } from "./elapsed";
import { threeRounds } from "./fixtures";
import { Offsets } from "./offsets";

test("the rounds of a text's beginning are counted whole, and no later ones", () => {
  const offsets = new Offsets();
  for (const round of threeRounds) offsets.add(round);
  const until = (letters: number) => elapsedUntil(threeRounds, offsets, letters);
  expect([0, 1, 5, 6, 7, 8, 99].map(until)).toEqual([0, 10, 10, 20, 20, 30, 30]);
});
