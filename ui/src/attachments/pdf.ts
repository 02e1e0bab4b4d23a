/**
 * The text of a PDF, by Mozilla's pdf.js. What reads the file runs in a worker of its own, which is
 * there for this file alone and is ended with it; nothing is drawn, fetched or run.
 */

/** A file that keeps its reader busy for longer is given up. */
const PATIENCE_MS = 60_000;

/** Why a PDF's text could not be read; messages explain each case. */
export type Unread = "encrypted" | "damaged" | "slow" | "unpacksTooLarge";

/** Pages are parted by an empty line; empty where all of them are pictures. */
export async function textOfPdf(
  bytes: Uint8Array,
  longest: number,
): Promise<{ text: string } | { unread: Unread }> {
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
    const reading = pagesOf(task.promise, longest).then((text) => ({ text }));
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
    // Without waiting: a worker that hangs would not answer.
    void task.destroy().catch(() => undefined);
    worker.terminate();
  }
}

interface Pages {
  numPages: number;
  getPage(number: number): Promise<Page>;
}

interface Page {
  streamTextContent(): ReadableStream<{ items: readonly object[] }>;
}

/** Ends soon after `longest` characters: more is refused anyway. */
async function pagesOf(opened: Promise<Pages>, longest: number): Promise<string> {
  const pages = await opened;
  const texts: string[] = [];
  let length = 0;
  for (let number = 1; number <= pages.numPages && length <= longest; number += 1) {
    const text = await textOf(await pages.getPage(number), longest - length);
    if (text !== "") texts.push(text);
    length += text.length;
  }
  return texts.join("\n\n");
}

/**
 * Read part by part: WebKit cannot walk through a stream in a loop, as pdf.js's own way to the
 * whole does.
 */
async function textOf(page: Page, longest: number): Promise<string> {
  const parts = page.streamTextContent().getReader();
  let text = "";
  for (let part = await parts.read(); !part.done; part = await parts.read()) {
    text += part.value.items.map(wordsOf).join("");
    if (text.length <= longest) continue;
    // Answered when the reader of the file has time, or never: it is ended soon.
    void parts.cancel(new Error("enough")).catch(() => undefined);
    break;
  }
  return text.trim();
}

/** The text of an item; marked-content items have none. */
function wordsOf(item: object): string {
  if (!("str" in item) || typeof item.str !== "string") return "";
  return "hasEOL" in item && item.hasEOL === true ? `${item.str}\n` : item.str;
}
