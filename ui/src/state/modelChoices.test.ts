import { afterEach, expect, test } from "vitest";
import { facts } from "../bindings/facts";
import { showLanguage } from "../messages/locale.svelte";
import { detailWords, draftChoice, meritWords } from "./modelChoices";

afterEach(() => showLanguage("en"));

const nothing = { detail: null, merit: null, problem: null };

test("drafters without a model of their own are described by the page", () => {
  const shown = (id: string, label: string) => {
    const choice = draftChoice({ id, label, ...nothing });
    return [choice.label, choice.detail];
  };
  expect(shown(facts.draftNone, "")).toEqual(["No draft", "plain decoding, one token at a time"]);
  expect(shown(facts.draftMtp, "MTP")).toEqual(["MTP", "the draft head in this model's own file"]);
  showLanguage("de");
  expect(shown(facts.draftNgram, facts.ngramName)).toEqual([
    "N-Gramm",
    "wiederholt, was in der Unterhaltung schon stand",
  ]);
  expect(shown("/models/none.gguf", "None · Q8_0")).toEqual(["None · Q8_0", ""]);
});

test("numbers in details and merits are written as the language does", () => {
  const file = { kind: "file", architecture: "llama", bytes: 8_790_000, context: 1024 } as const;
  expect(detailWords(file)).toBe("llama, 8.8\u00a0MB, context 1,024 tokens");
  expect(detailWords({ ...file, architecture: null, context: null })).toBe(
    "no architecture, 8.8\u00a0MB",
  );
  expect(detailWords(null)).toBe("");
  expect(meritWords({ kind: "tried", speedup: 1.449 })).toBe("tried: 1.4×");
  showLanguage("de");
  expect(detailWords(file)).toBe("llama, 8,8\u00a0MB, Kontext 1.024 Token");
  expect(detailWords({ kind: "server", host: "10.0.0.7:8000" })).toBe(
    "auf dem Server 10.0.0.7:8000",
  );
  expect(meritWords({ kind: "tried", speedup: 1.449 })).toBe("getestet: 1,4-mal so schnell");
});
