import { expect, test } from "vitest";
import { cardOf, duration, probability, seconds, sentenceOf, visible } from "./describe";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";

test("a rejected token's card has its probabilities and its position in the draft", () => {
  const card = cardOf(threeRounds, { round: 1, slot: 0 });
  expect(card).toMatchObject({
    kind: "rejected",
    position: 1,
    draftLength: 2,
    draftProbability: 0.5,
    targetProbability: 0.4,
    round: 2,
    roundMs: 10,
  });
});

test("a recovered token's card names what it replaced", () => {
  expect(cardOf(threeRounds, { round: 1, slot: 2 })?.insteadOf).toEqual([" x"]);
});

test("a token of a tree has its depth, and its rank among its siblings", () => {
  const card = cardOf([treeRound], { round: 0, slot: 4 });
  expect(card).toMatchObject({
    position: 2,
    draftLength: 2,
    rank: { number: 2, of: 2 },
    insteadOf: [" z"],
  });
  expect(card && sentenceOf(card)).toContain("position 2 of 2, alternative 2 of 2");
  expect(cardOf([treeRound], { round: 0, slot: 6 })?.insteadOf).toEqual([]);
});

test("the rank is by draft probability, equal ones in draft order", () => {
  const guesses = [0.1, 0.6, 0.1, 0.2].map((draft_probability) =>
    drafted("a", "rejected", { draft_probability }),
  );
  const held = round(0, { drafted: guesses, extra: extra("b", "recovered") });
  const ranks = guesses.map((_, slot) => cardOf([held], { round: 0, slot })?.rank?.number);
  expect(ranks).toEqual([3, 1, 4, 2]);
});

test("a card shows how long its round was drafted and verified", () => {
  expect(cardOf(threeRounds, { round: 0, slot: 2 })).toMatchObject({ draftMs: 2, verifyMs: 6 });
});

test("a card shows how many experts its round read, if there are any", () => {
  const held = round(0, { extra: extra("b", "plain"), experts: 12.5 });
  expect(cardOf([held], { round: 0, slot: 0 })?.experts).toBe(12.5);
  expect(cardOf(threeRounds, { round: 0, slot: 2 })?.experts).toBeNull();
});

test("a card names the drafter of the token and the acceptance threshold of the draft", () => {
  const by = (drafter: "model" | "ngram" | "recycling") => {
    const token = drafted("a", "accepted", { drafter });
    const held = round(0, { drafted: [token], extra: extra("b", "bonus"), staged: true });
    return cardOf([{ ...held, threshold: 0.25 }], { round: 0, slot: 0 });
  };
  expect(by("model")).toMatchObject({ drafter: "draft model, two-stage", threshold: 0.25 });
  expect(by("ngram")?.drafter).toBe("n-gram");
  expect(by("recycling")?.drafter).toBe("token recycling");
});

test("a place without a token has no card", () => {
  expect(cardOf(threeRounds, { round: 2, slot: 1 })).toBeNull();
  expect(cardOf(threeRounds, { round: 3, slot: 0 })).toBeNull();
});

test("a sentence names the outcome", () => {
  const card = cardOf(threeRounds, { round: 1, slot: 1 });
  expect(card && sentenceOf(card)).toBe("y: not checked, round 2, position 2 of 2");
});

test("a token of four thousand characters is cut, in cards and in sentences", () => {
  const text = "ab".repeat(2048);
  expect(visible(text)).toMatch(/^(ab){60}… \(4,096 characters\)$/);
  expect(visible(`${"a".repeat(119)}😀${text}`)).toMatch(/^a{119}… /);
  const card = cardOf([round(0, { extra: extra(text, "plain") })], { round: 0, slot: 0 });
  expect(card && sentenceOf(card).length).toBeLessThan(200);
});

test("control characters are visible", () => {
  expect(visible("\u0000 \n\t\u001b")).toBe("␀␣↵⇥␛");
});

test("numbers keep their significant digits", () => {
  expect(probability(0.00004)).toBe("< 0.001");
  expect(probability(0)).toBe("0.000");
  expect(duration(3.44)).toBe("3.4\u00a0ms");
  expect(duration(212.4)).toBe("212\u00a0ms");
  expect(duration(2504)).toBe("2.5\u00a0s");
  expect(duration(42_300)).toBe("42\u00a0s");
  expect(duration(9960)).toBe("10\u00a0s");
  expect(duration(59_600)).toBe("1:00");
  expect(duration(1_094_900)).toBe("18:15");
  expect(duration(7_905_700)).toBe("2 h 12 min");
});

test("a waiting time is at least a second, and in minutes or hours where it is long", () => {
  expect(seconds(20)).toBe("1\u00a0s");
  expect(seconds(59_000)).toBe("59\u00a0s");
  expect(seconds(125_000)).toBe("2\u00a0min 5\u00a0s");
  expect(seconds(7_905_700)).toBe("2 h 12 min");
});
