import { expect, test } from "vitest";
import type { Decision } from "../bindings/Decision";
import type { LengthReason } from "../bindings/LengthReason";
import { decisionWords, lengthWords, whyWords } from "./decision";

function decision(before: number | null, chosen: number, tokens_per_second: number[]): Decision {
  return { drafting_ms: [], verify_ms: [], acceptance: [], before, chosen, tokens_per_second };
}

const words = (...of: Parameters<typeof decision>) => decisionWords(decision(...of));
const why = (reason: LengthReason, of: Decision) =>
  whyWords({ round: 0, atMs: 0, reason, decision: of });

test("a chosen length shows its expected speed over that of plain decoding", () => {
  expect(words(null, 2, [10, 18, 21])).toBe("K = 2: 2.1× expected next");
  expect(words(2, 2, [10, 18, 21])).toBe("K = 2: 2.1× expected next");
  expect(words(2, 1, [10, 10.4, 9])).toBe("K 2 → 1: 1.0× expected next");
});

test("a choice without drafts shows the loss with the best draft", () => {
  expect(words(5, 0, [10, 9.2, 8])).toBe("K 5 → 0: no drafts, it would be 8% slower");
  expect(words(null, 0, [10, 10.1, 8])).toBe("K = 0: no drafts, too little to gain");
});

test("a decision without a curve, or with a shorter one, is described by its choice", () => {
  expect(words(5, 2, [])).toBe("K 5 → 2");
  expect(words(null, 4, [10, 18])).toBe("K = 4");
});

test("the history gives the reason that decided", () => {
  expect(why("governed", decision(null, 2, [10, 18, 21]))).toBe("2.1× expected next");
  expect(why("fixed", decision(null, 1, [10, 8]))).toBe("as set, 0.8× expected next");
  expect(why("cannot_pay", decision(2, 0, [10, 8]))).toBe("never faster");
  expect(why("drafter_failed", decision(2, 0, [10, 8]))).toBe("draft failed");
  expect(why("governed", decision(2, 0, []))).toBe("fastest");
});

test("a point of the curve describes all values at its length", () => {
  const known: Decision = {
    ...decision(null, 1, [10, 18]),
    drafting_ms: [4.25],
    verify_ms: [95, 101],
    acceptance: [0.7],
  };
  expect(lengthWords(known, 0)).toBe("K = 0: 10.0 tokens/s, 95\u00a0ms to verify (without drafts)");
  expect(lengthWords(known, 1)).toBe(
    "K = 1: 18.0 tokens/s, 1.8× the speed without drafts expected, 70% accepted at depth 1, 4.3\u00a0ms to draft, 101\u00a0ms to verify",
  );
});
