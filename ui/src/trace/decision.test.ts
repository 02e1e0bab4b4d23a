import { expect, test } from "vitest";
import type { Decision } from "../bindings/Decision";
import { decisionWords } from "./decision";

const words = (before: number | null, chosen: number, tokens_per_second: number[]) => {
  const costs: Omit<Decision, "before" | "chosen" | "tokens_per_second"> = {
    drafting_ms: [],
    verify_ms: [],
    acceptance: [],
  };
  return decisionWords({ ...costs, before, chosen, tokens_per_second });
};

test("a length is worth what it promises against plain decoding", () => {
  expect(words(null, 2, [10, 18, 21])).toBe("K = 2 promises 2.1× plain");
  expect(words(2, 1, [10, 10.4, 9])).toBe("K 2 → 1: promises 1.04× plain");
});

test("no draft is worth what the best one would cost", () => {
  expect(words(5, 0, [10, 9.2, 8])).toBe("K 5 → 0: drafting would cost 8\u00a0%");
  expect(words(null, 0, [10, 10.1, 8])).toBe("K = 0: drafting promises too little");
});
