/** Structure within a line of text: emphasis, code, links, formulas. */
import type { SyntaxNode } from "@lezer/common";
import { decodeHTMLStrict } from "entities";
import { safeAddress } from "./address";
import type { Builder } from "./builder";
import type { Tag } from "./nodes";
import { INLINE, inlineIn, markOf, type Parsed, type Span } from "./parser";

/** Addresses of `[text][label]` links, by label. */
export type Definitions = ReadonlyMap<string, string>;

const BRANCHES: Readonly<Record<string, Tag>> = {
  Emphasis: "em",
  StrongEmphasis: "strong",
  Strikethrough: "del",
  InlineMath: "formula",
  DisplayMath: "display-formula",
};

export const MARKS: ReadonlySet<string> = new Set([
  "EmphasisMark",
  "StrikethroughMark",
  "CodeMark",
  "CodeInfo",
  "LinkMark",
  "LinkTitle",
  "MathMark",
  "HeaderMark",
  "QuoteMark",
  "ListMark",
  "TableDelimiter",
]);

const BREAK = /^<br\s*\/?>$/i;

export class Inline {
  /** Labels of links without a definition. */
  readonly unresolved = new Set<string>();
  readonly #source: string;
  readonly #texts: Parsed["texts"];
  readonly #definitions: Definitions;
  readonly #into: Builder;
  #inTable = false;

  constructor(source: string, texts: Parsed["texts"], definitions: Definitions, into: Builder) {
    this.#source = source;
    this.#texts = texts;
    this.#definitions = definitions;
    this.#into = into;
  }

  /** Adds the contents of a table cell. */
  *insideCell(node: SyntaxNode): Generator<void> {
    this.#inTable = true;
    yield* this.inside(node);
    this.#inTable = false;
  }

  /** Adds the contents of a host. Yields between parts of a long one. */
  *inside(host: SyntaxNode): Generator<void> {
    let beside = false;
    let isLater = false;
    for (const child of childrenOf(host)) {
      const isPiece = child.name === INLINE;
      if (isPiece && isLater) {
        this.#stretch(child.from, beside);
        this.#into.cut(0);
        yield;
      }
      isLater = isPiece;
      for (const span of isPiece ? inlineIn(child, this.#texts) : [markOf(child)]) {
        beside = this.#beside(span, beside);
      }
    }
    this.#stretch(host.to, beside);
  }

  /** Adds the contents of a span, such as emphasis. */
  #within(span: Span) {
    let beside = false;
    for (const child of span.children) beside = this.#beside(child, beside);
    this.#stretch(span.to, beside);
  }

  /** Adds the text up to a span and the span; returns true for a heading's marks. */
  #beside(span: Span, beside: boolean): boolean {
    const isMark = span.name === "HeaderMark";
    this.#stretch(span.from, beside || isMark);
    this.#node(span);
    return isMark;
  }

  /** Adds text up to `to`; white space beside a heading's marks counts as marks. */
  #stretch(to: number, beside: boolean) {
    const text = this.#source.slice(this.#into.at, to);
    if (beside) {
      this.#into.leaf("gap", to - text.trimStart().length);
      this.#into.leaf("text", to - (text.length - text.trimEnd().length));
    }
    this.#into.leaf(beside ? "gap" : "text", to);
  }

  #node(node: Span) {
    const tag = BRANCHES[node.name];
    if (MARKS.has(node.name)) this.#into.leaf("syntax", node.to);
    else if (this.#into.isFull) this.#into.leaf("text", node.to);
    else if (tag) this.#branch(node, tag);
    else this.#other(node);
  }

  #branch(node: Span, tag: Tag) {
    this.#into.open(tag);
    this.#within(node);
    this.#into.close();
  }

  #other(node: Span) {
    switch (node.name) {
      case "InlineCode":
        this.#code(node);
        break;
      case "FootnoteMark":
        this.#footnote(node.from, node.to);
        break;
      case "Link":
      case "Image":
        this.#link(node);
        break;
      case "Autolink":
        this.#autolink(node);
        break;
      case "URL":
        this.#address(node);
        break;
      default:
        this.#characters(node);
    }
  }

  /**
   * Adds source that is shown as other characters: escapes, entities, line breaks, task markers.
   */
  #characters(node: Span) {
    const written = this.#source.slice(node.from, node.to);
    let shown: string | undefined;
    if (node.name === "Escape") this.#into.leaf("syntax", node.from + 1);
    else if (node.name === "HardBreak") this.#into.leaf("syntax", node.to - 1);
    else if (node.name === "Entity") shown = decodeHTMLStrict(written);
    else if (node.name === "TaskMarker") shown = /x/i.test(written) ? "☑" : "☐";
    // `<br>` is a line break, which models write in tables; every other tag is text.
    else if (node.name === "HTMLTag" && BREAK.test(written)) shown = "\n";
    this.#into.leaf("text", node.to, shown);
  }

  /** Adds code; a single space at both sides only separates backticks. */
  #code(node: Span) {
    const [from, to] = [node.children[0]?.to ?? node.from, node.children.at(-1)?.from ?? node.to];
    const code = this.#source.slice(from, to);
    const pad = /^\s[^]*\s$/.test(code) && code.trim() !== "" ? 1 : 0;
    this.#into.open("code");
    this.#into.leaf("syntax", from + pad);
    // In table cells pipes are escaped, even in code.
    for (const { index } of this.#inTable ? code.matchAll(/\\\|/g) : []) {
      this.#into.leaf("text", from + index);
      this.#into.leaf("syntax", from + index + 1);
    }
    this.#into.leaf("text", to - pad);
    this.#into.leaf("syntax", node.to);
    this.#into.close();
  }

  /** Adds a link. An image becomes a link as well: loading it would send a request. */
  #link(node: Span) {
    if (this.#footnotes(node)) return;
    const address = this.#addressOf(node);
    const [open, close] = allOf(node, "LinkMark");
    if (address === null || !open || !close) {
      this.#unlinked(node);
      return;
    }
    const isNamed = close.from > open.to;
    this.#into.open("a", { address: safeAddress(address) });
    for (const child of node.children) {
      this.#into.leaf(child.from <= close.from ? "text" : "syntax", child.from);
      if (child.from < close.from) this.#node(child);
      else this.#into.leaf(child.name === "URL" && !isNamed ? "text" : "syntax", child.to);
    }
    this.#into.leaf("syntax", node.to);
    this.#into.close();
  }

  /**
   * Adds footnote references: "[^1]", and "[^1][^2]", which the parser reads as a link with a
   * label.
   */
  #footnotes(node: Span): boolean {
    const [open, close, more] = allOf(node, "LinkMark");
    if (node.name !== "Link" || !open || !close || more) return false;
    const label = oneOf(node, "LinkLabel");
    const parts = [{ from: node.from, to: close.to }, ...(label ? [label] : [])];
    const names = parts.map(({ from, to }) => labelName(this.#source.slice(from + 1, to - 1)));
    const missing = names.filter((name) => !name.startsWith("^") || !this.#definitions.has(name));
    if (missing.length > 0) {
      for (const name of missing) this.unresolved.add(name);
      return false;
    }
    for (const { from, to } of parts) this.#footnote(from, to);
    return true;
  }

  #footnote(from: number, to: number) {
    this.#into.leaf("text", from);
    this.#into.open("sup");
    this.#into.leaf("syntax", from + "[^".length);
    this.#into.leaf("text", this.#source.lastIndexOf("]", to - 1));
    this.#into.leaf("syntax", to);
    this.#into.close();
  }

  /** Adds brackets without an address as text. */
  #unlinked(node: Span) {
    for (const child of node.children) {
      this.#into.leaf("text", child.from);
      const isText = child.name === "LinkMark" || child.name === "LinkLabel";
      if (isText) this.#into.leaf("text", child.to);
      else this.#node(child);
    }
    this.#into.leaf("text", node.to);
  }

  #addressOf(node: Span): string | null {
    const marks = allOf(node, "LinkMark");
    if (marks.length > 2) {
      const url = oneOf(node, "URL");
      return url ? this.#source.slice(url.from, url.to) : "";
    }
    const label = oneOf(node, "LinkLabel");
    const [from, to] =
      label && label.to - label.from > 2
        ? [label.from + 1, label.to - 1]
        : [marks[0]?.to ?? node.from, marks[1]?.from ?? node.to];
    const name = labelName(this.#source.slice(from, to));
    const found = this.#definitions.get(name);
    if (found === undefined) this.unresolved.add(name);
    return found ?? null;
  }

  #autolink(node: Span) {
    const url = oneOf(node, "URL");
    if (url) {
      this.#into.leaf("syntax", url.from);
      this.#address(url);
    }
    this.#into.leaf(url ? "syntax" : "text", node.to);
  }

  #address(node: Span) {
    this.#into.open("a", { address: safeAddress(this.#source.slice(node.from, node.to)) });
    this.#into.leaf("text", node.to);
    this.#into.close();
  }
}

function oneOf(span: Span, name: string): Span | undefined {
  return span.children.find((child) => child.name === name);
}

function allOf(span: Span, name: string): Span[] {
  return span.children.filter((child) => child.name === name);
}

/** Link definitions, `[label]: address`, and footnotes among a tree's outermost blocks. */
export function definitionsIn(blocks: readonly SyntaxNode[], source: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const block of blocks) {
    const note = block.getChild("FootnoteMark");
    if (note) found.set(labelName(source.slice(note.from + 1, note.to - 2)), "");
    const label = block.name === "LinkReference" ? block.getChild("LinkLabel") : null;
    const url = block.getChild("URL");
    if (!label || !url) continue;
    const name = labelName(source.slice(label.from + 1, label.to - 1));
    if (!found.has(name)) found.set(name, source.slice(url.from, url.to));
  }
  return found;
}

function labelName(label: string): string {
  return label.trim().replace(/\s+/g, " ").toLowerCase();
}

export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}
