import { expect, test } from "vitest";
import { marked, narrow, phraseOf, matchesOf, score, wordsOf } from "./words";

const names = (query: string, ...all: string[]) => narrow(all, query, (name) => ({ name }));

test("words are found in any order and any case", () => {
  const all = ["New chat", "Search conversations", "Theme: dark"];
  expect(names("DARK theme", ...all)).toEqual(["Theme: dark"]);
  expect(names("theme: dark", ...all)).toEqual(["Theme: dark"]);
  expect(names("appearance: dark", ...all)).toEqual([]);
  expect(names("chat new", ...all)).toEqual(["New chat"]);
  expect(names("chat dark", ...all)).toEqual([]);
});

test("a whole word ranks before a prefix, and a prefix before a part", () => {
  expect(names("top", "Stop it", "Topics", "At the top")).toEqual([
    "At the top",
    "Topics",
    "Stop it",
  ]);
});

test("a name that begins with the query ranks before one that contains it", () => {
  expect(names("th", "Smooth theme", "Theme of light")).toEqual(["Theme of light", "Smooth theme"]);
});

test("a match in a name outweighs all other matches", () => {
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

test("equal entries keep their order, and without words all entries match", () => {
  expect(names("", "b", "a")).toEqual(["b", "a"]);
  expect(names("  ", "b", "a")).toEqual(["b", "a"]);
  expect(names("x", "x 2", "x 1")).toEqual(["x 2", "x 1"]);
});

test("accents do not matter, on either side", () => {
  expect(score({ name: "Café" }, wordsOf("cafe"))).toBeGreaterThan(0);
  expect(score({ name: "Cafe" }, wordsOf("CAFÉ"))).toBeGreaterThan(0);
});

test("every hit of a word is marked, with the original letters", () => {
  expect(marked("Café, café", wordsOf("cafe"))).toEqual([
    { text: "Café", hit: true },
    { text: ", ", hit: false },
    { text: "café", hit: true },
  ]);
});

test("overlapping marks are merged", () => {
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

const found = (text: string, words: string[], atWordStart: boolean) =>
  matchesOf(text, words, atWordStart).map(({ from, to }) => text.slice(from, to));

test("words are found at the beginning of words, in order and without overlap", () => {
  const text = "The fox, a Füchsin; unfoxed: FOXES";
  expect(found(text, wordsOf("fuchs fox"), true)).toEqual(["fox", "Füchs", "FOX"]);
  expect(found(text, wordsOf("fo fox"), true)).toEqual(["fox", "FOX"]);
  expect(found(text, ["x"], true)).toEqual([]);
});

test("a typed phrase is found anywhere, exactly", () => {
  const text = "unfoxed fox  and Fox and";
  expect(found(text, phraseOf(" fox AND "), false)).toEqual(["Fox and"]);
  expect(found(text, phraseOf("fox"), false)).toEqual(["fox", "fox", "Fox"]);
  expect(found("aaaa", phraseOf("aa"), false)).toEqual(["aa", "aa"]);
  expect(found(text, phraseOf("  "), false)).toEqual([]);
});

test("letters of all alphabets are found in any case, at the right place", () => {
  for (const [text, query] of [
    ["Ein ÜBERBLICK", "überblick"],
    ["ein überblick", "Uberblick"],
    ["Большой ЛИС", "лис"],
    ["İstanbul 🦊 Fuchs", "fuchs"],
    ["a🦊b FOX", "fox"],
  ] as const) {
    const [place] = matchesOf(text, wordsOf(query), false);
    expect(text.slice(place?.from, place?.to).length, text).toBe(query.length);
    expect(place?.to, text).toBe(text.length);
  }
});
