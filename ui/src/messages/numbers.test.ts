import { afterEach, expect, test } from "vitest";
import { size, timeLeft } from "../state/amounts";
import { duration, probability } from "../trace/describe";
import { times } from "../trace/speedup";
import { showLanguage } from "./locale.svelte";
import { count, date, decimal, percent, scientific } from "./numbers";
import { t } from "./say";

afterEach(() => showLanguage("en"));

const inGerman = (say: () => string) => {
  showLanguage("de");
  return say();
};

test("numbers have the format of each language", () => {
  expect(count(1234567)).toBe("1,234,567");
  expect(decimal(1234.5, 2)).toBe("1,234.50");
  expect(scientific(2.4e-7)).toBe("2.4e-7");
  expect(inGerman(() => count(1234567))).toBe("1.234.567");
  expect(decimal(1234.5, 2)).toBe("1.234,50");
  expect(count(0.25, 1)).toBe("0,3");
  expect(scientific(2.4e-7)).toBe("2,4e-7");
});

test("amounts, times and speeds have the format of each language", () => {
  showLanguage("de");
  expect(size(4.93e9)).toBe("4,9\u00a0GB");
  expect(timeLeft(120e6, 1e6)).toBe("noch 2 min");
  expect(duration(4130)).toBe("4,1\u00a0s");
  expect(percent(0.814)).toBe("81\u00a0%");
  expect(probability(0.0001)).toBe("< 0,001");
  expect(times(2.13)).toBe("2,1-mal");
  showLanguage("en");
  expect(percent(0.814)).toBe("81%");
  expect(times(2.13)).toBe("2.1×");
});

test("dates have the format of each language", () => {
  const at = new Date(2026, 2, 12, 14, 5).getTime();
  expect(date(at)).toBe("12 Mar 2026, 14:05");
  expect(inGerman(() => date(at))).toBe("12.03.2026, 14:05");
});

test("plurals and their numbers follow the language", () => {
  expect([0, 1, 1234].map((count) => t("settings.replies", { count }))).toEqual([
    "0 replies",
    "1 reply",
    "1,234 replies",
  ]);
  showLanguage("de");
  expect([0, 1, 1234].map((count) => t("settings.replies", { count }))).toEqual([
    "0 Antworten",
    "1 Antwort",
    "1.234 Antworten",
  ]);
});
