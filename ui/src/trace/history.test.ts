import { expect, test } from "vitest";
import type { Decision } from "../bindings/Decision";
import { round } from "./fixtures";
import { History } from "./history";

function decision(before: number | null, chosen: number): Decision {
  return {
    before,
    chosen,
    drafting_ms: [],
    verify_ms: [],
    acceptance: [],
    tokens_per_second: [],
  };
}

const rounds = [
  round(0, { decision: decision(null, 5), reason: "governed" }),
  round(1, { reason: "governed" }),
  round(2, { decision: decision(5, 5), reason: "governed" }),
  round(3, { decision: decision(5, 0), reason: "would_not_pay" }),
  round(4, { reason: "probe" }),
];

test("the history has the first choice and all changes, not repeated decisions", () => {
  const changes = new History(rounds).changes();
  expect(changes.map(({ round: at, decision: { chosen } }) => [at, chosen])).toEqual([
    [0, 5],
    [3, 0],
  ]);
  expect(changes[1]).toMatchObject({ atMs: 130, reason: "would_not_pay" });
});

test("a round has the curve of the last decision before it, even one without a change", () => {
  const history = new History(rounds);
  expect([0, 1, 2, 3, 4].map((at) => history.heldIn(at)?.round)).toEqual([0, 0, 2, 3, 3]);
  expect(history.heldIn(null)?.round).toBe(3);
});

test("before the first decision there is none", () => {
  expect(new History([]).heldIn(null)).toBeNull();
  expect(new History([round(0), ...rounds]).heldIn(0)).toBeNull();
});

test("rounds are counted by their reason, the most frequent first", () => {
  expect(new History(rounds).reasons()).toEqual([
    { reason: "governed", rounds: 3 },
    { reason: "would_not_pay", rounds: 1 },
    { reason: "probe", rounds: 1 },
  ]);
});

test("later rounds are read once, and the list stays the same until then", () => {
  const growing = rounds.slice(0, 2);
  const history = new History(growing);
  const before = history.changes();
  expect(history.changes()).toBe(before);
  growing.push(...rounds.slice(2));
  expect(history.changes()).toEqual(new History(rounds).changes());
  expect(history.reasons()).toEqual(new History(rounds).reasons());
});
