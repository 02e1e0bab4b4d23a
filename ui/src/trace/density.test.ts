import { expect, test } from "vitest";
import { densityOf } from "./density";
import { threeRounds, treeRound } from "./fixtures";

test("a strip counts the tokens that ended in each interval", () => {
  const rounds = [...threeRounds, { ...treeRound, index: 3, at_ms: 200 }];
  expect(densityOf(rounds, 200, 4)).toEqual([
    { accepted: 0, rejected: 0, discarded: 0 },
    { accepted: 0, rejected: 0, discarded: 0 },
    { accepted: 2, rejected: 1, discarded: 1 },
    { accepted: 2, rejected: 2, discarded: 2 },
  ]);
});

test("a trace without times is one interval", () => {
  expect(
    densityOf(
      threeRounds.map((round) => ({ ...round, at_ms: 0 })),
      0,
      2,
    ),
  ).toEqual([
    { accepted: 0, rejected: 0, discarded: 0 },
    { accepted: 2, rejected: 1, discarded: 1 },
  ]);
});
