import { expect, test } from "vitest";
import { size, timeLeft } from "./amounts";

test.each([
  [0, "0.0\u00a0MB"],
  [8_790_000, "8.8\u00a0MB"],
  [999_000_000, "999.0\u00a0MB"],
  [4_920_000_000, "4.9\u00a0GB"],
])("%d bytes are %s", (bytes, words) => {
  expect(size(bytes)).toBe(words);
});

test.each([
  [10e6, 20e6, "1 s left"],
  [100e6, 10e6, "10 s left"],
  [9e9, 50e6, "3 min left"],
  [90e9, 10e6, "2 h 30 min left"],
  [900e9, 1e6, "10 days left"],
])("%d bytes at %d a second: %s", (bytes, speed, words) => {
  expect(timeLeft(bytes, speed)).toBe(words);
});

test("a stalled download has no estimated time", () => {
  expect(timeLeft(1e9, 0)).toBeNull();
  expect(timeLeft(0, 1e6)).toBeNull();
});
