/**
 * Finds by words as a person types them: in any order, in any case, with or without accents, and by
 * their beginnings. What is searched is up to those who ask.
 */

/** A text in pieces: those that were looked for, and what is between them. */
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

/** Which part of the text a word is, best first. */
const WHOLE = 4;
const BEGINNING = 3;
const INSIDE = 1;
/** A name's words weigh so much more than the others that no number of those outweighs them. */
const NAME = 10;
/** A name that begins with what was typed. */
const FIRST = 5;

function foldLetter(letter: string): string {
  return letter.normalize("NFD").charAt(0).toLowerCase().charAt(0);
}

/** Every letter stays one letter, so that a place in the result is a place in the text. */
function fold(text: string): string {
  return text.replace(/[A-Z]+|\P{ASCII}/gu, (letters) =>
    letters.length === 1 ? foldLetter(letters) : letters.toLowerCase(),
  );
}

export function wordsOf(query: string): string[] {
  return fold(query)
    .split(/\s+/)
    .filter((word) => word !== "");
}

/** How well a text has a word; 0 when it does not. */
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

/**
 * How well this has all the words; 0 when one is missing, and the same for all when there are none.
 */
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
 * Where a text has one of the words, in its order, none over another. With `begun`, only where
 * words begin.
 */
export function placesOf(
  text: string,
  words: readonly string[],
  begun: boolean,
): { from: number; to: number }[] {
  const folded = fold(text);
  const places = words.flatMap((word) => {
    const found: { from: number; to: number }[] = [];
    if (word === "") return found;
    for (let at = folded.indexOf(word); at >= 0; at = folded.indexOf(word, at + word.length)) {
      if (!begun || !isLetter(folded.charAt(at - 1)))
        found.push({ from: at, to: at + word.length });
    }
    return found;
  });
  places.sort((a, b) => a.from - b.from || b.to - a.to);
  return places.filter(({ from }, at) => from >= (places[at - 1]?.to ?? 0));
}

/** The query as one phrase, with its spaces. */
export function phraseOf(query: string): string[] {
  const phrase = fold(query.trim());
  return phrase === "" ? [] : [phrase];
}

/** The text in pieces, so that all places where it has one of the words can be marked. */
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
