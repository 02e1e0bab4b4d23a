/**
 * Extracts the text of a PDF with Mozilla's pdf.js, or draws the pages of a scanned one. Each file
 * has its own worker, which is terminated afterwards; nothing is fetched from the network or run.
 */
import type { PDFDocumentProxy, PDFPageProxy } from "pdfjs-dist";
import openjpeg from "pdfjs-dist/wasm/openjpeg_nowasm_fallback.js?url";
import { drawnPages } from "./pdfPages";

/** Time limit of a file. */
const PATIENCE_MS = 60_000;

/** Separates pages, which are counted by it. */
const PAGE_END = "\n\f\n";

/** Why a PDF's text could not be read; messages explain each case. */
export type PdfProblem = "encrypted" | "damaged" | "slow" | "unpacksTooLarge";

/**
 * Text with a page end, U+000C, between pages, or the first pages as pictures and the number of all
 * pages if none has text.
 */
export type PdfContents =
  { text: string } | { drawn: Uint8Array[]; pages: number } | { unread: PdfProblem };

/** Reads a PDF up to `longest` characters, or its first `most` pages if it is scanned. */
export async function contentsOfPdf(
  bytes: Uint8Array,
  longest: number,
  most: number,
): Promise<PdfContents> {
  const { getDocument, PDFWorker } = await import("pdfjs-dist/legacy/build/pdf.mjs");
  const worker = new Worker(new URL("./pdf.worker.ts", import.meta.url), { type: "module" });
  const task = getDocument({
    data: bytes,
    worker: PDFWorker.create({ port: worker }),
    verbosity: 0,
    disableFontFace: true,
    useSystemFonts: false,
    useWorkerFetch: false,
    useWasm: false,
    // pdf.js appends a file name to this; the address of the only file that it needs is whole.
    wasmUrl: `${new URL(openjpeg, document.baseURI).href}#/`,
    enableXfa: false,
    stopAtErrors: false,
  });
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), PATIENCE_MS);
  });
  const dead = new Promise<"dead">((resolve) => {
    worker.addEventListener("error", () => resolve("dead"));
  });
  const large = new Promise<"large">((resolve) => {
    worker.addEventListener("message", ({ data }: MessageEvent<unknown>) => {
      if (typeof data === "object" && data && "tooLong" in data) resolve("large");
    });
  });
  try {
    const reading = contentsOf(task.promise, longest, most);
    const read = await Promise.race([large, late, dead, reading]);
    if (read === "large") return { unread: "unpacksTooLarge" };
    if (read === "late") return { unread: "slow" };
    return read === "dead" ? { unread: "damaged" } : read;
  } catch (thrown) {
    const first = await Promise.race([large, Promise.resolve(null)]);
    if (first) return { unread: "unpacksTooLarge" };
    const locked = thrown instanceof Error && thrown.name === "PasswordException";
    return { unread: locked ? "encrypted" : "damaged" };
  } finally {
    clearTimeout(timer);
    // Not awaited: a worker that hangs would not answer.
    void task.destroy().catch(() => undefined);
    worker.terminate();
  }
}

async function contentsOf(
  opened: Promise<PDFDocumentProxy>,
  longest: number,
  most: number,
): Promise<PdfContents> {
  const document = await opened;
  const text = await textOfPages(document, longest);
  if (text !== "") return { text };
  const numbers = Array.from({ length: Math.min(document.numPages, most) }, (_, at) => at + 1);
  const drawn = await drawnPages(numbers, (number) => document.getPage(number));
  return { drawn, pages: document.numPages };
}

/** Extracts pages until soon after `longest` characters: longer texts are refused. */
async function textOfPages(pages: PDFDocumentProxy, longest: number): Promise<string> {
  const texts: string[] = [];
  let length = 0;
  for (let number = 1; number <= pages.numPages && length <= longest; number += 1) {
    const text = await textOf(await pages.getPage(number), longest - length);
    texts.push(text);
    length += text.length + PAGE_END.length;
  }
  return texts.some((text) => text !== "") ? texts.join(PAGE_END) : "";
}

/**
 * Extracts a page in parts: pdf.js's own function iterates a stream, which WebKit does not support.
 */
async function textOf(page: PDFPageProxy, longest: number): Promise<string> {
  const stream = page.streamTextContent() as ReadableStream<{ items: readonly object[] }>;
  const parts = stream.getReader();
  let text = "";
  for (let part = await parts.read(); !part.done; part = await parts.read()) {
    text += part.value.items.map(wordsOf).join("");
    if (text.length <= longest) continue;
    // Not awaited: the worker answers late or never, and is terminated soon.
    void parts.cancel(new Error("enough")).catch(() => undefined);
    break;
  }
  return text.trim();
}

/** Text of an item; marked-content items have none. */
function wordsOf(item: object): string {
  if (!("str" in item) || typeof item.str !== "string") return "";
  return "hasEOL" in item && item.hasEOL === true ? `${item.str}\n` : item.str;
}
