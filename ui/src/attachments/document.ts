/** Office documents, spreadsheets, books and web pages, whose text the application extracts. */
import type { Attached } from "../bindings/Attached";
import type { DocumentText } from "../bindings/DocumentText";
import type { Unread } from "../bindings/Unread";
import { facts } from "../bindings/facts";
import { t } from "../messages/say";
import { base64 } from "./picture";
import { Refusal } from "./refusal";

/** Extracts the text of a file in Base64. */
export type ReadDocument = (file: string) => Promise<DocumentText>;

/** First bytes of archives, and of the container of old or encrypted documents. */
const MAGIC: readonly (readonly number[])[] = [
  [0x50, 0x4b, 0x03, 0x04],
  [0xd0, 0xcf, 0x11, 0xe0, 0xa1, 0xb1, 0x1a, 0xe1],
];

/** The beginning of a web page. */
const PAGE = /^<(!doctype\s+html|html)[\s>]/i;

/** Beginnings of what may stand before that, and their ends. */
const BEFORE: readonly [string, string][] = [
  ["<!--", "-->"],
  ["<?", "?>"],
];

const SENTENCES = {
  unknown: "attach.binary",
  encrypted: "attach.encrypted",
  damaged: "attach.damaged",
  old: "attach.oldOffice",
  empty: "attach.empty",
  too_long: "attach.documentTooLong",
  unpacks_too_large: "attach.unpacksTooLarge",
  slow: "attach.slow",
} as const satisfies Record<Unread, string>;

/** Returns whether a file's first bytes are those of a document. */
export function isDocument(head: Uint8Array): boolean {
  if (MAGIC.some((magic) => magic.every((byte, at) => head[at] === byte))) return true;
  const utf16 = head[0] === 0xff && head[1] === 0xfe;
  const start = new TextDecoder(utf16 ? "utf-16" : "windows-1252").decode(head);
  return PAGE.test(afterComments(start.replace(/^\u00ef\u00bb\u00bf/, "")));
}

function afterComments(text: string): string {
  let rest = text.trimStart();
  for (;;) {
    const found = BEFORE.find(([begin]) => rest.startsWith(begin));
    const end = found ? rest.indexOf(found[1]) : -1;
    if (!found || end < 0) return rest;
    rest = rest.slice(end + found[1].length).trimStart();
  }
}

/**
 * Extracts the text of a document.
 *
 * @throws Refusal
 */
export async function documentFile(
  name: string,
  bytes: Uint8Array,
  read: ReadDocument,
): Promise<Attached> {
  if (bytes.length > facts.documentBytes) {
    throw new Refusal(t("attach.documentTooLong", { name }));
  }
  const found = await read(base64(bytes));
  if ("unread" in found) throw new Refusal(t(SENTENCES[found.unread], { name }));
  return { name, kind: "text", text: found.text };
}
