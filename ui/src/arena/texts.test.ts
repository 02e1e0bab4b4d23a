import { expect, test } from "vitest";
import { splitAtDifference } from "./texts";

test("equal texts have no difference", () => {
  expect(splitAtDifference(["Once", "Once"])).toBeNull();
  expect(splitAtDifference(["", ""])).toBeNull();
});

test("two texts are cut at the first differing word, not within it", () => {
  expect(splitAtDifference(["It was then dark.", "It was there."])).toEqual([
    { shared: "It was ", first: "then", rest: " dark." },
    { shared: "It was ", first: "there", rest: "." },
  ]);
});

test("the shorter of two texts has an empty word at its end", () => {
  expect(splitAtDifference(["It was", "It was dark"])).toEqual([
    { shared: "It was", first: "", rest: "" },
    { shared: "It was", first: " dark", rest: "" },
  ]);
});

test("a character of several code units is never cut", () => {
  const parts = splitAtDifference(["I am 👩‍🚀", "I am 👩‍🎨!"]);
  expect(parts?.[0]).toEqual({ shared: "I am ", first: "👩‍🚀", rest: "" });
  expect(splitAtDifference(["😀", "😁"])?.[0].first).toBe("😀");
});

test("markup in a text is text", () => {
  const [one] = splitAtDifference(["<b>x</b>", "<i>x</i>"]) ?? expect.fail();
  expect(one.shared + one.first + one.rest).toBe("<b>x</b>");
});

test("the three parts join to the text", () => {
  for (const texts of [
    ["a b c", "a x c"],
    ["", "a"],
    ["漢字かな", "漢字カナ"],
  ] as const) {
    splitAtDifference(texts)?.forEach(({ shared, first, rest }, side) =>
      expect(shared + first + rest).toBe(texts[side]),
    );
  }
});
