/** From the parser's tree to the structure of the text, block by block. A pure function of both. */
import type { SyntaxNode, Tree } from "@lezer/common";
import { Builder } from "./builder";
import { childrenOf, Inline, MARKS, type Definitions } from "./inline";
import type { Align, Branch, Tag } from "./nodes";

export interface Placed {
  /** What was parsed. */
  source: string;
  tree: Tree;
  /** A position in the whole text less the same in `source`. */
  shift: number;
  /** Places before this one in the whole text are left out. */
  least: number;
}

export interface Structure {
  blocks: Branch[];
  /** Labels of links that no definition was known for. */
  unresolved: ReadonlySet<string>;
}

export function structureOf(placed: Placed, definitions: Definitions): Structure {
  const converter = new Converter(placed, definitions);
  return { blocks: converter.blocks(placed.tree), unresolved: converter.unresolved };
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

/** Blocks that are nothing but marks. */
const MARKS_ONLY: Readonly<Record<string, Tag>> = { HorizontalRule: "hr", LinkReference: "marks" };

const BLANK_LINE = /\n[ \t>]*\n/;

class Converter {
  readonly #source: string;
  readonly #into: Builder;
  readonly #inline: Inline;

  constructor({ source, shift, least }: Placed, definitions: Definitions) {
    this.#source = source;
    this.#into = new Builder(source, shift, least);
    this.#inline = new Inline(source, definitions, this.#into);
  }

  get unresolved(): ReadonlySet<string> {
    return this.#inline.unresolved;
  }

  blocks(tree: Tree): Branch[] {
    for (const child of childrenOf(tree.topNode)) this.#block(child);
    return this.#into.finish(this.#source.length);
  }

  #block(node: SyntaxNode) {
    const host = HOSTS[node.name];
    const marks = MARKS_ONLY[node.name];
    if (MARKS.has(node.name)) this.#into.mark(node.from, node.to);
    else if (host) this.#host(node, host);
    else if (marks) this.#whole(node, marks, "syntax");
    else if (this.#into.isFull) this.#whole(node, "p", "text");
    else this.#other(node);
  }

  #host(node: SyntaxNode, tag: Tag) {
    this.#into.openHost(tag, node.from, node.name === "Task" ? { task: true } : {});
    this.#inline.inside(node);
    this.#into.close();
  }

  #whole(node: SyntaxNode, tag: Tag, kind: "text" | "syntax") {
    this.#into.openHost(tag, node.from);
    this.#into.leaf(kind, node.to);
    this.#into.close();
  }

  #other(node: SyntaxNode) {
    switch (node.name) {
      case "Blockquote":
        this.#container(node, { tag: "blockquote" });
        break;
      case "BulletList":
        this.#container(node, { tag: "ul", loose: this.#isLoose(node) });
        break;
      case "OrderedList": {
        const start = Number.parseInt(this.#source.slice(node.from, node.from + 10), 10);
        this.#container(node, { tag: "ol", loose: this.#isLoose(node), start });
        break;
      }
      case "ListItem":
        this.#container(node, { tag: "li" });
        break;
      case "FencedCode":
      case "CodeBlock":
        this.#code(node);
        break;
      case "Table":
        this.#table(node);
        break;
      default:
        this.#whole(node, "p", "text");
    }
  }

  #container(node: SyntaxNode, { tag, ...more }: Omit<Branch, "children">) {
    this.#into.between(node.from);
    this.#into.open(tag, more);
    const before = this.#into.hosts;
    for (const child of childrenOf(node)) this.#block(child);
    if (this.#into.hosts === before) this.#empty("p", node.to);
    this.#into.close();
  }

  /** A host for the marks of something that holds nothing else. */
  #empty(tag: Tag, at: number, more: Partial<Branch> = {}) {
    this.#into.openHost(tag, at, more);
    this.#into.close();
  }

  /** Blank lines stand between its items, or between the blocks of one. */
  #isLoose(list: SyntaxNode): boolean {
    const items = childrenOf(list);
    return [items, ...items.map(childrenOf)].some((blocks) =>
      blocks.some(({ to }, at) => {
        const next = blocks[at + 1];
        return next !== undefined && BLANK_LINE.test(this.#source.slice(to, next.from));
      }),
    );
  }

  #code(node: SyntaxNode) {
    const info = node.getChild("CodeInfo");
    const written = info ? this.#source.slice(info.from, info.to) : "";
    const language = /^[^\s{},]*/.exec(written)?.[0] ?? "";
    this.#into.openHost("code-block", node.from, { language });
    for (const child of childrenOf(node)) {
      this.#into.leaf("syntax", child.from);
      this.#into.leaf(child.name === "CodeText" ? "text" : "syntax", child.to);
    }
    this.#into.leaf("syntax", node.to);
    this.#into.close();
  }

  #table(node: SyntaxNode) {
    const rule = node.getChild("TableDelimiter");
    const aligns = rule ? alignsOf(this.#source.slice(rule.from, rule.to)) : [];
    let cell: "th" | "td" = "th";
    this.#into.between(node.from);
    this.#into.open("table");
    this.#into.open("thead");
    for (const child of childrenOf(node)) {
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
        this.#row(child, aligns, cell);
      }
    }
    this.#into.close();
    this.#into.close();
  }

  #row(row: SyntaxNode, aligns: readonly (Align | undefined)[], tag: "td" | "th") {
    this.#into.open("tr");
    let column = 0;
    let isFilled = true;
    for (const child of childrenOf(row)) {
      const align = aligns[column];
      const more = align ? { align } : {};
      if (child.name === "TableCell") {
        this.#into.openHost(tag, child.from, more);
        this.#inline.insideCell(child);
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
