import { expect, test } from "vitest";
import { summary, threeRounds } from "./fixtures";
import { shownOf } from "./shown";
import { statisticsOf } from "./statistics";

const counted = (rounds: typeof threeRounds) => ({ rounds, statistics: statisticsOf(rounds) });
const stored = summary();

test("a growing reply shows its current speed, a complete one its mean speed", () => {
  const growing = shownOf(counted(threeRounds), null);
  expect(growing).toMatchObject({ whole: false, rate: growing?.statistics.tokensPerSecond });
  expect(shownOf(counted(threeRounds), stored)).toMatchObject({ whole: true, rate: 100 });
});

test("a replayed reply shows the rounds so far, not its summary", () => {
  const replayed = shownOf(counted(threeRounds.slice(0, 2)), stored);
  expect(replayed).toMatchObject({ whole: false });
  expect(replayed?.statistics.rounds).toBe(2);
});

test("without rounds a reply has the numbers of its summary", () => {
  const found = shownOf(counted([]), stored);
  expect(found).toMatchObject({ whole: true, rate: 100 });
  expect(found?.statistics).toMatchObject({
    rounds: 3,
    accepted: 2,
    tokenMs: null,
    byPosition: [],
  });
  expect(shownOf(null, stored)).toEqual(found);
});

test("a reply without a round has no numbers", () => {
  expect(shownOf(counted([]), null)).toBeNull();
  expect(shownOf(null, summary({ rounds: 0, tokens: 0 }))).toBeNull();
});
