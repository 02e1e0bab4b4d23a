/** Where two texts part. The texts are a model's: they are cut, never read as markup. */
import type { Pair } from "./pairs";

/** One of two texts, in three parts that join to it. */
export interface Parted {
  /** What both begin with. */
  shared: string;
  /** The word in which it leaves the other, with the space before it; empty where it ends there. */
  first: string;
  rest: string;
}

/** Two texts cut at the word in which they begin to differ; null when they are equal. */
export function parted(texts: Pair<string>): Pair<Parted> | null {
  const [one, other] = texts;
  if (one === other) return null;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  // A word that both begin alike differs from its first letter on.
  const at = Math.min(...texts.map((text) => wordAt(text, same).from));
  return [cut(one, at), cut(other, at)];
}

function cut(text: string, at: number): Parted {
  const { to } = wordAt(text, at);
  // White space alone would be a mark that nobody sees.
  const end = text.slice(at, to).trim() === "" ? wordAt(text, to).to : to;
  return { shared: text.slice(0, at), first: text.slice(at, end), rest: text.slice(end) };
}

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });

/** The word, or the sign between words, that holds the letter at `index`; nothing at the text's end. */
function wordAt(text: string, index: number): { from: number; to: number } {
  const found = WORDS.segment(text).containing(index);
  if (!found) return { from: text.length, to: text.length };
  return { from: found.index, to: found.index + found.segment.length };
}
