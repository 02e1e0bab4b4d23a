import { expect, test } from "vitest";
import { draftWords, reckoned, speedWords } from "./speedWords";

test("what is reckoned is said to be about so much, with no more digits than matter", () => {
  expect(reckoned(34.44)).toBe("about 34 tokens/s here");
  expect(reckoned(6.378)).toBe("about 6.4 tokens/s here");
  const guess = { plain: 34.4, drafted: null, measured: false };
  expect([speedWords(guess), draftWords(guess)]).toEqual(["about 34 tokens/s here", null]);
});

test("what was measured is said as it was, and whether drafts made it faster", () => {
  const both = { plain: 34.4, drafted: 51.6, measured: true };
  expect(speedWords(both)).toBe("34 tokens/s here, 52 with drafts");
  expect(draftWords(both)).toBe("drafts pay: 1.5x");
  expect(draftWords({ ...both, drafted: 34.6 })).toBe("drafts do not pay here");
  const plain = { ...both, drafted: null };
  expect([speedWords(plain), draftWords(plain)]).toEqual(["34 tokens/s here", null]);
  const drafted = { ...both, plain: null };
  expect([speedWords(drafted), draftWords(drafted)]).toEqual([
    "52 tokens/s here with drafts",
    null,
  ]);
  expect(speedWords({ plain: null, drafted: null, measured: true })).toBeNull();
});
