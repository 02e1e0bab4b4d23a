/**
 * Decodes UTF-8, UTF-16 with a byte order mark, a detected older encoding, or windows-1252; returns
 * null for binary data.
 */

/** Largest share of control characters in a text. */
const CONTROLS = 0.002;

/**
 * Control characters except those for layout: tab, line feed, form feed, carriage return, and the
 * escape of terminals' colours.
 */
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f\u007f]/g;

export interface Decoded {
  text: string;
  /** The assumed older encoding as a label of `TextDecoder`; null if the encoding is certain. */
  encoding: string | null;
}

export async function decoded(bytes: Uint8Array): Promise<Decoded | null> {
  const mark = MARKS.find(({ starts }) => starts.every((byte, at) => bytes[at] === byte));
  if (!mark) return unmarked(bytes);
  const text = read(bytes, mark.encoding);
  return text === null || isBinary(text) ? null : { text, encoding: null };
}

/** Decodes a text in a chosen encoding; invalid characters are replaced. */
export function decodedAs(bytes: Uint8Array, encoding: string): string {
  return new TextDecoder(encoding).decode(bytes);
}

const MARKS = [
  { starts: [0xef, 0xbb, 0xbf], encoding: "utf-8" },
  { starts: [0xff, 0xfe], encoding: "utf-16le" },
  { starts: [0xfe, 0xff], encoding: "utf-16be" },
] as const;

async function unmarked(bytes: Uint8Array): Promise<Decoded | null> {
  if (bytes.includes(0)) return null;
  const text = read(bytes, "utf-8");
  if (text !== null) return isBinary(text) ? null : { text, encoding: null };
  const { oldEncoding } = await import("./encoding");
  const encoding = oldEncoding(bytes, read) ?? "windows-1252";
  const old = read(bytes, encoding);
  return old === null || isBinary(old) ? null : { text: old, encoding };
}

function read(bytes: Uint8Array, encoding: string): string | null {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return null;
  }
}

function isBinary(text: string): boolean {
  if (text.includes("\0")) return true;
  const controls = text.match(CONTROL)?.length ?? 0;
  return controls > text.length * CONTROLS;
}
