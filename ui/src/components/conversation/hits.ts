/** Finds words in the messages of the page and highlights them without changing the DOM. */
import { matchesOf } from "../../search/words";
import { textRanges } from "../ui/textRanges";

export interface Hit {
  /** Id of the hit's message. */
  message: number;
  range: Range;
}

/** Selector of elements with a message's text, drawn or not. */
const MESSAGE_TEXT = "[data-testid=message-user], [data-testid=reply-text], .stored";

/** Most hits collected. */
export const MAX_HITS = 5000;

/** Hits in all messages below `root`, in order, at most {@link MAX_HITS}; see `matchesOf`. */
export function hitsIn(root: Element, words: readonly string[], atWordStart: boolean): Hit[] {
  if (words.length === 0) return [];
  const hits: Hit[] = [];
  for (const element of root.querySelectorAll<HTMLElement>("[data-message]")) {
    const message = Number(element.dataset["message"]);
    for (const text of element.querySelectorAll(MESSAGE_TEXT)) {
      const limit = MAX_HITS - hits.length;
      const find = (text: string) => matchesOf(text, words, atWordStart).slice(0, limit);
      for (const range of textRanges(text, find)) hits.push({ message, range });
      if (hits.length === MAX_HITS) return hits;
    }
  }
  return hits;
}

/** Ranges that each search highlights, by the name of the highlight. */
const highlighted = { hit: new Map<object, Range[]>(), "present-hit": new Map<object, Range[]>() };

/** Replaces the ranges of one search; those of others stay. */
function highlight(name: keyof typeof highlighted, owner: object, ranges: Range[]) {
  highlighted[name].set(owner, ranges);
  if (ranges.length === 0) highlighted[name].delete(owner);
  // One by one, since engines limit the number of arguments.
  const all = new Highlight();
  for (const range of [...highlighted[name].values()].flat()) all.add(range);
  CSS.highlights.set(name, all);
}

/** Highlights all hits of a search, which `owner` identifies. */
export function highlightAll(owner: object, hits: readonly Hit[]) {
  if (typeof Highlight === "undefined") return;
  const ranges = hits.map(({ range }) => range);
  highlight("hit", owner, ranges);
}

/** Highlights the current hit of a search. Browsers without highlights select it. */
export function highlightCurrent(owner: object, current: Hit | undefined) {
  if (typeof Highlight !== "undefined") {
    highlight("present-hit", owner, current ? [current.range] : []);
    return;
  }
  const selection = getSelection();
  selection?.removeAllRanges();
  if (current) selection?.addRange(current.range);
}
