/** Bytes as text: UTF-8, UTF-16 by its mark, an older encoding that is found, or windows-1252; null for what is no text. */

/** More control characters than this share of a text are not written by anybody. */
const CONTROLS = 0.002;

/** Without what lays text out: tab, line feed, form feed, carriage return, and the escape of terminals' colours. */
// eslint-disable-next-line no-control-regex
const CONTROL = /[\u0000-\u0008\u000b\u000e-\u001a\u001c-\u001f\u007f]/g;

export async function decoded(bytes: Uint8Array): Promise<string | null> {
  const mark = MARKS.find(({ starts }) => starts.every((byte, at) => bytes[at] === byte));
  const text = mark ? read(bytes, mark.encoding) : await unmarked(bytes);
  return text === null || isBinary(text) ? null : text;
}

const MARKS = [
  { starts: [0xef, 0xbb, 0xbf], encoding: "utf-8" },
  { starts: [0xff, 0xfe], encoding: "utf-16le" },
  { starts: [0xfe, 0xff], encoding: "utf-16be" },
] as const;

async function unmarked(bytes: Uint8Array): Promise<string | null> {
  if (bytes.includes(0)) return null;
  const text = read(bytes, "utf-8");
  if (text !== null) return text;
  const { inOldEncoding } = await import("./encoding");
  return inOldEncoding(bytes, read) ?? read(bytes, "windows-1252");
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
