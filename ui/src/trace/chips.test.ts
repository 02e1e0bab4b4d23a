import { expect, test } from "vitest";
import { chipsOf, isEmitted, keepsSpace, pieces, type Chip } from "./chips";
import { drafted, extra, round, threeRounds, treeRound } from "./fixtures";
import { textOf } from "./text";

const chip = (text: string, kind: Chip["kind"]): Chip => ({ round: 0, slot: 0, kind, text });
const shown = (text: string, kind: Chip["kind"]) =>
  pieces(chip(text, kind)).map((piece) => (piece.mark ? `[${piece.text}]` : piece.text));

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

test("in a tree the rejected guesses stand before the token that was accepted in their place", () => {
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

test("guesses rejected where a tree ends stand where the recovered token does", () => {
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

test("a chip knows its place in the whole trace, not in the block", () => {
  const places = chipsOf(threeRounds.slice(1), 41).map(({ round, slot }) => [round, slot]);
  expect(places).toEqual([
    [41, 0],
    [41, 1],
    [41, 2],
    [42, 0],
  ]);
});

test("emitted chips join to the text of the reply", () => {
  const emitted = chipsOf(threeRounds).filter(({ kind }) => isEmitted(kind));
  expect(emitted.map(({ text }) => text).join("")).toBe(textOf(threeRounds));
});

test("an emitted newline breaks the line behind a mark", () => {
  expect(shown("one\n\ntwo", "accepted")).toEqual(["one", "[↵↵]", "\n\n", "two"]);
});

test("the pieces of an emitted chip that are no marks are its text", () => {
  const parts = pieces(chip("a\n b\n", "plain")).filter(({ mark }) => !mark);
  expect(parts.map(({ text }) => text).join("")).toBe("a\n b\n");
});

test("a rejected newline or space is a mark and breaks nothing", () => {
  expect(shown("\n", "rejected")).toEqual(["[↵]"]);
  expect(shown(" ", "discarded")).toEqual(["[␣]"]);
  expect(shown("", "discarded")).toEqual(["[∅]"]);
  expect(shown(" so\nit", "rejected")).toEqual(["so↵it"]);
});

test("only a single leading space may vanish at a line's end", () => {
  expect(keepsSpace(" word")).toBe(false);
  expect(keepsSpace("  word")).toBe(true);
  expect(keepsSpace(" ")).toBe(true);
  expect(keepsSpace("two words")).toBe(true);
  expect(keepsSpace("\n")).toBe(true);
});
