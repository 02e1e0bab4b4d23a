/** Ranges of the text below an element, as it reads without buttons. */

interface Part {
  from: number;
  to: number;
}

/** Selector of text that is not read: buttons and text for screen readers. */
const NOT_TEXT = ["button", ".visually-hidden", "annotation"].join();

const BLOCK = [
  ...["p", "li", "td", "th", "pre", "summary", "blockquote", "div"],
  ...["h1", "h2", "h3", "h4", "h5", "h6"],
].join();

/**
 * Ranges of the parts that `find` returns of the text below `element`, in order. Blocks are divided
 * by line breaks.
 */
export function textRanges(element: Element, find: (text: string) => readonly Part[]): Range[] {
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
    // Text does not continue across paragraphs.
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
  return find(text).flatMap(({ from, to }) => {
    const range = document.createRange();
    const start = pointAt(from, false);
    if (!start) return [];
    range.setStart(start.node, from - start.from);
    const end = pointAt(to, true) ?? start;
    range.setEnd(end.node, Math.min(to - end.from, end.node.data.length));
    return [range];
  });
}
