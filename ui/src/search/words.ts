/**
 * Search by typed words: in any order and case, with or without accents, by prefixes. Callers
 * supply the texts.
 */

/** A piece of a text: a hit, or the text between hits. */
export interface Piece {
  text: string;
  hit: boolean;
}

/** Words by which an entry is found. */
export interface Found {
  name: string;
  /** Further words; matches in them rank below matches in names. */
  more?: string;
}

/** Weights of a match: a whole word, a prefix, or a part of a word. */
const WHOLE = 4;
const BEGINNING = 3;
const INSIDE = 1;
/** Factor on matches in a name: no number of other matches outweighs one. */
const NAME = 10;
/** Additional weight of a name that begins with the first word. */
const FIRST = 5;

function foldLetter(letter: string): string {
  return letter.normalize("NFD").charAt(0).toLowerCase().charAt(0);
}

/** Folds case and accents. Each character stays one, so that offsets remain valid. */
function fold(text: string): string {
  return text.replace(/[A-Z]+|\P{ASCII}/gu, (letters) =>
    letters.length === 1 ? foldLetter(letters) : letters.toLowerCase(),
  );
}

export function wordsOf(query: string): string[] {
  return fold(query)
    .split(/:?(?:\s+|$)/)
    .filter((word) => word !== "");
}

/** Weight of the best match of a word in a text; 0 without one. */
function weigh(word: string, text: string): number {
  let best = 0;
  for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
    const begins = !isLetter(text.charAt(at - 1));
    const ends = !isLetter(text.charAt(at + word.length));
    best = Math.max(best, begins ? (ends ? WHOLE : BEGINNING) : INSIDE);
  }
  return best;
}

function isLetter(text: string): boolean {
  return /[\p{L}\p{N}]/u.test(text);
}

/** Score of an entry; 0 if a word is missing, and equal for all entries without words. */
export function score({ name, more = "" }: Found, words: readonly string[]): number {
  const [folded, others] = [fold(name), fold(more)];
  const first = words[0] !== undefined && folded.startsWith(words[0]) ? FIRST : 0;
  const weights = words.map((word) => weigh(word, folded) * NAME || weigh(word, others));
  if (weights.includes(0)) return 0;
  return weights.reduce((sum, weight) => sum + weight, 1 + first);
}

/** The entries that contain all the words, best first; ties keep their order. */
export function narrow<T>(all: readonly T[], query: string, foundBy: (one: T) => Found): T[] {
  const words = wordsOf(query);
  return all
    .map((one) => ({ one, score: score(foundBy(one), words) }))
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .map(({ one }) => one);
}

/**
 * Ranges of the words in a text, in order and without overlap; with `atWordStart`, only at the
 * beginning of words.
 */
export function matchesOf(
  text: string,
  words: readonly string[],
  atWordStart: boolean,
): { from: number; to: number }[] {
  const folded = fold(text);
  const matches = words.flatMap((word) => {
    const found: { from: number; to: number }[] = [];
    if (word === "") return found;
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + word.length)) {
      if (!atWordStart || !isLetter(folded.charAt(at - 1)))
        found.push({ from: at, to: at + word.length });
    }
    return found;
  });
  matches.sort((a, b) => a.from - b.from || b.to - a.to);
  return matches.filter(({ from }, at) => from >= (matches[at - 1]?.to ?? 0));
}

/** The query as one phrase, with its spaces. */
export function phraseOf(query: string): string[] {
  const phrase = fold(query.trim());
  return phrase === "" ? [] : [phrase];
}

/** Splits a text into hits and the pieces between them. */
export function marked(text: string, words: readonly string[]): Piece[] {
  const folded = fold(text);
  const hit = Array<boolean>(text.length).fill(false);
  for (const word of words) {
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + 1)) {
      hit.fill(true, at, at + word.length);
    }
  }
  const pieces: Piece[] = [];
  for (const [at, isHit] of hit.entries()) {
    const last = pieces.at(-1);
    if (last?.hit === isHit) last.text += text.charAt(at);
    else pieces.push({ text: text.charAt(at), hit: isHit });
  }
  return pieces;
}
