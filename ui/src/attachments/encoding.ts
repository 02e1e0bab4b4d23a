/** Detects the encoding of text other than UTF-8 with a library, and checks the decoded text. */
import { analyse, type EncodingName } from "chardet";

/** Labels of `TextDecoder` by the library's names. */
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

/** Further encodings of Latin alphabets, which differ from those above in few letters. */
const LATIN_LABELS: Partial<Record<EncodingName, string>> = {
  "ISO-8859-2": "iso-8859-2",
  "windows-1250": "windows-1250",
  "ISO-8859-9": "windows-1254",
  "windows-1254": "windows-1254",
  "windows-1257": "windows-1257",
};

/** Bytes examined from the first one beyond ASCII. */
const LOOKED_AT = 1 << 16;
/** Bytes examined before those: words in ASCII also indicate a language. */
const LEAD = 1024;
/** Fewest letters beyond ASCII that distinguish Latin alphabets. */
const MIN_LETTERS = 5;
/** Factor by which another Latin encoding must be likelier than windows-1252. */
const CLEARLY = 1.3;
/**
 * A symbol within a word, which indicates another alphabet. Acute accents and middle dots do occur
 * in words.
 */
const SYMBOL_IN_WORD = /\p{L}[\u00a1-\u00b3\u00b5\u00b6\u00b8-\u00bf\u00d7\u00f7]\p{L}/u;
/** Least confidence of the library; it returns less without any evidence. */
const MIN_CONFIDENCE = 10;

const OTHER = "[\\p{Script=Cyrillic}\\p{Script=Greek}\\p{Script=Hebrew}\\p{Script=Arabic}]";
const LATIN = "\\p{Script=Latin}";
/** A word with letters of two alphabets. */
const MIXED = new RegExp(`${LATIN}${OTHER}|${OTHER}${LATIN}`, "u");
/**
 * Characters that are unlikely in texts: half-width katakana, private use, C1 controls, box
 * drawing.
 */
const UNLIKELY = /[\uff61-\uff9f\ue000-\uf8ff\u0080-\u009f\u2500-\u259f]/;
const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}]/u;
/** Adjacent CJK letters: a misread umlaut would be a single one between other letters. */
const CJK_WORD = new RegExp(`${CJK.source}{2}`, "u");

/** The likeliest encoding; null if none is likelier than windows-1252. */
export function oldEncoding(
  bytes: Uint8Array,
  read: (bytes: Uint8Array, encoding: string) => string | null,
): string | null {
  const from = bytes.findIndex((byte) => byte > 0x7f);
  const found = analyse(bytes.subarray(Math.max(0, from - LEAD), from + LOOKED_AT));
  for (const { name, confidence } of found) {
    const label = LABELS[name];
    if (label === undefined || confidence < MIN_CONFIDENCE) continue;
    const text = read(bytes, label);
    if (text !== null && isLikely(text)) return label;
  }
  return latinEncoding(found, bytes, read);
}

/** A Latin encoding that is clearly likelier than windows-1252. */
function latinEncoding(
  found: readonly { name: EncodingName; confidence: number }[],
  bytes: Uint8Array,
  read: (bytes: Uint8Array, encoding: string) => string | null,
): string | null {
  const western = read(bytes, "windows-1252") ?? "";
  const letters = western.match(/[^\0-\x7f]/g)?.length ?? 0;
  if (letters < MIN_LETTERS) return null;
  const confidences = found.map(({ name, confidence }) => (WESTERN.has(name) ? confidence : 0));
  const rival = SYMBOL_IN_WORD.test(western) ? 0 : Math.max(...confidences);
  for (const { name, confidence } of found) {
    const label = LATIN_LABELS[name];
    if (label === undefined || confidence < MIN_CONFIDENCE) continue;
    if (confidence > CLEARLY * rival && read(bytes, label) !== null) return label;
  }
  return null;
}

function isLikely(text: string): boolean {
  if (MIXED.test(text) || UNLIKELY.test(text)) return false;
  return !CJK.test(text) || CJK_WORD.test(text);
}
