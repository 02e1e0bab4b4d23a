/**
 * The Markdown parser: CommonMark with GitHub's tables, task lists, strikethrough, autolinks and
 * footnotes, and LaTeX. Exact positions of all marks are kept. HTML tags are text.
 *
 * A text is parsed in two passes, each in steps: its blocks, and later the text of each block
 * ({@link inlineIn}).
 */
import type { SyntaxNode, Tree } from "@lezer/common";
import { GFM, parser as commonmark, type Element, type MarkdownConfig } from "@lezer/markdown";
import { footnotes } from "./footnotes";
import { math } from "./math";

/**
 * Longest piece of a paragraph parsed at once. A faulty model may write thousands of open brackets,
 * which take quadratic time.
 */
const PIECE = 8192;
/** Long runs of spaces, which have no meaning in Markdown and take the parser quadratic time. */
const LONGEST_BLANK = /[ \t]{500,}/g;

/** A line with more marks of quotes and lists than can be laid out; its rest is text. */
const DEEP_LINE = /^((?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){100})(.*)/gm;

/**
 * Length after which a paragraph or table ends at the next line, since it is parsed in one step.
 */
const LONGEST_LEAF = 65_536;

/** Length of the parsed text; the rest stays plain, which no real reply reaches. */
const LONGEST = 1_000_000;

/** Name of nodes whose text is not parsed yet, see {@link inlineIn}. */
export const INLINE = "Inline";

/** Texts of {@link INLINE} nodes by position, without the marks of quotes around them. */
type Texts = Map<number, string>;

let texts: Texts = new Map();

/** Defers the text of a block, as nodes of at most {@link PIECE} characters. */
const later: MarkdownConfig = {
  defineNodes: [INLINE],
  parseBlock: [{ name: "Long", endLeaf: (_, __, leaf) => leaf.content.length > LONGEST_LEAF }],
  parseInline: [
    {
      name: INLINE,
      before: "Escape",
      parse(cx) {
        for (let at = 0; at < cx.text.length;) {
          const end = pieceEnd(cx.text, at);
          texts.set(cx.offset + at, cx.text.slice(at, end));
          cx.addElement(cx.elt(INLINE, cx.offset + at, cx.offset + end));
          at = end;
        }
        return cx.end;
      },
    },
  ],
};

const EXTENSIONS = [GFM, math, footnotes, { remove: ["HTMLBlock"] }];
const inlineParser = commonmark.configure(EXTENSIONS);
const blockParser = commonmark.configure([later, ...EXTENSIONS]);

/** End of a piece, between words if possible. */
function pieceEnd(text: string, at: number): number {
  if (text.length - at <= PIECE) return text.length;
  const space = text.lastIndexOf(" ", at + PIECE);
  return space > at + PIECE / 2 ? space : at + PIECE;
}

/** The blocks of a text. */
export interface Parsed {
  tree: Tree;
  texts: ReadonlyMap<number, string>;
}

/** Parses the blocks of a text, and yields after each. */
export function* parsedInSteps(text: string): Generator<void, Parsed> {
  const read = text.slice(0, LONGEST) + dots(text.slice(LONGEST));
  const shallow = read.replace(DEEP_LINE, (_, marks: string, rest: string) => marks + dots(rest));
  const parse = blockParser.startParse(shallow.replace(LONGEST_BLANK, dots));
  const found: Texts = new Map();
  for (;;) {
    texts = found;
    const tree = parse.advance();
    if (tree) return { tree, texts: found };
    yield;
  }
}

/** A span within a line: emphasis, a link, a mark. */
export interface Span {
  readonly name: string;
  readonly from: number;
  readonly to: number;
  readonly children: Span[];
}

/** Parses the text of an {@link INLINE} node. */
export function inlineIn(node: SyntaxNode, texts: Parsed["texts"]): Span[] {
  const text = texts.get(node.from) ?? "";
  const spans = inlineParser.parseInline(text, node.from).map(spanOf);
  for (let mark = node.firstChild; mark; mark = mark.nextSibling) insert(spans, markOf(mark));
  return spans;
}

export function markOf({ name, from, to }: SyntaxNode): Span {
  return { name, from, to, children: [] };
}

function spanOf(element: Element): Span {
  const { type, from, to } = element;
  const { children } = element as Element & { readonly children: readonly Element[] };
  const name = inlineParser.nodeSet.types[type]?.name ?? "";
  return { name, from, to, children: children.map(spanOf) };
}

/** Inserts a quote's mark at the beginning of a line into the innermost span around it. */
function insert(spans: Span[], mark: Span) {
  let at = spans.length;
  while (at > 0 && (spans[at - 1]?.to ?? 0) >= mark.to) at -= 1;
  const around = spans[at];
  if (around && around.from < mark.from) insert(around.children, mark);
  else spans.splice(at, 0, mark);
}

/** Dots of equal length, which have no meaning in Markdown. */
function dots(stretch: string): string {
  return ".".repeat(stretch.length);
}
