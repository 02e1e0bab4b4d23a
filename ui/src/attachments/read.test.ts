import { File } from "node:buffer";
import { deflateSync } from "node:zlib";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { facts } from "../bindings/facts";
import { LocalWorker } from "./workerFixture";
import { lockedPdf, packedPdf, pdfOf } from "./pdfFixture";
import { contentsOfPdf } from "./pdf";
import { readFile as readWith, type Source } from "./read";

beforeEach(() => vi.stubGlobal("Worker", LocalWorker));

afterEach(() => {
  expect(LocalWorker.alive).toBe(0);
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

/** Documents whose text was asked for. */
const asked: string[] = [];

const readFile = (source: Source) =>
  readWith(source, (document) => {
    asked.push(atob(document));
    const unread = atob(document).includes("locked") ? "encrypted" : null;
    return Promise.resolve(unread ? { unread } : { text: "A fox." });
  });

const file = (name: string, content: string | Uint8Array<ArrayBuffer>) => new File([content], name);

async function refusal(source: Source): Promise<string> {
  try {
    await readFile(source);
  } catch (thrown) {
    return thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : "";
  }
  return "it was read";
}

test("line endings of a text are converted to those of a prompt", async () => {
  const {
    files: [read],
  } = await readFile(file("a.csv", "fox,3\r\nhen,2\r\n"));
  expect(read).toEqual({ name: "a.csv", kind: "text", text: "fox,3\nhen,2\n" });
});

test("a PDF is read page by page, with any file name", async () => {
  for (const name of ["a.PDF", "scan", "a.txt"]) {
    const {
      files: [read],
    } = await readFile(file(name, pdfOf(["A fox found a lantern.", "It was lit."])));
    const text = "A fox found a lantern.\n\f\nIt was lit.";
    expect(read).toEqual({ name, kind: "pdf", text });
  }
});

test("a PDF longer than the limit is read only in part", async () => {
  const line = (at: number) => `${"fox ".repeat(20)}) Tj 1 0 0 1 20 ${700 - (at % 600)} Tm (`;
  const bytes = pdfOf([Array.from({ length: 600 }, (_, at) => line(at)).join("")]);
  const whole = await contentsOfPdf(bytes.slice(), Infinity, 1);
  const some = await contentsOfPdf(bytes.slice(), 1000, 1);
  const length = (read: typeof whole) => ("text" in read ? read.text.length : 0);
  expect(length(whole)).toBeGreaterThan(40_000);
  expect(length(some)).toBeGreaterThan(1000);
  expect(length(some)).toBeLessThan(length(whole) / 2);
});

test("a PDF of images, one with a password and a damaged one have different errors", async () => {
  expect(await refusal(file("scan.pdf", pdfOf(["", ""])))).toContain("its pages cannot be drawn");
  expect(await refusal(file("bank.pdf", lockedPdf()))).toBe(
    "Refusal: bank.pdf is protected with a password. Save a copy without it, and attach that.",
  );
  for (const content of ["roses are red", "%PDF-1.7\nand no more", pdfOf(["x"]).slice(0, 200)]) {
    expect(await refusal(file("a.pdf", content))).toContain("may be damaged");
  }
});

test("a PDF that never ends is refused, and its worker is terminated", async () => {
  class Silent extends LocalWorker {
    override postMessage() {
      // Never answers, like a worker in an endless loop.
    }
  }
  vi.stubGlobal("Worker", Silent);
  vi.useFakeTimers();
  const refused = refusal(file("loop.pdf", pdfOf(["x"])));
  await vi.waitFor(() => expect(LocalWorker.alive).toBe(1));
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await refused).toContain("took too long");
});

test.each([1, 3])(
  "a PDF that unpacks to gigabytes in %d streams is refused",
  async (count) => {
    const spaces = deflateSync(Buffer.alloc(150 << 20, " "));
    const before = process.memoryUsage().rss;
    const large = packedPdf(Array<Uint8Array>(count).fill(spaces));
    expect(large.length).toBeLessThan(1 << 20);
    expect(await refusal(file("a.pdf", large))).toContain("unpacks to more than can be read");
    expect(process.memoryUsage().rss - before).toBeLessThan(400 << 20);
  },
  30_000,
);

test("a PDF with compressed streams is read", async () => {
  const text = Buffer.from("BT /F1 12 Tf 20 700 Td (A fox) Tj ET");
  const {
    files: [read],
  } = await readFile(file("a.pdf", packedPdf([deflateSync(text)])));
  expect(read.text).toBe("A fox");
});

test("an empty file is refused and a picture is attached as it is", async () => {
  expect(await refusal(file("a.txt", ""))).toBe("Refusal: a.txt has no text in it.");
  expect(await refusal(file("a.txt", "\n \n"))).toBe("Refusal: a.txt has no text in it.");
  const picture = new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0, 0, 0x0d]);
  const {
    files: [read],
  } = await readFile(file("photo.png", picture));
  expect(read).toMatchObject({ kind: "picture", text: "data:image/png;base64,iVBORwAAAA0=" });
});

test("a file of 100 MB is refused without being read", async () => {
  const read = vi.fn(() => Promise.reject<ArrayBuffer>(new Error("read")));
  const head = vi.fn(() => ({ arrayBuffer: () => Promise.resolve(new ArrayBuffer(4)) }));
  const large = (name: string, size: number) => ({ name, size, arrayBuffer: read, slice: head });
  expect(await refusal(large("a.log", 100 << 20))).toContain("a.log is too large: 100.0 MB");
  expect(await refusal(large("a.pdf", 100 << 20))).toContain("at most 64 MB");
  expect(head).not.toHaveBeenCalled();
  expect(await refusal(large("a.log", facts.attachmentBytes + 1))).toContain("at most 4 MB");
  expect(read).not.toHaveBeenCalled();
  expect(await refusal(large("a.log", facts.attachmentBytes))).toBe("Error: read");
});

test("a text that grows when decoded to UTF-8 is measured again", async () => {
  const letters = new Uint8Array(facts.attachmentBytes / 2 + 1).fill(0xe4);
  expect(await refusal(file("a.txt", letters))).toContain("at most 4 MB");
});

test("documents are known by their content and read by the application", async () => {
  const page = "\ufeff<?xml version='1.0'?><!-- a --><!DOCTYPE html><p>A fox.";
  for (const [name, content] of [
    ["a.docx", "PK\x03\x04 and more"],
    ["a.pdf", "PK\x03\x04 and more"],
    ["a.txt", page],
  ] as const) {
    asked.length = 0;
    const {
      files: [read],
      encoded,
    } = await readFile(file(name, content));
    expect(read).toEqual({ name, kind: "text", text: "A fox." });
    expect([asked.length, encoded]).toEqual([1, null]);
  }
  expect(await refusal(file("a.xlsx", "PK\x03\x04 locked"))).toContain("with a password");
});

test("text that only has the name of a document is read as text", async () => {
  asked.length = 0;
  for (const text of ["a fox", "the tag <html> begins a page", `${"<!---->".repeat(140)}<svg>`]) {
    const {
      files: [read],
    } = await readFile(file("a.docx", text));
    expect(read.text).toBe(text);
  }
  expect(asked).toEqual([]);
});
