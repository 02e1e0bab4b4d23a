/** The encoding of text that is not UTF-8, found by a library and checked on the decoded text. */
import { analyse, type EncodingName } from "chardet";

/** From the library's names to those of `TextDecoder`. */
const LABELS: Partial<Record<EncodingName, string>> = {
  GB18030: "gb18030",
  Big5: "big5",
  Shift_JIS: "shift_jis",
  "EUC-JP": "euc-jp",
  "EUC-KR": "euc-kr",
  "KOI8-R": "koi8-r",
  "windows-1251": "windows-1251",
  "windows-1256": "windows-1256",
  "ISO-8859-5": "iso-8859-5",
  "ISO-8859-6": "iso-8859-6",
  "ISO-8859-7": "windows-1253",
  "windows-1253": "windows-1253",
  "ISO-8859-8": "windows-1255",
  "windows-1255": "windows-1255",
};

const WESTERN = new Set<EncodingName>(["ISO-8859-1", "windows-1252"]);

/** Other encodings of Latin alphabets, which differ from those in few letters. */
const LATIN_LABELS: Partial<Record<EncodingName, string>> = {
  "ISO-8859-2": "iso-8859-2",
  "windows-1250": "windows-1250",
  "ISO-8859-9": "windows-1254",
  "windows-1254": "windows-1254",
  "windows-1257": "windows-1257",
};

/** Bytes that are looked at, from the first that is not ASCII. */
const LOOKED_AT = 1 << 16;
/** And before it, in bytes: words in ASCII speak for a language, too. */
const LEAD = 1024;
/** Fewer letters beyond ASCII cannot distinguish one Latin alphabet from another. */
const LEAST_LETTERS = 5;
/** By this factor another Latin alphabet has to be likelier than windows-1252. */
const CLEARLY = 1.3;
/**
 * In a word a symbol is another alphabet's letter. Acute accents and middle dots are written in
 * words.
 */
const SYMBOL_IN_WORD = /\p{L}[\u00a1-\u00b3\u00b5\u00b6\u00b8-\u00bf\u00d7\u00f7]\p{L}/u;
/** The library gives less to encodings in which nothing speaks for the text. */
const LEAST_CONFIDENCE = 10;

const OTHER = "[\\p{Script=Cyrillic}\\p{Script=Greek}\\p{Script=Hebrew}\\p{Script=Arabic}]";
const LATIN = "\\p{Script=Latin}";
/** A word of letters of two alphabets. */
const MIXED = new RegExp(`${LATIN}${OTHER}|${OTHER}${LATIN}`, "u");
/** Half-width katakana, private characters, C1 controls, and frames. */
const UNLIKELY = /[\uff61-\uff9f\ue000-\uf8ff\u0080-\u009f\u2500-\u259f]/;
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
/** Letters between others, as an umlaut read as the first half of a character is. */
const CJK_WORD = new RegExp(`${CJK.source}{2}`, "u");

/** The likeliest encoding; null where none is likelier than windows-1252. */
export function oldEncoding(
  bytes: Uint8Array,
  read: (bytes: Uint8Array, encoding: string) => string | null,
): string | null {
  const from = bytes.findIndex((byte) => byte > 0x7f);
  const found = analyse(bytes.subarray(Math.max(0, from - LEAD), from + LOOKED_AT));
  for (const { name, confidence } of found) {
    const label = LABELS[name];
    if (label === undefined || confidence < LEAST_CONFIDENCE) continue;
    const text = read(bytes, label);
    if (text !== null && isLikely(text)) return label;
  }
  return latinEncoding(found, bytes, read);
}

/** An encoding of a Latin alphabet that is clearly likelier than windows-1252. */
function latinEncoding(
  found: readonly { name: EncodingName; confidence: number }[],
  bytes: Uint8Array,
  read: (bytes: Uint8Array, encoding: string) => string | null,
): string | null {
  const western = read(bytes, "windows-1252") ?? "";
  const letters = western.match(/[^\0-\x7f]/g)?.length ?? 0;
  if (letters < LEAST_LETTERS) return null;
  const confidences = found.map(({ name, confidence }) => (WESTERN.has(name) ? confidence : 0));
  const rival = SYMBOL_IN_WORD.test(western) ? 0 : Math.max(...confidences);
  for (const { name, confidence } of found) {
    const label = LATIN_LABELS[name];
    if (label === undefined || confidence < LEAST_CONFIDENCE) continue;
    if (confidence > CLEARLY * rival && read(bytes, label) !== null) return label;
  }
  return null;
}

function isLikely(text: string): boolean {
  if (MIXED.test(text) || UNLIKELY.test(text)) return false;
  return !CJK.test(text) || CJK_WORD.test(text);
}
