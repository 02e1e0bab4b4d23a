import { afterEach, expect, test } from "vitest";
import type { Why } from "../bindings/Why";
import { showLanguage } from "../messages/locale.svelte";
import { lineWords } from "./why";

afterEach(() => showLanguage("en"));

function words(why: Partial<Why>): string {
  const nothing = { drafter: null, length: null, reason: null, expected: null, off: null };
  return lineWords({ state: "on", ...nothing, remarks: [], ...why });
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
    "Drafting paused: it would be 8% slower",
  );
  expect(paused({ reason: "would_not_pay", expected: 1 })).toBe(
    "Drafting paused: too little to gain",
  );
  expect(paused({ reason: "would_not_pay" })).toBe("Drafting paused: drafts would slow this down");
  expect(paused({ reason: "cannot_pay" })).toContain("even if every token were accepted");
  expect(paused({ reason: "drafter_failed" })).toContain("the next one tries again");
});

test("deviations from the settings follow, and off has its reason", () => {
  const detail = "it is torn.";
  expect(words({ drafter: "n-gram", remarks: [{ kind: "unusable", detail }] })).toBe(
    "N-gram drafts. The chosen draft can't be used: it is torn",
  );
  const off = { state: "off", off: { kind: "no_draft" } } as const;
  expect(words(off)).toBe("No draft model chosen");
  expect(words({ ...off, remarks: [{ kind: "failed", detail }] })).toBe(
    "No draft model chosen. The draft failed: it is torn",
  );
});

test("the line is German on a German page", () => {
  showLanguage("de");
  expect(words({ state: "off", off: { kind: "server" } })).toBe(
    "Drafting aus: Drafts macht der Server, wenn er dafür eingerichtet ist",
  );
  expect(words({ drafter: "n-gram", remarks: [{ kind: "failed", detail: "It is slow." }] })).toBe(
    "N-Gramm rät voraus. Der Draft ist fehlgeschlagen: It is slow",
  );
});
