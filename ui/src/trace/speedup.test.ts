import { afterEach, expect, test } from "vitest";
import type { Speedup } from "../bindings/Speedup";
import { showLanguage } from "../messages/locale.svelte";
import { speedupWords } from "./speedup";

afterEach(() => showLanguage("en"));

const by = (factor: number): Speedup => ({
  factor,
  saved_ms: 1000 * (factor - 1),
  plain_ms: 1000 * factor,
  elapsed_ms: 1000,
  replies: 1,
});

test("a speed-up is a gain or a loss only beyond 5%", () => {
  expect([1.62, 1.051, 1.05, 1, 0.95, 0.949, 0.78, 12.3].map(by).map(speedupWords)).toEqual([
    "1.6× faster",
    "1.1× faster",
    "no faster",
    "no faster",
    "no faster",
    "0.9× the speed",
    "0.8× the speed",
    "12× faster",
  ]);
});

test("no words without a comparison", () => {
  expect(speedupWords(null)).toBe("");
});

test("German words the factor as a multiple", () => {
  showLanguage("de");
  expect([1.62, 1, 0.78].map(by).map(speedupWords)).toEqual([
    "1,6-mal so schnell",
    "nicht schneller",
    "0,8-mal so schnell",
  ]);
});
