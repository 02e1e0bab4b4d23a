import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { showLanguage } from "./locale.svelte";
import { deviceWords, errorWords, shellWords, TERMS } from "./shell";

const CRATES = `${import.meta.dirname}/../../../crates`;

const TIMES =
  "The GPU (Vulkan, Intel UHD (2)) takes 4.10 ms a token, the CPU 18 ms: using the GPU.";
const GONE = "The GPU that was chosen is not there: Vulkan, Intel UHD. Choosing automatically.";

afterEach(() => showLanguage("en"));

test("every term with a message still occurs in the shell", () => {
  const rust = readdirSync(CRATES, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".rs"))
    .map((path) => readFileSync(join(CRATES, path), "utf8"))
    .join("\n");
  const gone = Object.keys(TERMS).filter((term) => !new RegExp(`"${term}\\.?"`).test(rust));
  expect(gone).toEqual([]);
});

test("in English the shell's messages are quoted literally", () => {
  for (const term of Object.keys(TERMS)) expect(shellWords(term)).toBe(term);
  for (const words of [TIMES, GONE]) {
    expect(shellWords(words)).toBe(words);
  }
  expect(errorWords({ code: "internal", message: "The disk is full." })).toBe("The disk is full.");
});

test("in another language its terms are translated, and its sentences follow a translated one", () => {
  showLanguage("de");
  expect(shellWords(TIMES)).toBe(
    "Die GPU (Vulkan, Intel UHD (2)) braucht 4,10 ms für ein Token, die CPU 18 ms: Die GPU rechnet.",
  );
  expect(shellWords(TIMES.replace("The", "For drafts the").replace("the GPU.", "the CPU."))).toBe(
    "Beim Raten braucht die GPU (Vulkan, Intel UHD (2)) 4,10 ms für ein Token, die CPU 18 ms: Die CPU rechnet.",
  );
  expect(shellWords(GONE)).toBe(
    "Die gewählte GPU ist nicht da: Vulkan, Intel UHD. Das Gerät wird automatisch gewählt.",
  );
  expect(deviceWords("Vulkan, AMD Radeon 780M, bit-identical to the CPU")).toBe(
    "Vulkan, AMD Radeon 780M, bitgleich mit der CPU",
  );
  expect(shellWords("the GPU has no room")).toBe("the GPU has no room");
  expect(errorWords({ code: "bad_model", message: "It is torn." })).toBe(
    "Das Modell lässt sich nicht verwenden: It is torn.",
  );
});
