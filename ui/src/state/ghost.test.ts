import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { frames } from "../frames";
import { drafted, extra, round } from "../trace/fixtures";
import { ghostOf } from "../trace/ghost";
import { Ghost } from "./ghost.svelte";

let still: boolean;
let ghost: Ghost;

beforeEach(() => {
  vi.useFakeTimers();
  still = false;
  ghost = new Ghost(() => still);
  ghost.follow([]);
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const drafting = (count: number) =>
  Array.from({ length: count }, (_, index) =>
    round(index, {
      drafted: [drafted(` d${index}`, "accepted")],
      extra: extra(" e", "bonus"),
    }),
  );

/** Durations of drafts for `count` rounds at intervals of `everyMs`. */
function stood(everyMs: number, count: number): number[] {
  const times: number[] = [];
  for (let at = 1; at <= count; at += 1) {
    ghost.follow(drafting(at));
    let passed = 0;
    for (; passed < everyMs; passed += 1) {
      if (ghost.text === "") break;
      vi.advanceTimersByTime(1);
    }
    times.push(passed);
    vi.advanceTimersByTime(everyMs - passed);
  }
  return times.slice(1);
}

test("with a slow model each draft is shown for about half of its round, and then its outcome", () => {
  for (const ms of stood(200, 6)) {
    expect(ms).toBeGreaterThanOrEqual(110);
    expect(ms).toBeLessThan(135);
  }
});

test("with a very slow model a draft is shown for a third of a second", () => {
  for (const ms of stood(2000, 4)) {
    expect(ms).toBeGreaterThanOrEqual(320);
    expect(ms).toBeLessThan(345);
  }
});

test("where rounds come with every frame, each draft is replaced without frames of its own", () => {
  const asked = vi.spyOn(frames, "request");
  const times = stood(16, 60);
  expect(times.every((ms) => ms === 16)).toBe(true);
  expect(asked).not.toHaveBeenCalled();
  // Only the last draft of all has to be settled.
  vi.advanceTimersByTime(100);
  expect(asked).toHaveBeenCalledOnce();
  expect(ghost.text).toBe("");
});

test("with reduced motion nothing flashes: fast drafts are not shown, slow ones stay", () => {
  still = true;
  expect(stood(200, 6)).toEqual([0, 0, 0, 0, 0]);
  vi.advanceTimersByTime(1000);
  for (const ms of stood(1000, 4)) expect(ms === 0 || ms >= 320).toBe(true);
});

test("a round without a draft has no ghost text, and removes an earlier one", () => {
  ghost.follow(drafting(1));
  expect(ghost.text).toBe(" d0");
  ghost.follow([...drafting(1), round(1, { extra: extra(" p", "plain") })]);
  expect(ghost.text).toBe("");
  const other = new Ghost(() => false);
  other.follow(drafting(3));
  expect(other.text).toBe("");
});

test("ghost text is the likeliest path of a draft, in one line", () => {
  const chain = [drafted(" a", "rejected"), drafted("\n", "discarded", { parent: 0 })];
  expect(ghostOf(round(0, { drafted: chain }))).toBe(" a↵");
  const tree = [
    drafted(" x", "rejected", { draft_probability: 0.2 }),
    drafted(" y", "accepted", { draft_probability: 0.7 }),
    drafted(" z", "accepted", { parent: 1 }),
  ];
  expect(ghostOf(round(0, { drafted: tree, extra: extra(" b", "bonus") }))).toBe(" y z");
  expect(ghostOf(round(0))).toBe("");
  expect(ghostOf(null)).toBe("");
});
