import { expect, test } from "vitest";
import type { Round } from "../bindings/Round";
import { drafted, extra, round } from "./fixtures";
import { Progress } from "./speed";

/** Rounds of one token, `ms` apart, from the end of the prefill. */
function steady(count: number, ms: number): Round[] {
  return Array.from({ length: count }, (_, index) =>
    round(index, { extra: extra(" t", "plain"), at_ms: 500 + ms * index }),
  );
}

test("a steady reply has a level curve, from a window after its beginning to its end", () => {
  const curve = new Progress(steady(1001, 10)).curve(50);
  expect(curve?.windowMs).toBe(2000);
  expect(curve?.points).toHaveLength(50);
  expect(curve?.points[0]?.[0]).toBeCloseTo(2500);
  expect(curve?.points.at(-1)?.[0]).toBeCloseTo(10_500);
  for (const [, rate] of curve?.points ?? []) expect(rate).toBeCloseTo(100);
});

test("a burst of tokens is spread over the window", () => {
  const rounds = steady(1001, 10);
  const burst = Array.from({ length: 20 }, () => drafted(" t", "accepted"));
  rounds[500] = round(500, { at_ms: 5500, drafted: burst });
  const highest = Math.max(...(new Progress(rounds).curve()?.points ?? []).map(([, rate]) => rate));
  expect(highest).toBeGreaterThan(105);
  expect(highest).toBeLessThan(112);
});

test("a short reply has a narrower window, but never one of a few rounds", () => {
  expect(new Progress(steady(201, 1)).curve()?.windowMs).toBeCloseTo(40);
  expect(new Progress(steady(31, 1)).curve()?.windowMs).toBeCloseTo(12);
  expect(new Progress(steady(101, 1000)).curve()?.windowMs).toBeCloseTo(12_000);
});

test("a reply of a few rounds has no curve", () => {
  expect(new Progress([]).curve()).toBeNull();
  expect(new Progress(steady(24, 10)).curve()).toBeNull();
  expect(new Progress(steady(25, 10)).curve()).not.toBeNull();
  expect(new Progress(steady(100, 0)).curve()).toBeNull();
});

test("later rounds are added, and earlier ones are not counted twice", () => {
  const rounds = steady(1001, 10);
  const growing = rounds.slice(0, 400);
  const progress = new Progress(growing);
  progress.curve();
  growing.push(...rounds.slice(400));
  expect(progress.curve()).toEqual(new Progress(rounds).curve());
});
