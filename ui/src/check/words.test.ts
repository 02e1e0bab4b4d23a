import { expect, test } from "vitest";
import {
  causeWords,
  differenceWords,
  distributionWords,
  brief,
  identicalWords,
  logitWords,
} from "./words";

const target = "Starter 8.1M · Q8_0";
const text = { kind: "text", tokens: 212, seed: 7, difference: null } as const;
const difference = { position: 40, with: null, without: null, gap: 0.0002, near_tie: true };
const spread = { kind: "distribution", judged: 157, different: 0, largest_difference: 0 } as const;

test("an identical reply is reported with its tokens, its target and its seed", () => {
  expect(identicalWords(text, target)).toBe(
    "Identical: without drafts Starter 8.1M writes the same 212 tokens (seed 7).",
  );
});

test("without a seed it is reported as greedy, and without a name as the target's", () => {
  expect(identicalWords({ ...text, seed: null, tokens: 1 }, null)).toBe(
    "Identical: without drafts the target writes the same token (temperature 0).",
  );
});

test("a difference is counted from 1, and explained as rounding or a bug", () => {
  expect(differenceWords(difference)).toBe("The texts diverge at token 41.");
  expect(causeWords(difference)).toContain(
    "Near tie: two tokens were almost equally likely, and rounding decided",
  );
  expect(causeWords({ ...difference, gap: 0 })).toContain("Exact tie");
  expect(causeWords({ ...difference, near_tie: false })).toContain("bug in Foretoken");
});

test("equal probabilities are reported as verified, in one line", () => {
  expect(distributionWords(spread)).toBe(
    "Verified: recomputed without drafts, all 157 probabilities are identical.",
  );
});

test("different probabilities are counted, with the largest difference", () => {
  expect(distributionWords({ ...spread, different: 3, largest_difference: 0.00312 })).toContain(
    "Recomputed without drafts: 3 of 157 probabilities differ, by 0.0031 at most.",
  );
  expect(distributionWords({ ...spread, different: 0, largest_difference: 2.4e-7 })).toContain(
    "all 157 probabilities agree (largest difference 2.4e-7)",
  );
});

test("a reply without verified tokens has no probabilities to compare", () => {
  expect(distributionWords({ ...spread, judged: 0 })).toContain("nothing to compare");
});

test("small numbers keep their significant digits", () => {
  expect([0, 0.5, 0.00031, 2.4e-7].map(brief)).toEqual(["0", "0.5", "0.00031", "2.4e-7"]);
  expect(logitWords(12.34567, 0.0002)).toBe("12.34567");
  expect(logitWords(12.34567, 1.5)).toBe("12.35");
  expect(logitWords(12.34567, 0)).toBe("12.35");
  expect(logitWords(12.34567, null)).toBe("12.35");
});
