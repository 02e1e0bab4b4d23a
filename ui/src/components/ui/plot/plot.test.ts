import { expect, test } from "vitest";
import { aligned, amountOf, rangeOf, readingOf, short, stepped, type PlotSeries } from "./plot";

const series = (points: PlotSeries["points"]): PlotSeries => ({
  label: "",
  points,
  colour: "soft",
});

test("series with different x share one rising list of x, with holes where one has no point", () => {
  const data = aligned([
    series([
      [0, 5],
      [2, 7],
    ]),
    series([
      [0, 1],
      [1, 2],
    ]),
  ]);
  expect(data).toEqual([
    [0, 1, 2],
    [5, null, 7],
    [1, 2, null],
  ]);
});

test("a plot without points has empty lists", () => {
  expect(aligned([series([])])).toEqual([[], []]);
});

test("an axis shows its smallest range, widened by the data", () => {
  expect(rangeOf({ label: "", from: 0, to: 10 }, 2, 8)).toEqual([0, 10]);
  expect(rangeOf({ label: "", from: 0, to: 10 }, -1, 30)).toEqual([-1, 30]);
});

test("an axis is never empty, whatever the data", () => {
  expect(rangeOf({ label: "" }, null, null)).toEqual([0, 1]);
  expect(rangeOf({ label: "", from: 0 }, null, null)).toEqual([0, 1]);
  expect(rangeOf({ label: "", to: 0 }, null, null)).toEqual([-1, 0]);
  expect(rangeOf({ label: "" }, 4, 4)).toEqual([4, 5]);
});

test("keys walk the points and stop at both ends", () => {
  expect(stepped("ArrowRight", null, 3)).toBe(0);
  expect(stepped("ArrowRight", 2, 3)).toBe(2);
  expect(stepped("ArrowLeft", 0, 3)).toBe(0);
  expect(stepped("ArrowLeft", null, 3)).toBe(2);
  expect(stepped("PageUp", 0, 100)).toBe(10);
  expect(stepped("Home", 7, 100)).toBe(0);
  expect(stepped("End", 7, 100)).toBe(99);
});

test("other keys and an empty plot select nothing", () => {
  expect(stepped("a", 1, 3)).toBeNull();
  expect(stepped("End", null, 0)).toBeNull();
});

test("a reading has each series' nearest value, with the axes' units", () => {
  const fast: PlotSeries["points"] = [
    [0, 1.26],
    [4, 38.24],
  ];
  const words = readingOf(
    [
      { ...series(fast), label: "drafted" },
      { ...series([]), label: "plain" },
    ],
    { label: "time", unit: "s", format: (value) => value.toFixed(1) },
    { label: "speed", unit: "tokens/s" },
    3,
  );
  expect(words).toBe("3.0 s: drafted 38.2 tokens/s");
});

test("a quiet line has no reading", () => {
  const words = readingOf(
    [
      { ...series([[1, 2]]), label: "median" },
      { ...series([[1, 3]]), label: "run 1", quiet: true },
    ],
    { label: "time", unit: "s" },
    { label: "tokens" },
    1,
  );
  expect(words).toBe("1 s: median 2 tokens");
});

test("an amount has its unit, and a count its name", () => {
  expect(amountOf({ label: "time", unit: "s" }, 3)).toBe("3 s");
  expect(amountOf({ label: "draft length" }, 5)).toBe("draft length 5");
});

test("the digits of numbers depend on their size", () => {
  expect([0, 0.1234, 3.14159, 99.96, 1234.5].map(short)).toEqual([
    "0",
    "0.12",
    "3.1",
    "100",
    "1,235",
  ]);
});
