import { describe, expect, test } from "vitest";
import { defaults } from "../bindings/defaults";
import { arena, drafted, plain } from "./fixtures";
import type { Pair } from "./pairs";
import { expectationOf, sameSetup, textWords, times, verdictWords } from "./words";

const names: Pair<string> = ["Starter draft", "no draft"];

describe("the verdict", () => {
  test("names the winner, its lead, and the number of pairs", () => {
    const verdict = { winner: 0, ratio: 1.42, lowest: 1.38, highest: 1.47, pairs: 5 };
    expect(verdictWords(verdict, names, false)).toEqual({
      figure: "1.42×",
      sentence: "Starter draft is 1.42× as fast as no draft",
      spread: "1.38× to 1.47× over 5 pairs, with the time to the first token.",
    });
  });

  test("names the second set-up first if it won", () => {
    const verdict = { winner: 1, ratio: 1.08, lowest: 1.02, highest: 1.2, pairs: 3 };
    expect(verdictWords(verdict, names, false).sentence).toBe(
      "no draft is 1.08× as fast as Starter draft",
    );
  });

  test("has no winner if the range includes 1", () => {
    const verdict = { winner: null, ratio: 1.01, lowest: 0.97, highest: 1.05, pairs: 5 };
    expect(verdictWords(verdict, names, false)).toEqual({
      figure: null,
      sentence: "No winner",
      spread: "The pairs disagree: A is up to 1.05× as fast, B up to 1.03×, over 5 pairs.",
    });
  });

  test("of one pair suggests more pairs", () => {
    const verdict = { winner: 0, ratio: 1.4, lowest: 1.4, highest: 1.4, pairs: 1 };
    expect(verdictWords(verdict, names, false).spread).toContain("run more");
  });

  test("of no pair says that there is nothing to compare", () => {
    const verdict = { winner: null, ratio: 1, lowest: 1, highest: 1, pairs: 0 };
    expect(verdictWords(verdict, names, false).sentence).toBe("Nothing to compare");
  });

  test("of two equal set-ups is explained as noise", () => {
    const verdict = { winner: 0, ratio: 1.02, lowest: 1.01, highest: 1.03, pairs: 5 };
    expect(verdictWords(verdict, ["x (A)", "x (B)"], true).spread).toContain(
      "any difference is chance",
    );
  });

  test("never calls a small difference 1×", () => {
    expect(times(1.003)).toBe("1.003×");
    expect(times(1)).toBe("1×");
    expect(times(1.5)).toBe("1.5×");
    expect(times(12.345)).toBe("12.35×");
  });
});

describe("the texts", () => {
  const different = { texts: ["It was dark", "It was day"], first_difference: 40 };
  const warm = { ...defaults.sampling, temperature: 0.7 };

  test("are identical, or differ at a token, counted from 1", () => {
    expect(textWords(arena()).verdict).toBe("identical");
    expect(textWords(arena(different)).sentence).toMatch(/^The texts diverge at token 41\./);
  });

  test("differ by chance if one of them was sampled in the fastest mode", () => {
    expect(textWords(arena({ ...different, sampling: warm })).verdict).toBe("chance");
    const reproducible = arena().setups.map(({ draft, setup }) => ({
      draft,
      setup: { ...setup, mode: "reproducible" as const },
    }));
    const by = textWords(arena({ ...different, sampling: warm, setups: reproducible }));
    expect(by.verdict).toBe("different");
  });

  test("can be equal with different tokens", () => {
    expect(textWords(arena({ first_difference: 2 })).sentence).toContain("read the same");
  });

  test("are predicted before the start", () => {
    const cold = { ...warm, temperature: 0 };
    expect(expectationOf([drafted, plain], cold)).toContain("Temperature 0");
    expect(expectationOf([drafted, plain], warm)).toContain("by chance");
    const seeded = { ...drafted, mode: "reproducible" as const };
    expect(expectationOf([seeded, seeded], warm)).toContain("Reproducible sampling mode");
  });
});

test("two set-ups are equal if all their settings are", () => {
  expect(sameSetup([drafted, structuredClone(drafted)])).toBe(true);
  expect(sameSetup([drafted, plain])).toBe(false);
});
