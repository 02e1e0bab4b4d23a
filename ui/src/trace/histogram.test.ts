import { expect, test } from "vitest";
import { Histogram } from "./histogram";

test("no percentile is more than one part in a hundred off, from microseconds to hours", () => {
  for (const scale of [0.002, 0.7, 30, 1e6]) {
    const histogram = new Histogram();
    const times = Array.from({ length: 1000 }, (_, index) => scale * (1 + index / 250));
    for (const ms of times) histogram.add(ms, 1);
    const found = histogram.percentiles();
    expect(Math.abs((found?.p50 ?? 0) / (times[499] ?? 0) - 1)).toBeLessThan(0.01);
    expect(Math.abs((found?.p95 ?? 0) / (times[949] ?? 0) - 1)).toBeLessThan(0.01);
  }
});

test("a time is weighted by the tokens that took it", () => {
  const histogram = new Histogram();
  histogram.add(10, 9);
  histogram.add(100, 1);
  expect(histogram.percentiles()).toEqual({ p50: 10, p95: 100 });
});

test("zero times and times of days are counted, and without times there is no percentile", () => {
  const histogram = new Histogram();
  expect(histogram.percentiles()).toBeNull();
  histogram.add(0, 1);
  expect(histogram.percentiles()).toEqual({ p50: 0, p95: 0 });
  histogram.add(1e9, 9);
  expect(histogram.percentiles()?.p95).toBe(1e9);
});
