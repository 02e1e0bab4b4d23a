/** Sizes of files in words. */
import type { TokenCount } from "../bindings/TokenCount";
import { count, decimal, percent } from "../messages/numbers";
import { t } from "../messages/say";

/** Selectable encodings with the languages they are used for. */
const ENCODINGS = {
  western: ["windows-1252"],
  central: ["windows-1250", "iso-8859-2"],
  cyrillic: ["windows-1251", "koi8-r", "iso-8859-5"],
  greek: ["windows-1253"],
  turkish: ["windows-1254"],
  hebrew: ["windows-1255"],
  arabic: ["windows-1256", "iso-8859-6"],
  baltic: ["windows-1257"],
  chinese: ["gb18030", "big5"],
  japanese: ["shift_jis", "euc-jp"],
  korean: ["euc-kr"],
} as const;

/** Labels of `TextDecoder` with their names: "Central European (Windows-1250)". */
export function encodingWords(): { encoding: string; words: string }[] {
  const scripts = Object.keys(ENCODINGS) as (keyof typeof ENCODINGS)[];
  return scripts.flatMap((script) =>
    ENCODINGS[script].map((encoding) => ({
      encoding,
      words: `${t(`attach.script.${script}`)} (${nameOf(encoding)})`,
    })),
  );
}

/** The usual spelling of a label of `TextDecoder`: "ISO 8859-2", "KOI8-R", "Windows-1250". */
function nameOf(label: string): string {
  return label
    .replace("big5", "Big5")
    .replace(/^(?:iso|koi8|gb|euc).*/, (name) => name.toUpperCase().replace("ISO-", "ISO "))
    .replace(/^[ws]/, (letter) => letter.toUpperCase())
    .replace("_jis", " JIS");
}

/** Smallest share of the context, and shortest time, that are mentioned. */
const SHARE = 0.1;
const SECONDS = 3;

/** "1,234 tokens". */
function sizeWords({ tokens, exact }: TokenCount): string {
  return t(exact ? "attach.tokens" : "attach.aboutTokens", { count: tokens });
}

/** "12,345 tokens, searched for each question". */
export function searchedWords(size: TokenCount): string {
  return `${sizeWords(size)}, ${t("attach.searched")}`;
}

/** "1,234 tokens, 15% of the context, about 12 s to read". `context` in tokens, 0 if unknown. */
export function tokenWords(size: TokenCount, context: number, rate: number | null): string {
  const { tokens } = size;
  const share = context > 0 ? tokens / context : 0;
  const seconds = rate === null ? 0 : tokens / rate;
  const parts = [sizeWords(size)];
  if (share >= SHARE) parts.push(t("attach.share", { share: percent(share) }));
  if (seconds >= SECONDS) parts.push(timeWords(seconds));
  return parts.join(", ");
}

function timeWords(seconds: number): string {
  if (seconds < 90) return t("attach.seconds", { time: count(Math.round(seconds)) });
  return t("attach.minutes", { time: count(Math.round(seconds / 60)) });
}

/** "12.3 kB" of text. */
export function byteWords(bytes: number): string {
  if (bytes < 1000) return `${count(bytes)} B`;
  if (bytes < 1e6) return `${decimal(bytes / 1e3, 1)} kB`;
  return `${decimal(bytes / 1e6, 1)} MB`;
}
