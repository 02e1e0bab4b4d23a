/**
 * LaTeX in Markdown, for the parser: `$..$` and `\(..\)` inline, `$$..$$` and `\[..\]` displayed.
 * Unclosed formulas stay text, as do prices.
 */
import type {
  BlockContext,
  BlockParser,
  Element,
  InlineContext,
  LeafBlock,
  Line,
  MarkdownConfig,
} from "@lezer/markdown";

const MARK = 2;
/** Longest inline formula. */
const LONGEST_INLINE = 2000;
/** Matches a letter of a script with spaces between words and formulas, or a digit. */
const SPACED = /^[\p{Script=Latin}\p{N}]/u;
/** Endings that follow a formula without a space: "$n$th", "two $x$s". */
const ENDING = /^(?:th|st|nd|rd|s)(?![\p{L}\p{N}])/u;
/** Matches an amount and words, as between the dollars of "$5 (or 6$)". */
const PROSE = /^[\d.,]+\s[^\\]*\p{L}{2}[^\\]*$/u;
/** Longest displayed formula. A text that opens one without end is read once for each piece. */
const LONGEST_DISPLAYED = 16_384;
/** Length of a paragraph from which "$$" at a line's start always begins a formula. */
const LONGEST_LEAF = 8192;

const CLOSING: Readonly<Record<string, string>> = { $$: "$$", "\\[": "\\]" };

/** The closing mark of the formula at the start of `text`. Three dollars and more are no mark. */
function closing(text: string): string | undefined {
  return text.startsWith("$$$") ? undefined : CLOSING[text.slice(0, MARK)];
}

interface Marks {
  from: number;
  to: number;
  mark: number;
}

function formula(
  cx: BlockContext | InlineContext,
  name: "InlineMath" | "DisplayMath",
  { from, to, mark }: Marks,
  inside: readonly Element[] = [],
): Element {
  return cx.elt(name, from, to, [
    cx.elt("MathMark", from, from + mark),
    ...inside,
    cx.elt("MathMark", to - mark, to),
  ]);
}

/** Displayed formulas on their own lines, which may look like lists or headings. */
const displayed: BlockParser = {
  name: "DisplayMath",
  before: "IndentedCode",
  parse(cx, line) {
    const close = closing(line.text.slice(line.pos, line.pos + MARK + 1));
    if (close === undefined || line.indent >= line.baseIndent + 4) return false;
    const rest = line.text.slice(line.pos + MARK);
    const ends = rest.indexOf(close);
    const from = cx.lineStart + line.pos;
    if (ends >= 0) {
      if (rest.slice(ends + MARK).trim() !== "" || rest.slice(0, ends).trim() === "") return false;
      cx.addElement(formula(cx, "DisplayMath", { from, to: from + 2 * MARK + ends, mark: MARK }));
      cx.nextLine();
      return true;
    }
    overLines(cx, line, from, close);
    return true;
  },
  endLeaf(_, line, leaf) {
    const text = line.text.slice(line.pos).trimEnd();
    const close = closing(text);
    if (close === undefined) return false;
    // The mark ends a formula that began within the paragraph.
    if (close === "$$" && isOpen(leaf)) return false;
    return text.length === MARK || (text.length > 2 * MARK && text.endsWith(close));
  },
};

/** Number of "$$" in the first `to` characters of a growing paragraph. */
const counted = new WeakMap<LeafBlock, { to: number; marks: number }>();

/** Whether a formula that began in a paragraph is open. Each line is counted once. */
function isOpen(leaf: LeafBlock): boolean {
  // Long paragraphs are parsed in pieces, which no formula crosses.
  if (leaf.content.length > LONGEST_LEAF) return false;
  const { to, marks } = counted.get(leaf) ?? { to: 0, marks: 0 };
  const found = marks + leaf.content.slice(to).split("$$").length - 1;
  counted.set(leaf, { to: leaf.content.length, marks: found });
  return found % 2 === 1;
}

/**
 * Parses a formula that ends on a later line; it is a paragraph if a blank line or the end comes
 * first, or if it is too long.
 */
function overLines(cx: BlockContext, line: Line, from: number, close: string) {
  const { baseIndent } = line;
  const quotes = quotesAround(cx);
  const marks: Element[] = [];
  let text = line.text.slice(line.pos);
  while (cx.nextLine()) {
    const leaves = line.baseIndent < baseIndent || line.markers.length < quotes;
    if (leaves || line.pos >= line.text.length || text.length > LONGEST_DISPLAYED) break;
    marks.push(...line.markers);
    const trimmed = line.text.trimEnd();
    if (trimmed.endsWith(close) && trimmed.length - MARK >= line.pos) {
      const to = cx.lineStart + trimmed.length;
      cx.addElement(formula(cx, "DisplayMath", { from, to, mark: MARK }, marks));
      cx.nextLine();
      return;
    }
    text += `\n${" ".repeat(line.basePos)}${line.text.slice(line.basePos)}`;
  }
  cx.addElement(cx.elt("Paragraph", from, from + text.length, cx.parser.parseInline(text, from)));
}

function quotesAround(cx: BlockContext): number {
  let quotes = 0;
  for (let depth = 0; depth < cx.depth; depth += 1) {
    if (cx.parentType(depth).name === "Blockquote") quotes += 1;
  }
  return quotes;
}

function inLine(cx: InlineContext, pos: number): number {
  const before = pos > cx.offset ? cx.slice(pos - 1, pos) : "";
  if (cx.char(pos + 1) === DOLLAR) {
    if (before === "$" || cx.char(pos + MARK) === DOLLAR) return -1;
    return closedBy(cx, pos, "$$", "DisplayMath");
  }
  // No formula: "10$/month or 20$/month".
  if (SPACED.test(before)) return -1;
  const text = cx.slice(pos + 1, Math.min(cx.end, pos + LONGEST_INLINE));
  const ends = /^(?:[^$\\`]|\\[^])*?(?=\$)/.exec(text)?.[0].length ?? 0;
  // No formulas: "$5 or $6" and "$HOME/$USER".
  if (ends === 0 || /^\s|\s$/.test(text.slice(0, ends))) return -1;
  const after = text.slice(ends + 1);
  if (SPACED.test(after) && !ENDING.test(after)) return -1;
  if (PROSE.test(text.slice(0, ends))) return -1;
  const to = pos + ends + 2;
  return cx.addElement(formula(cx, "InlineMath", { from: pos, to, mark: 1 }));
}

function closedBy(
  cx: InlineContext,
  pos: number,
  close: string,
  name: "InlineMath" | "DisplayMath",
): number {
  const text = cx.slice(pos + MARK, cx.end);
  const ends = text.indexOf(close);
  if (ends < 0 || text.slice(0, ends).trim() === "") return -1;
  if (close === "$$" && text[ends + MARK] === "$") return -1;
  const to = pos + ends + 2 * MARK;
  return cx.addElement(formula(cx, name, { from: pos, to, mark: MARK }));
}

const DOLLAR = 36;
const BACKSLASH = 92;
const ROUND = 40;
const SQUARE = 91;

export const math: MarkdownConfig = {
  defineNodes: [{ name: "DisplayMath", block: true }, "InlineMath", "MathMark"],
  parseBlock: [displayed],
  parseInline: [
    {
      name: "Math",
      before: "Escape",
      parse(cx, next, pos) {
        if (next === DOLLAR) return inLine(cx, pos);
        if (next !== BACKSLASH) return -1;
        const kind = cx.char(pos + 1);
        if (kind === ROUND) return closedBy(cx, pos, "\\)", "InlineMath");
        return kind === SQUARE ? closedBy(cx, pos, "\\]", "DisplayMath") : -1;
      },
    },
  ],
};
