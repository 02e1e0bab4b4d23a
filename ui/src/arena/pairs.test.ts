import { expect, test } from "vitest";
import { run } from "./fixtures";
import { median, pairSpeeds, verdictOf } from "./pairs";

test("the winner is the set-up that is faster in every pair, by the median of the pairs", () => {
  const runs = [run(0, 0, 100), run(0, 1, 150), run(1, 1, 200), run(1, 0, 100)];
  const verdict = { winner: 0, lowest: 1.5, highest: 2, pairs: 2 };
  expect(verdictOf(runs)).toEqual({
    ...verdict,
    ratio: expect.closeTo(Math.sqrt(3), 12) as number,
  });
});

test("the second set-up can win as the first can", () => {
  const runs = [run(0, 0, 300), run(0, 1, 150)];
  const verdict = { winner: 1, lowest: 2, highest: 2, pairs: 1 };
  expect(verdictOf(runs)).toEqual({ ...verdict, ratio: expect.closeTo(2, 12) as number });
});

test("a range that includes 1 has no winner", () => {
  const runs = [run(0, 0, 100), run(0, 1, 105), run(1, 1, 100), run(1, 0, 110)];
  expect(verdictOf(runs)).toMatchObject({ winner: null, highest: 1.05, pairs: 2 });
  expect(verdictOf([run(0, 0, 100), run(0, 1, 100)]).winner).toBeNull();
});

test("times are per token, so that a longer text is no disadvantage", () => {
  expect(pairSpeeds([run(0, 0, 100, 100), run(0, 1, 200, 200)])).toEqual([{ pair: 0, ratio: 1 }]);
});

test("a pair without a run, or with an empty one, is not counted", () => {
  expect(pairSpeeds([run(0, 0, 100), run(1, 1, 90)])).toEqual([]);
  expect(pairSpeeds([run(0, 0, 100), run(0, 1, 0, 0)])).toEqual([]);
  expect(verdictOf([])).toMatchObject({ winner: null, pairs: 0 });
});

test("pairs are in order, whichever run came first", () => {
  const runs = [run(1, 1, 200), run(1, 0, 100), run(0, 0, 100), run(0, 1, 100)];
  expect(pairSpeeds(runs).map(({ pair }) => pair)).toEqual([0, 1]);
});

test("the median of an even number lies between the two in the middle", () => {
  expect(median([4, 1, 3, 2])).toBe(2.5);
  expect(median([3, 1, 2])).toBe(2);
  expect(median([])).toBeNull();
});
