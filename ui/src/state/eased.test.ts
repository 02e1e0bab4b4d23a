import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Eased } from "./eased.svelte";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["requestAnimationFrame", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

test("a number approaches its goal frame by frame, and reaches it", () => {
  const eased = new Eased(0.1);
  eased.set(5);
  eased.to(9);
  expect(eased.value).toBe(5);
  const seen: number[] = [];
  for (let frame = 0; frame < 12; frame += 1) {
    vi.advanceTimersToNextFrame();
    seen.push(eased.value);
  }
  expect(seen.slice(0, 2)).toEqual([7, 8]);
  expect(seen.at(-1)).toBe(9);
  expect(vi.getTimerCount()).toBe(0);
});

test("a set number jumps to its value, and a stopped one stays", () => {
  const eased = new Eased(0.1);
  eased.to(4);
  eased.set(2);
  vi.advanceTimersToNextFrame();
  expect(eased.value).toBe(2);
  eased.to(4);
  eased.stop();
  vi.advanceTimersToNextFrame();
  expect(eased.value).toBe(2);
});
