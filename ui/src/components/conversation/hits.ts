/** Where words stand in the messages on the page, and how they are lit up: nothing in the page changes for it. */
import { placesOf } from "../../search/words";

export interface Hit {
  /** Number of its message. */
  message: number;
  range: Range;
}

/** What is said in a message, drawn or not. */
const SAID = "[data-testid=message-user], [data-testid=reply-text], .stored";

/** Words on buttons and what is only heard are not said. */
const NOT_SAID = ["button", ".visually-hidden", "annotation"].join();

const BLOCK = [
  ...["p", "li", "td", "th", "pre", "summary", "blockquote", "div"],
  ...["h1", "h2", "h3", "h4", "h5", "h6"],
].join();

/** The hits in all messages below `root`, in their order; see `placesOf`. */
export function hitsIn(root: Element, words: readonly string[], begun: boolean): Hit[] {
  if (words.length === 0) return [];
  return [...root.querySelectorAll<HTMLElement>("[data-message]")].flatMap((element) => {
    const message = Number(element.dataset["message"]);
    return [...element.querySelectorAll(SAID)].flatMap((said) =>
      rangesIn(said, words, begun).map((range) => ({ message, range })),
    );
  });
}

function rangesIn(said: Element, words: readonly string[], begun: boolean): Range[] {
  const pieces: { node: Text; from: number }[] = [];
  let text = "";
  let block: Element | null = null;
  const walk = document.createTreeWalker(said, NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    const around = node.parentElement;
    if (!(node instanceof Text) || !around || around.closest(NOT_SAID)) continue;
    const here = around.closest(BLOCK);
    // No word runs from one paragraph into the next.
    if (block !== null && here !== block) text += "\n";
    block = here;
    pieces.push({ node, from: text.length });
    text += node.data;
  }
  let piece = 0;
  /** The places come in order. */
  const pointAt = (place: number, isEnd: boolean) => {
    while ((pieces[piece + 1]?.from ?? Infinity) < place + (isEnd ? 0 : 1)) piece += 1;
    return pieces[piece];
  };
  return placesOf(text, words, begun).flatMap(({ from, to }) => {
    const range = document.createRange();
    const start = pointAt(from, false);
    if (!start) return [];
    range.setStart(start.node, from - start.from);
    const end = pointAt(to, true) ?? start;
    range.setEnd(end.node, Math.min(to - end.from, end.node.data.length));
    return [range];
  });
}

/** Lights up all hits, and the present one more. Browsers that cannot do that select the present one. */
export function light(hits: readonly Hit[], present: Hit | undefined) {
  if (typeof Highlight !== "undefined") {
    CSS.highlights.set("hit", new Highlight(...hits.map(({ range }) => range)));
    CSS.highlights.set("present-hit", new Highlight(...(present ? [present.range] : [])));
    return;
  }
  const selection = getSelection();
  selection?.removeAllRanges();
  if (present) selection?.addRange(present.range);
}
