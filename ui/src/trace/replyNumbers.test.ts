import { expect, test } from "vitest";
import { summary, threeRounds } from "./fixtures";
import { replyNumbers } from "./replyNumbers";
import { statisticsOf } from "./statistics";

const counted = (rounds: typeof threeRounds) => ({ rounds, statistics: statisticsOf(rounds) });
const stored = summary();

test("a growing reply shows its current speed, a complete one its mean speed", () => {
  const growing = replyNumbers(counted(threeRounds), null);
  expect(growing).toMatchObject({ isComplete: false, rate: growing?.statistics.tokensPerSecond });
  expect(replyNumbers(counted(threeRounds), stored)).toMatchObject({ isComplete: true, rate: 100 });
});

test("a replayed reply shows the rounds so far, not its summary", () => {
  const replayed = replyNumbers(counted(threeRounds.slice(0, 2)), stored);
  expect(replayed).toMatchObject({ isComplete: false });
  expect(replayed?.statistics.rounds).toBe(2);
});

test("without rounds a reply has the numbers of its summary", () => {
  const found = replyNumbers(counted([]), stored);
  expect(found).toMatchObject({ isComplete: true, rate: 100 });
  expect(found?.statistics).toMatchObject({
    rounds: 3,
    accepted: 2,
    tokenMs: null,
    byPosition: [],
  });
  expect(replyNumbers(null, stored)).toEqual(found);
});

test("a reply without a round has no numbers", () => {
  expect(replyNumbers(counted([]), null)).toBeNull();
  expect(replyNumbers(null, summary({ rounds: 0, tokens: 0 }))).toBeNull();
});
