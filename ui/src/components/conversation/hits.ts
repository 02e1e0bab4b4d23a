/** Finds words in the messages of the page and highlights them without changing the DOM. */
import { matchesOf } from "../../search/words";

export interface Hit {
  /** Id of the hit's message. */
  message: number;
  range: Range;
}

/** Selector of elements with a message's text, drawn or not. */
const MESSAGE_TEXT = "[data-testid=message-user], [data-testid=reply-text], .stored";

/** Selector of text that is no part of a message: buttons and text for screen readers. */
const NOT_TEXT = ["button", ".visually-hidden", "annotation"].join();

const BLOCK = [
  ...["p", "li", "td", "th", "pre", "summary", "blockquote", "div"],
  ...["h1", "h2", "h3", "h4", "h5", "h6"],
].join();

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
      for (const range of rangesIn(text, words, atWordStart, limit)) hits.push({ message, range });
      if (hits.length === MAX_HITS) return hits;
    }
  }
  return hits;
}

function rangesIn(
  element: Element,
  words: readonly string[],
  atWordStart: boolean,
  limit: number,
): Range[] {
  const pieces: { node: Text; from: number }[] = [];
  let text = "";
  let block: Element | null = null;
  let around: Element | null = null;
  let here: Element | null = null;
  const walk = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (!(node instanceof Text) || !node.parentElement) continue;
    // Consecutive text nodes are mostly in the same element.
    if (node.parentElement !== around) {
      around = node.parentElement;
      here = around.closest(NOT_TEXT) ? null : around.closest(BLOCK);
    }
    if (here === null) continue;
    // Words do not continue across paragraphs.
    if (block !== null && here !== block) text += "\n";
    block = here;
    pieces.push({ node, from: text.length });
    text += node.data;
  }
  let piece = 0;
  /** Converts a place in the text into a point of the DOM. Places come in order. */
  const pointAt = (place: number, isEnd: boolean) => {
    while ((pieces[piece + 1]?.from ?? Infinity) < place + (isEnd ? 0 : 1)) piece += 1;
    return pieces[piece];
  };
  const matches = matchesOf(text, words, atWordStart).slice(0, limit);
  return matches.flatMap(({ from, to }) => {
    const range = document.createRange();
    const start = pointAt(from, false);
    if (!start) return [];
    range.setStart(start.node, from - start.from);
    const end = pointAt(to, true) ?? start;
    range.setEnd(end.node, Math.min(to - end.from, end.node.data.length));
    return [range];
  });
}

/** Highlights all hits. */
export function highlightAll(hits: readonly Hit[]) {
  if (typeof Highlight === "undefined") return;
  // One by one, since engines limit the number of arguments.
  const highlight = new Highlight();
  for (const { range } of hits) highlight.add(range);
  CSS.highlights.set("hit", highlight);
}

/** Highlights the current hit. Browsers without highlights select it. */
export function highlightCurrent(current: Hit | undefined) {
  if (typeof Highlight !== "undefined") {
    CSS.highlights.set("present-hit", new Highlight(...(current ? [current.range] : [])));
    return;
  }
  const selection = getSelection();
  selection?.removeAllRanges();
  if (current) selection?.addRange(current.range);
}
