/** Excerpts of documents that are too long for the context. */
import type { Attached } from "../bindings/Attached";
import type { Excerpt } from "../bindings/Excerpt";
import type { TokenCount } from "../bindings/TokenCount";
import { count } from "../messages/numbers";
import { t } from "../messages/say";

interface WaitingFile {
  id: number;
  file: Attached | null;
  count: TokenCount | null;
}

/** Ids of waiting files that do not fit into `left` tokens with those before them. */
export function searchedFiles(waiting: readonly WaitingFile[], left: number | null): Set<number> {
  const searched = new Set<number>();
  let rest = left ?? Infinity;
  for (const { id, file, count: size } of waiting) {
    if (file === null || file.kind === "picture" || size === null) continue;
    if (size.tokens <= rest) rest -= size.tokens;
    else searched.add(id);
  }
  return searched;
}

/** "page 12, Results"; empty without a place. */
export function placeWords({ page, heading }: Excerpt): string {
  const parts = [page === null ? "" : t("attach.page", { page: count(page) }), heading ?? ""];
  return parts.filter((part) => part !== "").join(", ");
}

/** An excerpt as a file, whose text can be shown. */
export function excerptFile({ name, text }: Excerpt): Attached {
  return { name, kind: "text", text };
}

/** Half words of a quotation: eight words, or sixteen letters of a script without spaces. */
const QUOTED = 16;

/** A letter of a script without spaces, or a word of another one. */
const SPACELESS =
  "[\\p{sc=Han}\\p{sc=Hiragana}\\p{sc=Katakana}\\p{sc=Thai}\\p{sc=Lao}\\p{sc=Khmer}\\p{sc=Myanmar}]";
const LETTER = new RegExp(`^${SPACELESS}`, "u");
const WORD = new RegExp(`${SPACELESS}|(?:(?!${SPACELESS})[\\p{L}\\p{M}\\p{N}])+`, "gu");

/** A part of a text, in UTF-16 code units. */
export interface Span {
  from: number;
  to: number;
}

/** Words that follow each other, without case and punctuation. */
interface Run extends Span {
  words: string;
}

/** Every run of words that is just long enough for a quotation. */
function* runsOf(text: string): Generator<Run> {
  const words = Array.from(text.matchAll(WORD), ({ 0: word, index }) => ({
    word: word.toLowerCase(),
    from: index,
    to: index + word.length,
    size: LETTER.test(word) ? 1 : 2,
  }));
  let [end, size] = [0, 0];
  for (const [start, first] of words.entries()) {
    while (size < QUOTED && end < words.length) size += words[end++]?.size ?? 0;
    if (size < QUOTED) return;
    const run = words.slice(start, end);
    yield {
      words: run.map(({ word }) => word).join(" "),
      from: first.from,
      to: run.at(-1)?.to ?? first.to,
    };
    size -= first.size;
  }
}

const wordsOfRuns = (text: string) => new Set(Array.from(runsOf(text), ({ words }) => words));

/** The parts of a text that another one quotes, in order. */
export function quotedSpans(text: string, quoting: string): Span[] {
  const known = wordsOfRuns(quoting);
  const spans: Span[] = [];
  for (const { words, from, to } of runsOf(text)) {
    if (!known.has(words)) continue;
    const last = spans.at(-1);
    if (last && from <= last.to) last.to = to;
    else spans.push({ from, to });
  }
  return spans;
}

/** Numbers, from 1, of the excerpts that a text cites as "[2]" or quotes, ascending. */
export function sourcesOf(text: string, excerpts: readonly Excerpt[]): number[] {
  if (excerpts.length === 0) return [];
  const used = new Set(Array.from(text.matchAll(/\[(\d{1,2})\]/g), ([, number]) => Number(number)));
  const quotable = excerpts.map((excerpt) => wordsOfRuns(excerpt.text));
  for (const { words } of runsOf(text)) {
    quotable.forEach((runs, index) => {
      if (runs.has(words)) used.add(index + 1);
    });
  }
  return excerpts.map((_, index) => index + 1).filter((number) => used.has(number));
}
