/**
 * A reply as plain text without its thinking. Code stays as it is, formulas become LaTeX, table
 * cells are separated by tabs, and links include their address.
 */
import { ReplyDocument } from "./document";
import { isLeaf, leavesOf, type Branch, type Node } from "./nodes";

export function plainText(text: string): string {
  const document = new ReplyDocument(Infinity);
  document.update(text, true);
  const written = new PlainText(text);
  return written.blocks(document.answer.map(({ branch }) => branch)).trim();
}

/** Tags of blocks; all others are inline. */
const BLOCKS = new Set<Branch["tag"]>([
  ...(["p", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "blockquote", "ul", "ol", "table"] as const),
  ...(["code-block", "display-formula", "marks"] as const),
]);

class PlainText {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** Joins blocks with a blank line, or with `gap`. */
  blocks(branches: readonly Branch[], gap = "\n\n"): string {
    const written = branches.map((branch) => this.#block(branch).trimEnd());
    return written.filter((block) => block !== "").join(gap);
  }

  #block(branch: Branch): string {
    switch (branch.tag) {
      case "marks":
        return "";
      case "hr":
        return "---";
      case "code-block":
        return this.#read(branch);
      case "display-formula":
        return this.#read(branch).trim();
      case "blockquote":
        return indented(this.blocks(branchesIn(branch)), "> ", "> ");
      case "ul":
      case "ol":
        return this.#list(branch);
      case "table":
        return this.#table(branch);
      default:
        return this.#inside(branch.children)
          .split("\n")
          .map((line, at, { length }) => trimmed(line, at > 0, at < length - 1))
          .join("\n");
    }
  }

  #list(list: Branch): string {
    const gap = list.loose ? "\n\n" : "\n";
    const items = branchesIn(list).map((item, at) => {
      const mark = list.tag === "ol" ? `${(list.start ?? 1) + at}. ` : "- ";
      return indented(this.#item(item, gap), mark, " ".repeat(mark.length));
    });
    return items.join(gap);
  }

  #item(item: Branch, gap: string): string {
    const blocks = branchesIn(item).filter(({ tag }) => BLOCKS.has(tag));
    return this.blocks(blocks, gap);
  }

  #table(table: Branch): string {
    const rows = branchesIn(table).flatMap((part) => branchesIn(part));
    const lines = rows
      .filter(({ tag }) => tag === "tr")
      .map((row) => {
        return branchesIn(row).map((cell) =>
          this.#inside(cell.children).trim().replace(/\s+/g, " "),
        );
      });
    return lines.map((cells) => cells.join("\t")).join("\n");
  }

  #inside(nodes: readonly Node[]): string {
    return nodes.map((node) => (isLeaf(node) ? this.#leaf(node) : this.#branch(node))).join("");
  }

  #leaf({ kind, from, to, shown }: Extract<Node, { kind: string }>): string {
    return kind === "text" ? (shown ?? this.#text.slice(from, to)) : "";
  }

  #branch(branch: Branch): string {
    const inside = this.#inside(branch.children);
    if (branch.tag === "sup") return `[${inside}]`;
    if (branch.tag !== "a" || typeof branch.address !== "string") return inside;
    const isNamed = bare(inside) !== bare(branch.address);
    return isNamed ? `${inside} (${branch.address})` : inside;
  }

  #read(branch: Branch): string {
    return [...leavesOf([branch])].map((leaf) => this.#leaf(leaf)).join("");
  }
}

/** Trims a line at its `start` and its `end`. */
function trimmed(line: string, start: boolean, end: boolean): string {
  const kept = start ? line.trimStart() : line;
  return end ? kept.trimEnd() : kept;
}

/** An address without its usual prefix. */
function bare(address: string): string {
  return address.replace(/^(https?:\/\/|mailto:)/i, "").replace(/\/$/, "");
}

function branchesIn(branch: Branch): Branch[] {
  return branch.children.filter((node): node is Branch => !isLeaf(node));
}

/** Prefixes lines: the first with `first`, the others with `rest`; blank ones stay blank. */
function indented(text: string, first: string, rest: string): string {
  const lines = text.split("\n");
  return lines.map((line, at) => ((at === 0 ? first : rest) + line).trimEnd()).join("\n");
}
