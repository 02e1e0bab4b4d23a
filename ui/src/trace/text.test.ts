import { expect, test } from "vitest";
import { drafted, round, threeRounds } from "./fixtures";
import { textOf } from "./text";

test("the text has the tokens that rounds added, and no rejected or discarded ones", () => {
  expect(textOf(threeRounds)).toBe("a b c d e");
});

test("a reply that an accepted token ended has no extra token", () => {
  const ended = round(3, { drafted: [drafted("!", "accepted"), drafted(" z", "discarded")] });
  expect(textOf([...threeRounds, ended])).toBe("a b c d e!");
});
