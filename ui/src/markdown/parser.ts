/**
 * The Markdown parser: CommonMark with GitHub's tables, task lists, strikethrough, addresses and
 * footnotes, and LaTeX. The exact position of every mark is kept. Tags are not HTML here, but text.
 *
 * A text is parsed in two passes, so that each can be done in steps: its blocks, and later the text
 * of each block ({@link inlineIn}).
 */
import type { SyntaxNode, Tree } from "@lezer/common";
import { GFM, parser as commonmark, type Element, type MarkdownConfig } from "@lezer/markdown";
import { footnotes } from "./footnotes";
import { math } from "./math";

/**
 * A paragraph is parsed in pieces of so many characters: what a broken model may write, thousands
 * of open brackets, would take time that grows with their square.
 */
const PIECE = 8192;
/** Longer runs of spaces mean nothing in Markdown and take the parser as long. */
const LONGEST_BLANK = /[ \t]{500,}/g;

/**
 * A line that begins with more marks of quotes and lists than can be laid out: the rest of it is
 * text.
 */
const DEEP_LINE = /^((?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){100})(.*)/gm;

/**
 * A paragraph or table ends at the next line after so many characters: it is parsed in one step.
 */
const LONGEST_LEAF = 65_536;

/** Text beyond so many characters stays plain: no reply is as long. */
const LONGEST = 1_000_000;

/** The name of nodes whose text is not parsed yet, see {@link inlineIn}. */
export const INLINE = "Inline";

/** The texts of {@link INLINE} nodes by position, without the marks of quotes around them. */
type Texts = Map<number, string>;

let texts: Texts = new Map();

/** Puts the text of a block aside, as nodes of at most {@link PIECE} characters. */
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

/** The end of a piece: between words if it can be. */
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

/** A part of a line: emphasis, a link, a mark. */
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

/**
 * Puts the mark of a quote, which stands at the beginning of a line, into the innermost span around
 * it.
 */
function insert(spans: Span[], mark: Span) {
  let at = spans.length;
  while (at > 0 && (spans[at - 1]?.to ?? 0) >= mark.to) at -= 1;
  const around = spans[at];
  if (around && around.from < mark.from) insert(around.children, mark);
  else spans.splice(at, 0, mark);
}

/** Dots of the same length, which Markdown gives no meaning. */
function dots(stretch: string): string {
  return ".".repeat(stretch.length);
}
