import { File } from "node:buffer";
import { beforeEach, expect, test } from "vitest";
import type { Attached } from "../bindings/Attached";
import type { Backend } from "../backend/backend";
import { facts } from "../bindings/facts";
import { Attachments } from "./attachments.svelte";

let attachments: Attachments;
/** By how much the backend counts: another model, another number. */
let factor = 1;

beforeEach(() => {
  factor = 1;
  const countAttachment = ({ text }: Attached) =>
    Promise.resolve({ tokens: text.length * factor, exact: true });
  attachments = new Attachments({ countAttachment } as unknown as Backend);
});

const file = (name: string, text: string) => new File([text], name);
const names = () => attachments.waiting.map(({ name }) => name);

test("files are listed at once, read one after the other, and counted", async () => {
  const added = attachments.add([file("a.md", "abc"), file("b.json", "{}")]);
  expect(names()).toEqual(["a.md", "b.json"]);
  expect(attachments.reading).toBe(true);
  await added;
  expect(attachments.reading).toBe(false);
  expect(attachments.tokens).toBe(5);
  expect(attachments.files.map(({ text }) => text)).toEqual(["abc", "{}"]);
  factor = 2;
  attachments.recount();
  await expect.poll(() => attachments.tokens).toBe(10);
});

test("a pasted text has the limits of files", () => {
  expect(attachments.addText("fox")).toBe(1);
  expect(attachments.addText("fox")).toBeNull();
  expect(attachments.problems).toEqual(["Pasted text.txt is attached already."]);
  expect(attachments.addText("é".repeat(facts.attachmentBytes / 2 + 1))).toBeNull();
  expect(attachments.problems[0]).toContain("too large");
  expect(attachments.waiting).toHaveLength(1);
  for (let at = 1; at < facts.attachments; at += 1) attachments.addText(`fox ${at}`);
  expect(attachments.waiting).toHaveLength(facts.attachments);
  expect(attachments.addText("one more")).toBeNull();
  expect(attachments.problems).toHaveLength(1);
});

test("a file that cannot be attached is named, and the others are attached", async () => {
  await attachments.add([file("a.bin", "\0"), file("a.md", "abc"), file("empty", "")]);
  expect(names()).toEqual(["a.md"]);
  expect(attachments.problems).toEqual([
    "a.bin is not text. Text, code, CSV, JSON and PDF files can be attached.",
    "empty has no text in it.",
  ]);
  attachments.dismiss();
  expect(attachments.problems).toEqual([]);
});

test("the same file is attached once, and another of its name beside it", async () => {
  await attachments.add([file("a.md", "abc"), file("a.md", "abc"), file("a.md", "abd")]);
  expect(names()).toEqual(["a.md", "a.md"]);
  expect(attachments.problems).toEqual(["a.md is attached already."]);
});

test("more files than a message may have are left out", async () => {
  const many = Array.from({ length: facts.attachments + 2 }, (_, at) => file(`${at}`, `${at}`));
  await attachments.add(many);
  expect(names()).toHaveLength(facts.attachments);
  expect(attachments.problems[0]).toContain("At most 20 files");
});

test("what was sent goes off the list, and what came meanwhile stays", async () => {
  await attachments.add([file("a.md", "abc")]);
  const sent = attachments.files;
  const pasted = attachments.addText("long");
  attachments.sent(sent);
  expect(names()).toEqual(["Pasted text.txt"]);
  attachments.remove(pasted ?? expect.fail("it was refused"));
  expect(names()).toEqual([]);
});
