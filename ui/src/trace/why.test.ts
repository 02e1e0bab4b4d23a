import { expect, test } from "vitest";
import type { Why } from "../bindings/Why";
import { lineWords } from "./why";

function words(why: Partial<Why>): string {
  const nothing = { drafter: null, length: null, reason: null, expected: null, text: "" };
  return lineWords({ state: "on", ...nothing, ...why });
}

test("a line names the drafter and the draft length, without expectations", () => {
  const drafter = "Starter draft 1.1M · Q8_0";
  expect(words({ drafter, length: 5, expected: 2.1 })).toBe(
    "Starter draft 1.1M drafts 5 tokens per round",
  );
  expect(words({ drafter: "tinyllama-15M · Q8_0" })).toBe("tinyllama-15M drafts");
  expect(words({ drafter: null })).toBe("A draft drafts");
  expect(words({ drafter: "n-gram", length: 1 })).toBe("N-gram drafts 1 token per round");
  expect(words({ drafter: "n-gram" })).toBe("N-gram drafts");
});

test("a pause has its reason", () => {
  const paused = (why: Partial<Why>) => words({ state: "paused", ...why });
  expect(paused({ reason: "would_not_pay", expected: 0.92 })).toBe(
    "Drafting paused: it would be 8\u00a0% slower",
  );
  expect(paused({ reason: "would_not_pay", expected: 1 })).toBe(
    "Drafting paused: too little to gain",
  );
  expect(paused({ reason: "would_not_pay" })).toBe("Drafting paused: it would take longer");
  expect(paused({ reason: "cannot_pay" })).toContain("even if every token were accepted");
  expect(paused({ reason: "drafter_failed" })).toContain("the next one tries again");
});

test("deviations from the settings follow, and off has only its reason", () => {
  expect(words({ drafter: "n-gram", text: "The chosen draft cannot be used: torn" })).toBe(
    "N-gram drafts. The chosen draft cannot be used: torn",
  );
  expect(words({ state: "off", text: "no draft is chosen" })).toBe(
    "Drafting off: no draft is chosen",
  );
});
