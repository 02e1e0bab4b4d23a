import { expect, test } from "vitest";
import { threeRounds } from "./fixtures";
import { completed, type StoredRound } from "./stored";
import { parentsOf } from "./tree";

const old: StoredRound = {
  index: 0,
  position: 7,
  drafted: [
    { token: 1, text: "a", draft_probability: 0.5, outcome: "accepted", drafter: "model" },
    { token: 2, text: "b", draft_probability: 0.5, outcome: "rejected", drafter: "model" },
  ],
  extra: { token: 3, text: "c", kind: "recovered" },
  draft_length: 2,
  reason: "governed",
  decision: { chosen: 2, verify_ms: [1], acceptance: [0.5], tokens_per_second: [10, 12] },
  times: { draft_ms: 1, verify_ms: 1, sample_ms: 1, rest_ms: 1 },
  at_ms: 4,
};

test("fields missing in older versions are filled in", () => {
  const round = completed(old);
  expect(round).toMatchObject({ threshold: null, staged: false, position: 7 });
  expect(round.decision).toMatchObject({ before: null, drafting_ms: [], chosen: 2 });
  const judged = { parent: null, target_probability: null, acceptance: null };
  expect(round.drafted).toMatchObject([judged, judged]);
  expect(parentsOf(round)).toEqual([null, 0]);
});

test("the last round has no extra token, and a round may have no decision", () => {
  const ended = { ...old };
  delete ended.extra;
  delete ended.decision;
  expect(completed(ended)).toMatchObject({ extra: null, decision: null });
});

test("stored fields stay as they are", () => {
  const drafted = old.drafted.map((token) => ({ ...token, survival: 0.5 }));
  const expected = { ...completed({ ...old, drafted }), expected: 2, row_price: 0.25 };
  for (const round of [...threeRounds, expected])
    expect(completed(round)).toEqual({ decision: null, ...round });
});
