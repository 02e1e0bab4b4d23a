import { expect, test } from "vitest";
import type { Excerpt } from "../bindings/Excerpt";
import { citedIn, excerptFile, placeWords, searchedFiles } from "./excerpts";

function excerpt(page: number | null, heading: string | null): Excerpt {
  return { name: "a.pdf", page, heading, text: "a fox" };
}

test("a place is a page and a heading, as far as they are known", () => {
  expect(placeWords(excerpt(1200, "Foxes"))).toBe("page 1,200, Foxes");
  expect(placeWords(excerpt(null, "Foxes"))).toBe("Foxes");
  expect(placeWords(excerpt(null, null))).toBe("");
});

test("only excerpts that exist are cited, each once", () => {
  const three = [1, 2, 3].map((page) => excerpt(page, null));
  expect(citedIn("Foxes [3] run [1][3]; see [4], [0], [01x], 2.", three)).toEqual([1, 3]);
  expect(citedIn("[1]", [])).toEqual([]);
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
