/** Converts the parser's tree into the structure of a text, block by block. */
import type { SyntaxNode } from "@lezer/common";
import { Builder } from "./builder";
import { childrenOf, Inline, MARKS, type Definitions } from "./inline";
import type { Align, Branch, Tag } from "./nodes";
import type { Parsed } from "./parser";

export interface Placed extends Pick<Parsed, "texts"> {
  /** The text that was parsed. */
  source: string;
  /** Outermost nodes to convert, and the end of the text after them. */
  nodes: readonly SyntaxNode[];
  until: number;
  /** Offset of `source` in the whole text. */
  shift: number;
  /** Offset in the whole text before which leaves are left out. */
  least: number;
  /** Length from which a block is split. */
  longest: number;
}

export interface Structure {
  blocks: Branch[];
  /** Index of the first block of each outermost node. */
  firsts: number[];
  /** Labels of links without a definition. */
  unresolved: ReadonlySet<string>;
}

/** Converts nodes, and yields between parts of long blocks. */
export function* structureOf(placed: Placed, definitions: Definitions): Generator<void, Structure> {
  const converter = new Converter(placed, definitions);
  const { blocks, firsts } = yield* converter.blocks(placed);
  return { blocks, firsts, unresolved: converter.unresolved };
}

const HOSTS: Readonly<Record<string, Tag>> = {
  Paragraph: "p",
  Task: "p",
  Footnote: "p",
  ATXHeading1: "h1",
  ATXHeading2: "h2",
  ATXHeading3: "h3",
  ATXHeading4: "h4",
  ATXHeading5: "h5",
  ATXHeading6: "h6",
  SetextHeading1: "h1",
  SetextHeading2: "h2",
  DisplayMath: "display-formula",
};

/** Blocks of marks without text. */
const MARKS_ONLY: Readonly<Record<string, Tag>> = { HorizontalRule: "hr", LinkReference: "marks" };

const BLANK_LINE = /\n[ \t>]*\n/;

class Converter {
  readonly #source: string;
  /** Position before which nodes are left out. */
  readonly #begin: number;
  readonly #into: Builder;
  readonly #inline: Inline;

  constructor(placed: Placed, definitions: Definitions) {
    const { source, texts, shift, least, longest } = placed;
    this.#source = source;
    this.#begin = least - shift;
    this.#into = new Builder(source, shift, least, longest);
    this.#inline = new Inline(source, texts, definitions, this.#into);
  }

  get unresolved(): ReadonlySet<string> {
    return this.#inline.unresolved;
  }

  *blocks({ nodes, until }: Placed): Generator<void, Pick<Structure, "blocks" | "firsts">> {
    const firsts: number[] = [];
    for (const child of nodes) {
      firsts.push(this.#into.roots.length);
      yield* this.#block(child);
    }
    return { blocks: this.#into.finish(until), firsts };
  }

  *#block(node: SyntaxNode): Generator<void> {
    if (node.to <= this.#begin) return;
    const host = HOSTS[node.name];
    const marks = MARKS_ONLY[node.name];
    if (MARKS.has(node.name)) this.#into.mark(node.from, node.to);
    else if (host) yield* this.#host(node, host);
    else if (marks) this.#whole(node, marks, "syntax");
    else if (this.#into.isFull) this.#whole(node, "p", "text");
    else yield* this.#other(node);
  }

  *#host(node: SyntaxNode, tag: Tag): Generator<void> {
    this.#into.openHost(tag, node.from, node.name === "Task" ? { task: true } : {});
    yield* this.#inline.inside(node);
    this.#into.close();
    yield;
  }

  #whole(node: SyntaxNode, tag: Tag, kind: "text" | "syntax") {
    this.#into.openHost(tag, node.from);
    this.#into.leaf(kind, node.to);
    this.#into.close();
  }

  *#other(node: SyntaxNode): Generator<void> {
    switch (node.name) {
      case "Blockquote":
        yield* this.#container(node, { tag: "blockquote" });
        break;
      case "BulletList":
        yield* this.#container(node, { tag: "ul", loose: yield* this.#isLoose(node) });
        break;
      case "OrderedList": {
        const start = Number.parseInt(this.#source.slice(node.from, node.from + 10), 10);
        yield* this.#container(node, { tag: "ol", loose: yield* this.#isLoose(node), start });
        break;
      }
      case "ListItem":
        yield* this.#container(node, { tag: "li" });
        break;
      case "FencedCode":
      case "CodeBlock":
        yield* this.#code(node);
        break;
      case "Table":
        yield* this.#table(node);
        break;
      default:
        this.#whole(node, "p", "text");
    }
  }

  *#container(node: SyntaxNode, { tag, ...more }: Omit<Branch, "children">): Generator<void> {
    this.#into.between(node.from);
    const isContinuation = node.from < this.#begin && (tag === "li" || this.#into.isOutermost);
    this.#into.open(tag, isContinuation ? { ...more, continued: true } : more);
    const before = this.#into.hosts;
    for (const child of childrenOf(node)) {
      this.#into.cut();
      yield* this.#block(child);
    }
    if (this.#into.hosts === before) this.#empty("p", node.to);
    this.#into.close();
  }

  /** Adds a host for the marks of an empty block. */
  #empty(tag: Tag, at: number, more: Partial<Branch> = {}) {
    this.#into.openHost(tag, at, more);
    this.#into.close();
  }

  /** Whether blank lines separate a list's items, or the blocks of an item. */
  *#isLoose(list: SyntaxNode): Generator<void, boolean> {
    const items = childrenOf(list);
    if (this.#isApart(items)) return true;
    for (const item of items) {
      if (this.#isApart(childrenOf(item))) return true;
      yield;
    }
    return false;
  }

  /** Whether blank lines separate any of the nodes. */
  #isApart(nodes: readonly SyntaxNode[]): boolean {
    return nodes.some(({ to }, at) => {
      const next = nodes[at + 1];
      return next !== undefined && BLANK_LINE.test(this.#source.slice(to, next.from));
    });
  }

  *#code(node: SyntaxNode): Generator<void> {
    const info = node.getChild("CodeInfo");
    const written = info ? this.#source.slice(info.from, info.to) : "";
    const language = /^[^\s{},]*/.exec(written)?.[0] ?? "";
    this.#into.openHost("code-block", node.from, { language });
    for (const child of childrenOf(node)) {
      this.#into.leaf("syntax", child.from);
      this.#into.leaf(child.name === "CodeText" ? "text" : "syntax", child.to);
      yield;
    }
    this.#into.leaf("syntax", node.to);
    this.#into.close();
  }

  *#table(node: SyntaxNode): Generator<void> {
    const rule = node.getChild("TableDelimiter");
    const aligns = rule ? alignsOf(this.#source.slice(rule.from, rule.to)) : [];
    let cell: "th" | "td" = "th";
    this.#into.between(node.from);
    this.#into.open("table");
    this.#into.open("thead");
    for (const child of childrenOf(node)) {
      if (child.to <= this.#begin) continue;
      if (child.name === "QuoteMark") {
        this.#into.mark(child.from, child.to);
      } else if (child.name === "TableDelimiter") {
        this.#whole(child, "marks", "syntax");
      } else {
        if (child.name === "TableRow" && cell === "th") {
          cell = "td";
          this.#into.close();
          this.#into.open("tbody");
        }
        this.#into.cut();
        yield* this.#row(child, aligns, cell);
      }
    }
    this.#into.close();
    this.#into.close();
  }

  *#row(
    row: SyntaxNode,
    aligns: readonly (Align | undefined)[],
    tag: "td" | "th",
  ): Generator<void> {
    this.#into.open("tr");
    let column = 0;
    let isFilled = true;
    for (const child of childrenOf(row)) {
      const align = aligns[column];
      const more = align ? { align } : {};
      if (child.name === "TableCell") {
        this.#into.openHost(tag, child.from, more);
        yield* this.#inline.insideCell(child);
        this.#into.close();
        column += 1;
        isFilled = true;
      } else if (child.name === "TableDelimiter") {
        if (!isFilled) {
          this.#empty(tag, child.from, more);
          column += 1;
        }
        this.#into.mark(child.from, child.to);
        isFilled = false;
      }
    }
    if (column === 0) this.#empty(tag, row.to);
    this.#into.close();
    yield;
  }
}

function alignsOf(rule: string): (Align | undefined)[] {
  const columns = rule
    .replace(/^\s*\|/, "")
    .replace(/\|\s*$/, "")
    .split("|");
  return columns.map((column) => {
    const written = column.trim();
    const right = written.endsWith(":");
    if (written.startsWith(":")) return right ? "center" : "left";
    return right ? "right" : undefined;
  });
}
