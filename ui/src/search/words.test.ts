import { expect, test } from "vitest";
import { marked, narrow, score, wordsOf } from "./words";

const names = (query: string, ...all: string[]) => narrow(all, query, (name) => ({ name }));

test("words are found in any order and any case", () => {
  const all = ["New chat", "Search conversations", "Theme: dark"];
  expect(names("DARK theme", ...all)).toEqual(["Theme: dark"]);
  expect(names("chat new", ...all)).toEqual(["New chat"]);
  expect(names("chat dark", ...all)).toEqual([]);
});

test("a whole word comes before a beginning, and that before the middle of a word", () => {
  expect(names("top", "Stop it", "Topics", "At the top")).toEqual([
    "At the top",
    "Topics",
    "Stop it",
  ]);
});

test("a name that begins with what was typed comes before one that has it later", () => {
  expect(names("th", "Smooth theme", "Theme of light")).toEqual(["Theme of light", "Smooth theme"]);
});

test("a name counts more than everything else that something is found by", () => {
  const all = [
    { name: "Arena", more: "speed compare speed" },
    { name: "Upspeeding", more: "" },
  ];
  expect(narrow(all, "speed", (one) => one).map(({ name }) => name)).toEqual([
    "Upspeeding",
    "Arena",
  ]);
  expect(narrow(all, "arena compare", (one) => one)).toHaveLength(1);
});

test("equals stay in their order, and without words everything is there", () => {
  expect(names("", "b", "a")).toEqual(["b", "a"]);
  expect(names("  ", "b", "a")).toEqual(["b", "a"]);
  expect(names("x", "x 2", "x 1")).toEqual(["x 2", "x 1"]);
});

test("accents do not matter, on either side", () => {
  expect(score({ name: "Café" }, wordsOf("cafe"))).toBeGreaterThan(0);
  expect(score({ name: "Cafe" }, wordsOf("CAFÉ"))).toBeGreaterThan(0);
});

test("every place of a word is marked, with the letters as they were written", () => {
  expect(marked("Café, café", wordsOf("cafe"))).toEqual([
    { text: "Café", hit: true },
    { text: ", ", hit: false },
    { text: "café", hit: true },
  ]);
});

test("marks that overlap are one", () => {
  expect(marked("drafted", wordsOf("draft afte"))).toEqual([
    { text: "drafte", hit: true },
    { text: "d", hit: false },
  ]);
  expect(marked("İstanbul 🦊 fox", wordsOf("fox")).at(-1)).toEqual({ text: "fox", hit: true });
});

test("without words nothing is marked", () => {
  expect(marked("Theme", [])).toEqual([{ text: "Theme", hit: false }]);
  expect(marked("", wordsOf("a"))).toEqual([]);
});
