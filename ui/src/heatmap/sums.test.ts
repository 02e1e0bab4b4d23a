import { expect, test } from "vitest";
import { Synthesis } from "../trace/synthetic";
import type { Round } from "../bindings/Round";
import { drafted, extra, round, treeRound } from "../trace/fixtures";
import { ACCEPTANCE_OF, FIELDS, FIELD_OF, Sums } from "./sums";

const field = (sums: number[], row: number, at: number) => sums[row * FIELDS + at] ?? 0;

test("a position with several tokens counts once, by its best outcome", () => {
  const sums = new Sums([treeRound]).before(1);
  expect(sums).toEqual([1, 0, 0, 0.8, 0, 1, 0, 0, 0.8, 0]);
});

test("acceptance probabilities are summed by outcome", () => {
  const held = round(0, {
    drafted: [
      drafted("a", "accepted", { acceptance: 0.7 }),
      drafted("b", "rejected", { acceptance: 0.2 }),
      drafted("c", "discarded"),
    ],
    extra: extra("d", "recovered"),
  });
  const sums = new Sums([held, held]).before(2);
  expect(field(sums, 0, ACCEPTANCE_OF.accepted)).toBeCloseTo(1.4);
  expect(field(sums, 1, ACCEPTANCE_OF.rejected)).toBeCloseTo(0.4);
  expect(field(sums, 2, FIELD_OF.discarded)).toBe(2);
});

test("any range is the difference of two sums, also while rounds arrive", () => {
  const rounds: Round[] = [];
  const source = new Synthesis(5, 1000);
  const growing = new Sums(rounds);
  for (let grown = 0; grown < 40; grown += 1) {
    rounds.push(...source.take(7));
    growing.before(Math.floor(rounds.length / 2));
  }
  const compact = (sums: number[]) => sums.map((sum) => Number(sum.toFixed(6)));
  for (const [from, to] of [
    [0, 16],
    [3, 50],
    [31, 33],
    [100, 280],
  ] as const) {
    const [before, after] = [growing.before(from), growing.before(to)];
    const part = after.map((sum, at) => sum - (before[at] ?? 0));
    const alone = new Sums(rounds.slice(from, to)).before(to - from);
    expect(compact(part)).toEqual(compact([...alone, ...part.slice(alone.length).map(() => 0)]));
  }
});

test("beyond the last round nothing is added", () => {
  const sums = new Sums([treeRound]);
  expect(sums.before(100)).toEqual(sums.before(1));
  expect(new Sums([]).before(3)).toEqual([]);
});
