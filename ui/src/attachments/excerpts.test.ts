import { expect, test } from "vitest";
import type { Excerpt } from "../bindings/Excerpt";
import { excerptFile, placeWords, quotedSpans, searchedFiles, sourcesOf } from "./excerpts";

function excerpt(page: number | null, heading: string | null, text = "a fox"): Excerpt {
  return { name: "a.pdf", page, heading, text };
}

test("a place is a page and a heading, as far as they are known", () => {
  expect(placeWords(excerpt(1200, "Foxes"))).toBe("page 1,200, Foxes");
  expect(placeWords(excerpt(null, "Foxes"))).toBe("Foxes");
  expect(placeWords(excerpt(null, null))).toBe("");
});

test("only excerpts that exist are cited, each once", () => {
  const three = [1, 2, 3].map((page) => excerpt(page, null));
  expect(sourcesOf("Foxes [3] run [1][3]; see [4], [0], [01x], 2.", three)).toEqual([1, 3]);
  expect(sourcesOf("[1]", [])).toEqual([]);
});

test("eight words of an excerpt are a quotation, whatever stands between them", () => {
  const excerpts = [
    excerpt(1, null, "On Monday the river rose\nby three feet, and the mill stood still."),
    excerpt(2, null, "The keeper of the lighthouse is called Ines, and she is never late."),
  ];
  const quoted = (text: string) => sourcesOf(text, excerpts);
  expect(quoted("It says: **the river** rose by three feet and the.")).toEqual([1]);
  expect(quoted("It says that the river rose by three feet and a half.")).toEqual([]);
  expect(quoted("The river rose by three feet; the mill stood still.")).toEqual([]);
  expect(quoted("KEEPER OF THE LIGHTHOUSE IS CALLED INES AND [1]")).toEqual([1, 2]);
  expect(quoted("the river rose by three feet and the mill stood")).toEqual([1]);
  expect(quoted("")).toEqual([]);
});

test("quoted parts of a text are joined where they overlap", () => {
  const text =
    "Ines, the keeper of the lighthouse, is never late. She reads. The mill stood still.";
  const quoted = (by: string) => quotedSpans(text, by).map(({ from, to }) => text.slice(from, to));
  expect(quoted("INES the keeper of the lighthouse is never late and")).toEqual([
    "Ines, the keeper of the lighthouse, is never late",
  ]);
  expect(quoted("never late she reads the mill stood still")).toEqual([
    "never late. She reads. The mill stood still",
  ]);
  expect(quoted("the keeper of the lighthouse")).toEqual([]);
  const chinese = "周一河水上涨了三尺，磨坊停了下来，人们很担心。";
  expect(quotedSpans(chinese, "据说河水上涨了三尺磨坊停了下来人们很")).toEqual([
    { from: 2, to: 20 },
  ]);
});

test("sixteen letters of a script without spaces are a quotation", () => {
  const excerpts = [
    excerpt(1, null, "周一河水上涨了三尺，磨坊停了下来，人们很担心。"),
    excerpt(2, null, "Rust的狐狸跳过了那只非常懒惰的狗然后睡觉"),
  ];
  const quoted = (text: string) => sourcesOf(text, excerpts);
  expect(quoted("据说河水上涨了三尺磨坊停了下来人们很。")).toEqual([1]);
  expect(quoted("据说河水上涨了三尺磨坊停了下来人们。")).toEqual([]);
  expect(quoted("的狐狸跳过了那只非常懒惰的狗然")).toEqual([]);
  expect(quoted("“的狐狸跳过了那只非常懒惰的狗然后”")).toEqual([2]);
});

test("files are searched that do not fit with those before them", () => {
  const waiting = [50, 60, 40, 20].map((tokens, id) => ({
    id,
    file: { name: "a.txt", kind: "text" as const, text: "" },
    count: { tokens, exact: true },
  }));
  expect([...searchedFiles(waiting, 100)]).toEqual([1, 3]);
  expect([...searchedFiles(waiting, null)]).toEqual([]);
  const picture = {
    id: 9,
    file: { name: "a", kind: "picture" as const, text: "" },
    count: null,
  };
  const unread = { id: 8, file: null, count: null };
  expect([...searchedFiles([picture, unread], 0)]).toEqual([]);
});

test("an excerpt is shown as a text without the language of its file's name", () => {
  expect(excerptFile(excerpt(1, null))).toEqual({ name: "a.pdf", kind: "text", text: "a fox" });
});
