import { expect, test } from "vitest";
import type { Outcome } from "../bindings/Outcome";
import type { Extra } from "../bindings/Extra";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";
import { depthsOf, longestPath, readingOrder, rowsOf, textAfter } from "./tree";

/** A round whose drafted tokens all lack a parent. */
function unlinked(outcomes: readonly Outcome[], kind: Extra["kind"] | null) {
  return round(0, {
    drafted: outcomes.map((outcome) => drafted("t", outcome)),
    extra: kind && extra("e", kind),
  });
}

test.each<[Outcome[], Extra["kind"] | null]>([
  [["accepted", "accepted", "accepted"], "bonus"],
  [["accepted", "accepted", "rejected"], "recovered"],
  [["accepted", "rejected", "discarded"], "recovered"],
  [["rejected", "discarded", "discarded"], "recovered"],
  [["accepted", "discarded", "discarded"], null],
])("an old trace's %j with the extra token %j is a chain", (outcomes, kind) => {
  expect(depthsOf(unlinked(outcomes, kind))).toEqual([0, 1, 2]);
});

test.each<[Outcome[], Extra["kind"] | null]>([
  [["rejected", "accepted", "discarded"], "bonus"],
  [["accepted", "rejected", "rejected"], "bonus"],
  [["accepted", "discarded", "discarded"], "bonus"],
  [["rejected", "rejected", "rejected"], "recovered"],
])("%j with the extra token %j are candidates for one position", (outcomes, kind) => {
  expect(depthsOf(unlinked(outcomes, kind))).toEqual([0, 0, 0]);
});

test("a tree is as deep as its longest path, and has a row more for the extra token", () => {
  expect(depthsOf(treeRound)).toEqual([0, 0, 0, 1, 1, 1]);
  expect(longestPath(treeRound)).toBe(2);
  expect(rowsOf(treeRound)).toBe(3);
  expect(rowsOf(round(0))).toBe(0);
});

test("every token of a round is read once", () => {
  for (const held of [treeRound, ...threeRounds]) {
    const all = [...Array(held.drafted.length + 1).keys()];
    expect(readingOrder(held).toSorted((a, b) => a - b)).toEqual(all);
  }
});

test("a chain is read as it was drafted", () => {
  for (const chain of threeRounds) {
    expect(readingOrder(chain)).toEqual([...Array(chain.drafted.length + 1).keys()]);
  }
});

test("a round of forty thousand drafted tokens is read in less than a second", () => {
  const many = Array.from({ length: 40_000 }, (_, at) => ({
    ...drafted("t", at % 2 === 0 ? "accepted" : "rejected"),
    parent: at < 2 ? null : at - 2 - (at % 2),
  }));
  const held = round(0, { drafted: many, extra: extra("e", "bonus") });
  const begin = performance.now();
  const order = readingOrder(held);
  expect(textAfter(held, null).length).toBe(20_000);
  expect(performance.now() - begin).toBeLessThan(1000);
  expect(order).toHaveLength(40_001);
  expect(order.slice(0, 4)).toEqual([1, 0, 3, 2]);
});
