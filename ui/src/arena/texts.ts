/** The first difference of two texts. Texts of a model are cut, never parsed as markup. */
import type { Pair } from "./pairs";

/** One of two texts in three consecutive parts. */
export interface TextSplit {
  /** Common beginning of both texts. */
  shared: string;
  /** First differing word, with the space before it; empty at the text's end. */
  first: string;
  rest: string;
}

/** Two texts cut at the first differing word; null if they are equal. */
export function splitAtDifference(texts: Pair<string>): Pair<TextSplit> | null {
  const [one, other] = texts;
  if (one === other) return null;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  // Words with a common prefix differ as a whole.
  const at = Math.min(...texts.map((text) => wordAt(text, same).from));
  return [cut(one, at), cut(other, at)];
}

function cut(text: string, at: number): TextSplit {
  const { to } = wordAt(text, at);
  // White space alone would be invisible when marked.
  const end = text.slice(at, to).trim() === "" ? wordAt(text, to).to : to;
  return { shared: text.slice(0, at), first: text.slice(at, end), rest: text.slice(end) };
}

const WORDS = new Intl.Segmenter(undefined, { granularity: "word" });

/** Range of the word or punctuation at `index`; empty at the text's end. */
function wordAt(text: string, index: number): { from: number; to: number } {
  const found = WORDS.segment(text).containing(index);
  if (!found) return { from: text.length, to: text.length };
  return { from: found.index, to: found.index + found.segment.length };
}
