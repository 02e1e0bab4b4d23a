/**
 * Decodes bytes: UTF-8, UTF-16 by its mark, an older encoding that is detected, or windows-1252;
 * null where they are no text.
 */

/** More control characters than this share of a text are not written by anybody. */
const CONTROLS = 0.002;

/**
 * Without what lays text out: tab, line feed, form feed, carriage return, and the escape of
 * terminals' colours.
 */
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f\u007f]/g;

export interface Decoded {
  text: string;
  /**
   * The old encoding that was assumed, as `TextDecoder` names it; null where the bytes say which it
   * is.
   */
  encoding: string | null;
}

export async function decoded(bytes: Uint8Array): Promise<Decoded | null> {
  const mark = MARKS.find(({ starts }) => starts.every((byte, at) => bytes[at] === byte));
  if (!mark) return unmarked(bytes);
  const text = read(bytes, mark.encoding);
  return text === null || isBinary(text) ? null : { text, encoding: null };
}

/** The text in an encoding that a person chose; characters that it lacks are replaced. */
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
