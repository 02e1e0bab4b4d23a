import { File } from "node:buffer";
import { beforeEach, expect, test } from "vitest";
import type { Attached } from "../bindings/Attached";
import type { Backend } from "../backend/backend";
import { facts } from "../bindings/facts";
import { Attachments } from "./attachments.svelte";

let attachments: Attachments;
let current: number | null;
let backend: Backend;
/** The files in the store, which outlives the page. */
let stored: { conversation: number | null; id: number; file: Attached }[];
/** Factor on the backend's token counts: each model counts differently. */
let factor = 1;

beforeEach(() => {
  factor = 1;
  const countAttachment = ({ text }: Attached) =>
    Promise.resolve({ tokens: text.length * factor, exact: true });
  current = null;
  stored = [];
  let lastId = 100;
  backend = {
    countAttachment,
    unsentFiles: (conversation: number | null) =>
      Promise.resolve(stored.filter((one) => one.conversation === conversation)),
    addUnsentFile: (conversation: number | null, added: Attached) => {
      stored.push({ conversation, id: (lastId += 1), file: added });
      return Promise.resolve(lastId);
    },
    removeUnsentFiles: (ids: number[]) => {
      stored = stored.filter(({ id }) => !ids.includes(id));
      return Promise.resolve();
    },
  } as unknown as Backend;
  attachments = new Attachments(
    backend,
    () => current,
    () => null,
  );
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

test("a refused file is named, and the others are attached", async () => {
  await attachments.add([file("a.bin", "\0"), file("a.md", "abc"), file("empty", "")]);
  expect(names()).toEqual(["a.md"]);
  expect(attachments.problems).toEqual([
    "a.bin is not text. Text, code, CSV, JSON, PDF, Word, PowerPoint, Excel, OpenDocument sheets, EPUB and HTML files can be attached.",
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

test("files beyond the limit of a message are left out", async () => {
  const many = Array.from({ length: facts.attachments + 2 }, (_, at) => file(`${at}`, `${at}`));
  await attachments.add(many);
  expect(names()).toHaveLength(facts.attachments);
  expect(attachments.problems[0]).toContain("At most 20 files");
});

test("sent files are removed from the list, and files added meanwhile stay", async () => {
  await attachments.add([file("a.md", "abc")]);
  const sent = attachments.files;
  const pasted = attachments.addText("long");
  attachments.sent(sent);
  expect(names()).toEqual(["Pasted text.txt"]);
  attachments.remove(pasted ?? expect.fail("it was refused"));
  expect(names()).toEqual([]);
});

test("each conversation has its own files, which survive a restart until they are sent", async () => {
  await attachments.add([file("new.md", "abc")]);
  attachments = new Attachments(
    backend,
    () => 1,
    () => null,
  );
  await attachments.add([file("a.md", "abc"), file("b.md", "abcd"), file("c.md", "abcde")]);
  attachments.remove(attachments.waiting[1]?.id ?? expect.fail("it is missing"));
  await expect.poll(() => stored.length).toBe(3);

  const again = new Attachments(
    backend,
    () => 1,
    () => null,
  );
  await Promise.all([again.load(null), again.load(1), again.load(1)]);
  expect(again.waiting.map(({ name }) => name)).toEqual(["a.md", "c.md"]);
  await expect.poll(() => again.tokens).toBe(8);
  again.sent(again.files);
  await expect.poll(() => stored.map(({ file: { name } }) => name)).toEqual(["new.md"]);
});

test("a file removed before it is stored is not stored", async () => {
  const added = attachments.add([file("a.md", "abc")]);
  attachments.remove(attachments.waiting[0]?.id ?? expect.fail("it is missing"));
  await added;
  expect([names(), stored]).toEqual([[], []]);
});

test("files of an imported conversation stay on the page only", async () => {
  current = -1;
  attachments.addText("fox");
  await attachments.load(-1);
  await expect.poll(() => attachments.tokens).toBe(3);
  expect(stored).toEqual([]);
});

test("a refusal is shown in the conversation of its file", async () => {
  let open = $state<number | null>(1);
  const all = new Attachments(
    backend,
    () => open,
    () => null,
  );
  const adding = all.add([new File(["\0"], "a.bin")]);
  open = 2;
  await adding;
  expect(all.problems).toEqual([]);
  all.refuseImage();
  open = 1;
  expect(all.problems[0]).toContain("a.bin");
  all.dismiss();
  open = 2;
  expect(all.problems).toHaveLength(1);
});

test("a file is decoded, counted and stored again in a chosen encoding", async () => {
  current = 7;
  const bytes = Uint8Array.from("Erd\u00f5s Gy\u00f5z\u00f5", (letter) => letter.charCodeAt(0));
  await attachments.add([new File([bytes], "names.txt"), file("utf8.txt", "ő")]);
  const [names, other] = attachments.waiting;
  expect(names?.encoded?.encoding).toBe("windows-1252");
  expect(other?.encoded).toBeNull();
  await attachments.decodeAs(names?.id ?? 0, "windows-1250");
  expect(attachments.files[0]?.text).toBe("Erdős Győző");
  expect(attachments.waiting[0]?.encoded?.encoding).toBe("windows-1250");
  expect(attachments.waiting[0]?.count).not.toBeNull();
  expect(stored.map((one) => one.file.text).sort()).toEqual(["Erdős Győző", "ő"]);
});
