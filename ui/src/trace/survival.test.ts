import { expect, test } from "vitest";
import { drafted, extra, round, treeRound } from "./fixtures";
import { prospectsOf, prospectWords, roundWords, rowPriceOf } from "./survival";

test("tokens stay in the draft's order, with their positions in the tree", () => {
  const prospects = prospectsOf(treeRound);
  expect(prospects.map(({ slot }) => slot)).toEqual([0, 1, 2, 3, 4, 5]);
  expect(prospects.map(({ position }) => position)).toEqual([1, 1, 1, 2, 2, 2]);
  expect(prospects[0]).toMatchObject({ text: " x", outcome: "rejected", survival: null });
});

test("a token has words for its expectation and its outcome, also if nothing was expected", () => {
  const [known, unknown] = prospectsOf(
    round(0, {
      drafted: [drafted(" a", "accepted", { survival: 0.624 }), drafted("\n", "discarded")],
    }),
  );
  expect(known && prospectWords(known)).toBe("a: position 1, 62% expected, accepted");
  expect(unknown && prospectWords(unknown)).toBe('"\\n": position 2, not checked');
});

test("a round has words for its tokens and the price of a row", () => {
  const tokens = { drafted: [drafted("a", "accepted")], extra: extra("b", "bonus") };
  expect(roundWords(round(0, { ...tokens, expected: 1.84, row_price: 0.08 }))).toBe(
    "Expected 1.8 tokens, got 2. Verifying one more token takes as long as writing 0.08 tokens, so it is worth it only if its bar reaches the line.",
  );
  expect(roundWords(round(0, tokens))).toBe("");
});

test("a price of nothing is none: the draft was not ended by its worth", () => {
  expect([0.08, 0, null].map((row_price) => rowPriceOf(round(0, { row_price })))).toEqual([
    0.08,
    null,
    null,
  ]);
});
