import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { extra, round, threeRounds } from "../trace/fixtures";
import { textOf } from "../trace/text";
import { Trace } from "./trace.svelte";

const plain = (index: number) => round(index, { extra: extra(" t", "plain") });

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "cancelAnimationFrame", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("rounds are shown on the next frame, all at once", () => {
  const trace = new Trace();
  for (const index of [0, 1, 2]) trace.push(plain(index));
  expect(trace.length).toBe(0);
  vi.advanceTimersToNextFrame();
  expect(trace.length).toBe(3);
});

test("the end of a reply does not wait for a frame", () => {
  const trace = new Trace();
  trace.push(plain(0));
  trace.flush();
  expect(trace.length).toBe(1);
  expect(trace.statistics.tokens).toBe(1);
});

test("a missing round is noticed", () => {
  const trace = Trace.of([plain(0), plain(1), plain(5), plain(6)]);
  expect(trace.gap).toEqual({ first: 2, last: 4 });
});

test("rounds without a gap have none, and a duplicate is kept once", () => {
  const trace = Trace.of([plain(0), plain(1), plain(1), plain(2)]);
  expect(trace.gap).toBeNull();
  expect(trace.length).toBe(3);
});

test("the text and each round's offset are known as rounds arrive", () => {
  const trace = Trace.of(threeRounds);
  expect(trace.offsets.text).toBe(textOf(threeRounds));
  expect([0, 1, 2, 3].map((round) => trace.offsets.before(round))).toEqual([0, 5, 7, 9]);
});

test("each round has as many rows as it drafted, not as it could have", () => {
  expect(Trace.of([plain(0)]).rows).toEqual([1]);
  expect(Trace.of(threeRounds).rows).toEqual([3, 3, 1]);
});
