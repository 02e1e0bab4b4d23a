import { expect, test } from "vitest";
import { chipsOf, draftPieces, emittedPieces, isEmitted, keepsSpace, type Piece } from "./chips";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";
import { textOf } from "./text";

const LOOKS: Record<Piece["look"], (text: string) => string> = {
  text: (text) => text,
  mark: (text) => `[${text}]`,
  hidden: (text) => `{${text}}`,
};
const looks = (pieces: Piece[]) => pieces.map(({ look, text }) => LOOKS[look](text));
const emitted = (text: string) => looks(emittedPieces(text, false));
const between = (text: string) => looks(emittedPieces(text, true));
const draft = (text: string) => looks(draftPieces(text));

test("chips stand in reading order: rejected, discarded, then what replaced them", () => {
  expect(chipsOf(threeRounds).map(({ kind, text }) => `${kind}:${text}`)).toEqual([
    "accepted:a",
    "accepted: b",
    "bonus: c",
    "rejected: x",
    "discarded: y",
    "recovered: d",
    "plain: e",
  ]);
});

test("in a tree the rejected tokens stand before the accepted token that replaced them", () => {
  expect(chipsOf([treeRound]).map(({ kind, text, slot }) => `${kind}:${text} ${slot}`)).toEqual([
    "rejected: x 0",
    "accepted: a 1",
    "rejected: z 3",
    "accepted: b 4",
    "discarded: y 2",
    "discarded: w 5",
    "bonus: c 6",
  ]);
});

test("tokens rejected at the end of a tree stand where the recovered token does", () => {
  const ended = round(0, {
    drafted: [
      drafted("a", "accepted"),
      drafted("x", "rejected", { parent: 0 }),
      drafted("y", "rejected", { parent: 0 }),
    ],
    extra: extra("d", "recovered"),
  });
  expect(chipsOf([ended]).map(({ text }) => text)).toEqual(["a", "x", "y", "d"]);
});

test("a chip has its place in the whole trace, not in the part", () => {
  const places = chipsOf(threeRounds.slice(1), 41).map(({ round, slot }) => [round, slot]);
  expect(places).toEqual([
    [41, 0],
    [41, 1],
    [41, 2],
    [42, 0],
  ]);
});

test("emitted chips join to the text of the reply", () => {
  const shown = chipsOf(threeRounds).filter(({ kind }) => isEmitted(kind));
  expect(shown.map(({ text }) => text).join("")).toBe(textOf(threeRounds));
});

test("a chip has its range of the text; one that was not emitted stands before its replacement", () => {
  const ranges = chipsOf(threeRounds.slice(1), 1, 5).map(({ from, to }) => [from, to]);
  expect(ranges).toEqual([
    [5, 5],
    [5, 5],
    [5, 7],
    [7, 9],
  ]);
});

test("an emitted newline breaks the line behind a mark", () => {
  expect(emitted("one\n\ntwo")).toEqual(["one", "[↵↵]", "\n\n", "two"]);
});

test("between blocks it has its mark, and breaks nothing", () => {
  expect(between("\n\n  ")).toEqual(["[↵↵]", "{\n\n}", "{  }"]);
});

test("control characters are shown as pictures, and format characters as codes", () => {
  expect(emitted("a\u0007\u001b[3\u007f\tb")).toEqual([
    ...["a", "[␇␛]", "{\u0007\u001b}"],
    ...["[3", "[␡]", "{\u007f}", "\tb"],
  ]);
  expect(emitted("\u202e")).toEqual(["[U+202E]", "\u202e"]);
  expect(draft("\u0000x")).toEqual(["␀x"]);
  expect(draft("\u200d")).toEqual(["[U+200D]"]);
});

test.each(["a\n b\n", "\r\n", "", "\u0000\n\u0001", " \t ", "\u200b", "😀\u200d"])(
  "the pieces of %j that are no marks are its text",
  (text) => {
    for (const isBetween of [true, false]) {
      const parts = emittedPieces(text, isBetween).filter(({ look }) => look !== "mark");
      expect(parts.map((part) => part.text).join("")).toBe(text);
    }
  },
);

test("a rejected newline or space is a mark and breaks nothing", () => {
  expect(draft("\n")).toEqual(["[↵]"]);
  expect(draft(" ")).toEqual(["[␣]"]);
  expect(draft("\t")).toEqual(["[⇥]"]);
  expect(draft("")).toEqual(["[∅]"]);
  expect(draft(" so\nit")).toEqual(["so↵it"]);
});

test("only a single leading space may vanish at a line's end", () => {
  expect(keepsSpace(" word")).toBe(false);
  expect(keepsSpace("  word")).toBe(true);
  expect(keepsSpace(" ")).toBe(true);
  expect(keepsSpace("two words")).toBe(true);
  expect(keepsSpace("\n")).toBe(true);
});
