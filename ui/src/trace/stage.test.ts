import { expect, test } from "vitest";
import { threeRounds, treeRound } from "./fixtures";
import { roundAt, stagesOf } from "./stage";
import { textOf } from "./text";

test("before verification only the draft token's own values are known", () => {
  const drafted = roundAt(treeRound, "drafted");
  expect(drafted.drafted.map(({ text }) => text)).toEqual(
    treeRound.drafted.map(({ text }) => text),
  );
  expect(drafted.drafted.map(({ parent }) => parent)).toEqual([null, null, null, 1, 1, 0]);
  expect(drafted.drafted.every(({ target_probability }) => target_probability === null)).toBe(true);
  expect(textOf([drafted])).toBe("");
});

test("the extra token comes last", () => {
  expect(textOf([roundAt(treeRound, "judged")])).toBe(" a b");
  expect(roundAt(treeRound, "emitted")).toBe(treeRound);
});

test("a round without a draft has nothing to show before its token", () => {
  expect(stagesOf(threeRounds[2])).toEqual(["emitted"]);
  expect(stagesOf(threeRounds[0])).toEqual(["drafted", "judged", "emitted"]);
  expect(stagesOf(undefined)).toEqual(["emitted"]);
});
