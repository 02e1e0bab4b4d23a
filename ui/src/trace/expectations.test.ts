import { expect, test } from "vitest";
import {
  Expectations,
  formulaWords,
  hasExpectations,
  RECENT_ROUNDS,
  tokensPerRound,
} from "./expectations";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";

const one = (index: number, expected: number | null) =>
  round(index, { expected, extra: extra(" a", "plain") });

test("expected and written tokens are compared over the rounds with an expectation", () => {
  const [first, second, third] = threeRounds;
  const rounds = [{ ...first, expected: 2.5 }, { ...second, expected: 1.5 }, third];
  const trace = rounds.map((held, index) => ({ ...round(index), ...held }));
  expect(new Expectations(trace).recent()).toEqual({ expected: 2, written: 2, rounds: 2 });
});

test("only the latest rounds are compared, however they arrive", () => {
  const early = Array.from({ length: 10 }, (_, index) => one(index, 9));
  const late = Array.from({ length: RECENT_ROUNDS }, (_, index) => one(10 + index, 1.5));
  const growing = [...early];
  const expectations = new Expectations(growing);
  expect(expectations.recent()).toMatchObject({ expected: 9, rounds: 10 });
  growing.push(...late, one(99, null));
  expect(expectations.recent()).toEqual({ expected: 1.5, written: 1, rounds: RECENT_ROUNDS });
});

test("a reply of an earlier version has no expectation", () => {
  expect(new Expectations(threeRounds).recent()).toBeNull();
  expect(hasExpectations(threeRounds)).toBe(false);
  expect(hasExpectations([...threeRounds, one(3, 1)])).toBe(false);
  expect(hasExpectations([...threeRounds, { ...treeRound, expected: 2 }])).toBe(true);
});

test("the formula is the sum of the chances that each token is reached and accepted", () => {
  expect(tokensPerRound(0.5, 3)).toBeCloseTo(1 + 0.5 + 0.25 + 0.125, 12);
  expect(tokensPerRound(0, 3)).toBe(1);
  expect(tokensPerRound(1, 3)).toBe(4);
  expect(tokensPerRound(0.999_999, 3)).toBeCloseTo(4, 4);
});

test("the formula takes the reply's acceptance and its mean longest path", () => {
  const formula = new Expectations([...threeRounds, { ...treeRound, index: 3 }]).formula();
  expect(formula?.acceptance).toBeCloseTo(4 / 7, 12);
  expect(formula?.length).toBe(2);
  expect(formula?.expected).toBeCloseTo(1 + 4 / 7 + (4 / 7) ** 2, 12);
  expect(formula?.measured).toBeCloseTo(7 / 3, 12);
});

test("the formula is shown with its numbers, beside the measured one", () => {
  const formula = { acceptance: 0.52, length: 2.3, expected: 1.842, measured: 1.8 };
  expect(formulaWords(formula).replaceAll("\u00a0", " ")).toBe(
    "With P = 52% of checked tokens accepted and N = 2.3 tokens per draft, the formula gives E₀ + 1 = 1 + P(1 − Pᴺ)/(1 − P) = 1.84 tokens per round with a draft. Measured: 1.80.",
  );
  const certain = formulaWords({ ...formula, acceptance: 1, expected: 3.3 });
  expect(certain).toContain("1\u00a0+\u00a0N = 3.30");
});

test("there is no formula without a draft, nor before a draft token was judged", () => {
  expect(new Expectations([round(0)]).formula()).toBeNull();
  const unjudged = round(0, { drafted: [drafted("a", "discarded")] });
  expect(new Expectations([unjudged]).formula()).toBeNull();
});

test("the latest round with a draft is found", () => {
  const growing = [...threeRounds];
  const expectations = new Expectations(growing);
  expect(expectations.lastDraft()).toBe(1);
  growing.push({ ...treeRound, index: 3 });
  expect(expectations.lastDraft()).toBe(3);
  expect(new Expectations([]).lastDraft()).toBeNull();
});
