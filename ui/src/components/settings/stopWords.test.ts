import { expect, test } from "vitest";
import { formatStopWords, parseStopWords } from "./stopWords";

test("every list of stop words survives its lines", () => {
  const words = ["User:", "\n\n", "a\\nb", "\t|", " end ", "ünï"];
  expect(parseStopWords(formatStopWords(words))).toEqual(words);
  expect(formatStopWords(["\n\n", "a\\nb"])).toBe("\\n\\n\na\\\\nb");
});

test("empty lines and duplicates are left out", () => {
  expect(parseStopWords("a\n\nb\na\n")).toEqual(["a", "b"]);
  expect(parseStopWords("")).toEqual([]);
  expect(parseStopWords("\\x")).toEqual(["\\x"]);
});
