import { expect, test } from "vitest";
import { parted } from "./texts";

test("equal texts have no difference", () => {
  expect(parted(["Once", "Once"])).toBeNull();
  expect(parted(["", ""])).toBeNull();
});

test("two texts are cut at the first differing word, not within it", () => {
  expect(parted(["It was then dark.", "It was there."])).toEqual([
    { shared: "It was ", first: "then", rest: " dark." },
    { shared: "It was ", first: "there", rest: "." },
  ]);
});

test("the shorter of two texts has an empty word at its end", () => {
  expect(parted(["It was", "It was dark"])).toEqual([
    { shared: "It was", first: "", rest: "" },
    { shared: "It was", first: " dark", rest: "" },
  ]);
});

test("a character of several code units is never cut", () => {
  const parts = parted(["I am 👩‍🚀", "I am 👩‍🎨!"]);
  expect(parts?.[0]).toEqual({ shared: "I am ", first: "👩‍🚀", rest: "" });
  expect(parted(["😀", "😁"])?.[0].first).toBe("😀");
});

test("markup in a text is text", () => {
  const [one] = parted(["<b>x</b>", "<i>x</i>"]) ?? expect.fail();
  expect(one.shared + one.first + one.rest).toBe("<b>x</b>");
});

test("the three parts join to the text", () => {
  for (const texts of [
    ["a b c", "a x c"],
    ["", "a"],
    ["漢字かな", "漢字カナ"],
  ] as const) {
    parted(texts)?.forEach(({ shared, first, rest }, side) =>
      expect(shared + first + rest).toBe(texts[side]),
    );
  }
});
