/** The encoding of text that is not UTF-8, found by a library and checked on the decoded text. */
import { analyse, type EncodingName } from "chardet";

/** From the library's names to those of `TextDecoder`. Latin alphabets are read as windows-1252. */
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

/** Bytes that are looked at, from the first that is not ASCII. */
const LOOKED_AT = 1 << 16;
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

/** The text in the likeliest encoding; null where windows-1252 is as likely. */
export function inOldEncoding(
  bytes: Uint8Array,
  read: (bytes: Uint8Array, encoding: string) => string | null,
): string | null {
  const from = bytes.findIndex((byte) => byte > 0x7f);
  for (const { name, confidence } of analyse(bytes.subarray(from, from + LOOKED_AT))) {
    const label = LABELS[name];
    if (label === undefined || confidence < LEAST_CONFIDENCE) continue;
    const text = read(bytes, label);
    if (text !== null && isLikely(text)) return text;
  }
  return null;
}

function isLikely(text: string): boolean {
  if (MIXED.test(text) || UNLIKELY.test(text)) return false;
  return !CJK.test(text) || CJK_WORD.test(text);
}
