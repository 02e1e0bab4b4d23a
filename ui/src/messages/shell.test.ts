import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { showLanguage } from "./locale.svelte";
import { errorWords, shellWords, TERMS } from "./shell";

const CRATES = `${import.meta.dirname}/../../../crates`;

afterEach(() => showLanguage("en"));

test("every term that has a message is one that the shell still says", () => {
  const rust = readdirSync(CRATES, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".rs"))
    .map((path) => readFileSync(join(CRATES, path), "utf8"))
    .join("\n");
  const gone = Object.keys(TERMS).filter((term) => !new RegExp(`"${term}\\.?"`).test(rust));
  expect(gone).toEqual([]);
});

test("in English the shell is quoted word by word", () => {
  for (const term of Object.keys(TERMS)) expect(shellWords(term)).toBe(term);
  for (const words of ["Loading SmolLM2", "tried: 1.4x", "llama, 8.8 MB, context 1024 tokens"]) {
    expect(shellWords(words)).toBe(words);
  }
  expect(errorWords({ code: "internal", message: "The disk is full." })).toBe("The disk is full.");
});

test("in another language its terms are translated, and its sentences follow what they are about", () => {
  showLanguage("de");
  expect(shellWords("known pair")).toBe("bekanntes Paar");
  expect(shellWords("Loading SmolLM2")).toBe("SmolLM2 wird geladen");
  expect(shellWords("tried: 1.4x")).toBe("probiert: 1,4x");
  expect(shellWords("llama, 8.8 MB, context 1024 tokens")).toBe(
    "llama, 8,8 MB, Kontext 1024 Token",
  );
  expect(shellWords("the GPU has no room")).toBe("the GPU has no room");
  expect(errorWords({ code: "bad_model", message: "It is torn." })).toBe(
    "Das Modell lässt sich nicht verwenden: It is torn.",
  );
});
