import { afterEach, expect, test } from "vitest";
import { showLanguage } from "./locale.svelte";
import { deviceWords, shortDevice } from "./shell";

afterEach(() => showLanguage("en"));

test("a CPU is named by its threads, a GPU by its name", () => {
  expect(shortDevice("CPU, 2 threads, AVX-512")).toBe("CPU · 2 threads");
  expect(shortDevice("Vulkan, AMD Radeon 780M, bit-identical to the CPU")).toBe("AMD Radeon 780M");
  expect(shortDevice("")).toBe("");
});

test("the number of threads is in the page's language", () => {
  showLanguage("de");
  expect(deviceWords("CPU, 1 thread, AVX-512")).toBe("CPU, 1 Thread, AVX-512");
  expect(shortDevice("CPU, 2 threads")).toBe("CPU · 2 Threads");
});
