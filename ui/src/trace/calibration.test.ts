import { expect, test } from "vitest";
import { binWords, Calibration, MIN_TOKENS } from "./calibration";
import { drafted, round, threeRounds } from "./fixtures";
import { Synthesis } from "./synthetic";

const pair = (index: number) =>
  round(index, {
    drafted: [
      drafted("a", index % 4 === 0 ? "rejected" : "accepted", { survival: 0.8 }),
      drafted("b", index % 4 === 0 ? "discarded" : "accepted", { parent: 0, survival: 0.62 }),
    ],
  });

test("tokens are binned by survival, and discarded ones count as not accepted", () => {
  const bins = new Calibration(Array.from({ length: 40 }, (_, index) => pair(index))).bins();
  expect(bins.map(({ expected }) => expected.toFixed(3))).toEqual(["0.620", "0.800"]);
  expect(bins).toMatchObject([
    { accepted: 0.75, tokens: 40 },
    { accepted: 0.75, tokens: 40 },
  ]);
});

test("there is no calibration until enough tokens are known", () => {
  const growing = Array.from({ length: MIN_TOKENS / 2 - 1 }, (_, index) => pair(index));
  const calibration = new Calibration(growing);
  expect(calibration.bins()).toEqual([]);
  growing.push(pair(99));
  expect(calibration.bins()).toHaveLength(2);
});

test("a bin with few tokens is left out, and one of certain tokens is the last", () => {
  const sure = round(50, { drafted: [drafted("a", "accepted", { survival: 1 })] });
  const rounds = Array.from({ length: 40 }, (_, index) => pair(index));
  expect(new Calibration([...rounds, sure]).bins()).toHaveLength(2);
  const five = Array.from({ length: 5 }, () => sure);
  const last = new Calibration([...rounds, ...five]).bins().at(-1);
  expect(last).toEqual({ expected: 1, accepted: 1, tokens: 5 });
});

test("a bin has words for its shares and its size", () => {
  const bin = { expected: 0.621, accepted: 0.589, tokens: 1200 };
  expect(binWords(bin)).toBe("62% expected, 59% of 1,200 tokens accepted");
});

test("a reply of an earlier version has no calibration", () => {
  const rounds = Array.from({ length: 60 }, () => threeRounds).flat();
  expect(new Calibration(rounds).bins()).toEqual([]);
});

test("generated rounds are accepted as often as they expect", () => {
  const bins = new Calibration(new Synthesis(5, 2000).take(4000)).bins();
  expect(bins.length).toBeGreaterThanOrEqual(8);
  for (const { expected, accepted } of bins)
    expect(Math.abs(expected - accepted)).toBeLessThan(0.06);
});
