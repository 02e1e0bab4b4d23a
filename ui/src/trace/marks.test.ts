import { expect, test } from "vitest";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";
import { Marks } from "./marks";

test("only what occurs is listed, a round without drafts included", () => {
  const marks = new Marks(threeRounds);
  const all = ["accepted", "rejected", "discarded", "bonus", "recovered", "plain"];
  expect(marks.outcomes()).toEqual(all);
  expect(new Marks(threeRounds.slice(0, 1)).outcomes()).toEqual(["accepted", "bonus"]);
  expect(new Marks([]).outcomes()).toEqual([]);
});

test("several tokens at one position are a mark of their own", () => {
  expect(new Marks([treeRound]).outcomes()).toContain("tree");
});

test("drafters are listed if there are several, also while rounds arrive", () => {
  const rounds = [round(0, { drafted: [drafted("a", "accepted")], extra: extra("b", "bonus") })];
  const marks = new Marks(rounds);
  expect(marks.drafters()).toEqual([]);
  rounds.push(round(1, { drafted: [drafted("c", "accepted", { drafter: "ngram" })] }));
  expect(marks.drafters()).toEqual(["model", "ngram"]);
  rounds.push(round(2, { staged: true, drafted: [drafted("d", "accepted")] }));
  expect(marks.drafters()).toEqual(["model", "staged", "ngram"]);
});
