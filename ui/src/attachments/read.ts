/** Reads attached files: text, PDFs and documents as text, pictures and scans as data URLs. */
import type { Attached } from "../bindings/Attached";
import { facts } from "../bindings/facts";
import { count, decimal } from "../messages/numbers";
import { t } from "../messages/say";
import { decoded, decodedAs } from "./decode";
import { documentFile, isDocument, type ReadDocument } from "./document";
import { contentsOfPdf } from "./pdf";
import { isPicture, pagePicture, pictureFile } from "./picture";
import { Refusal } from "./refusal";

/** Most pages of a scanned PDF that become pictures. */
const SCANNED_PAGES = 10;

/** Bytes searched for a PDF's header, as lenient as other readers. */
const HEAD_BYTES = 1024;

/** The parts of `File` that reading needs. */
export interface Source {
  name: string;
  size: number;
  arrayBuffer(): Promise<ArrayBuffer>;
  slice(from: number, to: number): { arrayBuffer(): Promise<ArrayBuffer> };
}

/** A text file in an older encoding, which can be corrected. */
export interface Encoded {
  bytes: Uint8Array;
  /** Assumed encoding as a label of `TextDecoder`. */
  encoding: string;
}

export interface ReadFile {
  /** One attachment, or a picture for each page of a scanned PDF. */
  files: readonly [Attached, ...Attached[]];
  /** A sentence about what was left out; null if nothing was. */
  note: string | null;
  /** The bytes and the assumed encoding; null if it is certain. */
  encoded: Encoded | null;
}

/**
 * Reads a file as text; `read` extracts that of a document.
 *
 * @throws Refusal, or the browser's error for an unreadable file.
 */
export async function readFile(file: Source, read: ReadDocument): Promise<ReadFile> {
  const { name, size } = file;
  if (size === 0) throw new Refusal(t("attach.empty", { name }));
  if (size > facts.fileBytes) throw tooLarge(name, size, facts.fileBytes);
  const head = new Uint8Array(await file.slice(0, HEAD_BYTES).arrayBuffer());
  if (isPicture(name, head)) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return whole(await pictureFile(name, bytes));
  }
  if (isDocument(head)) {
    const bytes = new Uint8Array(await file.arrayBuffer());
    return whole(await documentFile(name, bytes, read));
  }
  const pdf = name.toLowerCase().endsWith(".pdf") || isPdf(head);
  if (!pdf && size > facts.attachmentBytes) throw tooLarge(name, size, facts.attachmentBytes);
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (pdf) return readPdf(name, bytes);
  const found = await decoded(bytes);
  if (found === null) throw new Refusal(t("attach.binary", { name }));
  const { encoding } = found;
  const text = whole(textFile(name, found.text));
  return encoding === null ? text : { ...text, encoded: { bytes, encoding } };
}

/**
 * Decodes a text file in another encoding.
 *
 * @throws Refusal
 */
export function readAs(name: string, { bytes, encoding }: Encoded): Attached {
  return textFile(name, decodedAs(bytes, encoding));
}

function textFile(name: string, text: string): Attached {
  if (text.trim() === "") throw new Refusal(t("attach.empty", { name }));
  return within({ name, kind: "text", text: text.replaceAll("\r\n", "\n") });
}

/**
 * Returns the file if it is within the size limit.
 *
 * @throws Refusal
 */
export function within(file: Attached): Attached {
  const length = new TextEncoder().encode(file.text).length;
  if (length > facts.attachmentBytes) throw tooLarge(file.name, length, facts.attachmentBytes);
  return file;
}

function isPdf(head: Uint8Array): boolean {
  return new TextDecoder("windows-1252").decode(head).includes("%PDF-");
}

function whole(file: Attached): ReadFile {
  return { files: [file], note: null, encoded: null };
}

async function readPdf(name: string, bytes: Uint8Array): Promise<ReadFile> {
  const read = await contentsOfPdf(bytes, facts.attachmentBytes, SCANNED_PAGES);
  if ("unread" in read) throw new Refusal(t(`attach.${read.unread}`, { name }));
  if ("text" in read) return whole(within({ name, kind: "pdf", text: read.text }));
  const [first, ...others] = read.drawn.map((page, at) => pagePicture(name, at + 1, page));
  if (!first) throw new Refusal(t("attach.scanned", { name }));
  const pages = others.length + 1;
  const words = { name, pages: count(pages), all: count(read.pages) };
  const note = read.pages > pages ? t("attach.firstPages", words) : null;
  return { files: [first, ...others], note, encoded: null };
}

function tooLarge(name: string, bytes: number, most: number): Refusal {
  const given = { name, size: decimal(bytes / (1 << 20), 1), most: count(most >> 20) };
  return new Refusal(t("attach.tooLarge", given));
}
