import { expect, test } from "vitest";
import { gridOf, medianCurve, resampled, type Curve } from "./curves";

const straight = (ms: number, tokens: number): Curve => [
  [0, 0],
  [ms, tokens],
];

test("a resampled curve keeps its shape and its ends", () => {
  const curve: Curve = [
    [10, 1],
    [20, 5],
    [90, 6],
  ];
  expect(resampled(curve, [0, 15, 20, 55, 100])).toEqual([
    [10, 1],
    [15, 3],
    [20, 5],
    [55, 5.5],
    [90, 6],
  ]);
});

test("the grid reaches the end of the longest curve", () => {
  const grid = gridOf([straight(50, 5), straight(96, 9)]);
  expect(grid.at(0)).toBe(0);
  expect(grid.at(-1)).toBe(96);
});

test("the median curve is the middle run's where three keep their distance", () => {
  const middle = medianCurve([straight(100, 10), straight(200, 10), straight(900, 10)]);
  expect(middle[0]).toEqual([0, 0]);
  expect(middle.at(-1)).toEqual([200, 10]);
});

test("the median curve ends where half of the runs have", () => {
  const long = medianCurve([straight(100, 10), straight(100, 10), straight(500, 50)]);
  expect(long.at(-1)?.[1]).toBe(10);
});

test("without runs, or before their start, there is no curve", () => {
  expect(medianCurve([])).toEqual([]);
  expect(medianCurve([[]])).toEqual([]);
  expect(resampled([], [0, 1])).toEqual([]);
  expect(resampled([[5, 1]], [0, 5, 10])).toEqual([[5, 1]]);
});
