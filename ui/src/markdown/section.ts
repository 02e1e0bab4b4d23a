/**
 * A section of Markdown that grows at its end. Final blocks are kept, and each update parses the
 * text after them. A block is final if another one follows after a blank line, with a complete
 * first line.
 */
import type { SyntaxNode, Tree } from "@lezer/common";
import { LONGEST_BLOCK } from "./builder";
import { childrenOf, definitionsIn } from "./inline";
import { isLeaf, type Branch } from "./nodes";
import { parsedInSteps } from "./parser";
import { atOnce } from "./slices";
import { structureOf } from "./structure";

/** An outermost block with the white space after it. Immutable. */
export interface Block {
  readonly branch: Branch;
  readonly from: number;
  readonly to: number;
}

export class Section {
  blocks: readonly Block[] = [];
  readonly #from: number;
  readonly #longest: number;
  #kept: Block[] = [];
  /** Offset from which each update parses. */
  #cut: number;
  /** Prefix for the parser: the lines that opened the blocks open at the cut. */
  #head = "";
  /** Whether kept parts of a block may still change. */
  #isRough = false;
  readonly #definitions = new Map<string, string>();
  /** Labels of links in kept blocks without a definition so far. */
  readonly #unresolved = new Set<string>();

  /** Blocks longer than `longest` characters are split. */
  constructor(from: number, longest = LONGEST_BLOCK) {
    this.#from = from;
    this.#cut = from;
    this.#longest = longest;
  }

  /**
   * Parses the text from the section's start to `end`, and yields between steps; `whole` means that
   * it is complete. {@link blocks} change at the last step. Of a long, growing block all but the
   * end is kept. It is parsed again when complete, since a later item may make its list loose.
   */
  *steps(text: string, end: number, whole: boolean): Generator<void> {
    if (whole && this.#isRough) this.#restart();
    let needed = false;
    for (let length = FIRST_PORTION; ;) {
      const before = this.#cut;
      const to = Math.min(end, before + length);
      needed = (yield* this.#read(text, to, end, whole)) || needed;
      if (to === end) break;
      length = this.#cut > before ? PORTION : 2 * length;
    }
    if (!needed) return;
    this.#restart();
    yield* this.steps(text, end, whole);
  }

  #restart() {
    this.#kept = [];
    this.#cut = this.#from;
    this.#head = "";
    this.#unresolved.clear();
    this.#isRough = false;
  }

  /** Offset at which the next update starts to parse. */
  unread(whole: boolean): number {
    return whole && this.#isRough ? this.#from : this.#cut;
  }

  /** Blocks parsed so far, and the rest as plain text, while {@link steps} are under way. */
  soFar(text: string, end: number): Block[] {
    return this.#kept.concat(plainBlocks(text, this.#cut, end));
  }

  /**
   * Parses a portion; returns true if kept links need its definitions, so that all must be parsed
   * again.
   */
  *#read(text: string, to: number, end: number, whole: boolean): Generator<void, boolean> {
    const isLast = to === end;
    const source = this.#head + text.slice(this.#cut, to);
    const { tree, texts } = yield* parsedInSteps(source);
    const outermost = childrenOf(tree.topNode);
    const open = isLast && whole ? outermost.length : lastOpen(outermost, source);
    const closed = outermost.slice(0, open);
    const needed = this.#define(closed, source);
    if (open === 0 && !isLast) return needed;
    const [nodes, until] = isLast
      ? [outermost, source.length]
      : [closed, lineAt(source, outermost[open]?.from ?? source.length)];
    const shift = this.#cut - this.#head.length;
    const place = { source, texts, nodes, until, shift, least: this.#cut, longest: this.#longest };
    const { blocks, firsts, unresolved } = yield* structureOf(place, this.#definitions);
    const made = placed(blocks, this.#cut);
    if (isLast) this.blocks = this.#kept.concat(made.filter(isFilled));
    const done = open === 0 ? 0 : (firsts[open] ?? made.length);
    const isLong = isLast && !whole && end - (made[done]?.from ?? end) > this.#longest;
    const last = isLong ? made.length - 1 : done;
    this.#isRough ||= last > done;
    if (last === 0) return needed;
    this.#kept = this.#kept.concat(made.slice(0, last).filter(isFilled));
    for (const label of unresolved) this.#unresolved.add(label);
    const cut = made[last]?.from ?? shift + until;
    this.#head = last > done ? opening(tree, source, cut - shift) : "";
    this.#cut = cut;
    return needed;
  }

  /** Adds definitions; returns true if kept links need them. */
  #define(blocks: readonly SyntaxNode[], source: string): boolean {
    let needed = false;
    for (const [label, address] of definitionsIn(blocks, source)) {
      if (this.#definitions.has(label)) continue;
      this.#definitions.set(label, address);
      needed ||= this.#unresolved.has(label);
    }
    return needed;
  }

  /**
   * Drops blocks before an offset. Of a block across it, the lines that opened it are kept, so that
   * a list stays a list and code stays code.
   */
  dropBefore(text: string, before: number) {
    this.#kept = this.#kept.filter(({ to }) => to > before);
    this.blocks = this.blocks.filter(({ to }) => to > before);
    if (before - this.#cut < LONG_TAIL) return;
    const source = this.#head + text.slice(this.#cut);
    const shift = this.#cut - this.#head.length;
    const line = Math.max(text.lastIndexOf("\n", before - 1) + 1, this.#cut);
    const near = before - line < LONGEST_LINE;
    const { tree } = atOnce(parsedInSteps(source));
    this.#head = near ? opening(tree, source, line - shift) : "";
    this.#cut = near ? line : before;
  }
}

/** Characters parsed per step; more for longer blocks. */
const PORTION = 65_536;
/** Characters of the first step, short to show something soon. */
const FIRST_PORTION = 8192;
/** Length from which an open block is cut instead of parsed again from its start. */
const LONG_TAIL = 4000;
/** Longest line; longer ones are split. */
const LONGEST_LINE = 2000;

/** Index of the first outermost block that may still change. */
function lastOpen(outermost: readonly SyntaxNode[], source: string): number {
  for (let at = outermost.length - 1; at > 0; at -= 1) {
    const [before, block] = [outermost[at - 1], outermost[at]];
    if (!before || !block) continue;
    const apart = source.slice(before.to, block.from).split("\n").length > 2;
    if ((apart || isClosed(before)) && source.includes("\n", block.from)) return at;
  }
  return 0;
}

/** Whether no later line can belong to a block, even without a blank line between. */
function isClosed(block: SyntaxNode): boolean {
  if (block.name.startsWith("ATXHeading")) return true;
  return block.name === "FencedCode" && block.getChildren("CodeMark").length === 2;
}

/** A range of text as unparsed paragraphs of about {@link LONGEST_BLOCK} characters. */
export function plainBlocks(text: string, from: number, to: number): Block[] {
  const blocks: Block[] = [];
  for (let at = from; at < to;) {
    const line = text.lastIndexOf("\n", at + LONGEST_BLOCK) + 1;
    const end = Math.min(to, line > at ? line : at + LONGEST_BLOCK);
    const children: Branch["children"] = [{ kind: "text", from: at, to: end }];
    blocks.push({ branch: { tag: "p", children }, from: at, to: end });
    at = end;
  }
  return blocks;
}

/** Adds the ranges of blocks, which follow each other without gaps. */
function placed(branches: readonly Branch[], from: number): Block[] {
  let at = from;
  return branches.map((branch) => {
    const begin = at;
    at = endOf(branch) ?? at;
    return { branch, from: begin, to: at };
  });
}

/** End of a branch's last leaf. */
function endOf({ children }: Branch): number | undefined {
  for (let at = children.length - 1; at >= 0; at -= 1) {
    const child = children[at];
    const end = child && (isLeaf(child) ? child.to : endOf(child));
    if (end !== undefined) return end;
  }
  return undefined;
}

function isFilled({ from, to }: Block): boolean {
  return from < to;
}

/** Lines before `at` that opened the blocks open there. */
function opening(tree: Tree, source: string, at: number): string {
  const lines = new Set<number>();
  const parents: SyntaxNode[] = [];
  for (let node: SyntaxNode | null = tree.resolveInner(at, 1); node; node = node.parent) {
    parents.unshift(node);
  }
  for (const { name, from } of parents) {
    if (from >= at || !OPENED.has(name)) continue;
    const line = lineAt(source, from);
    lines.add(line);
    // A table needs its second line as well.
    if (name === "Table") lines.add(lineEnd(source, line));
  }
  return [...lines]
    .filter((line) => line < at)
    .map((line) => source.slice(line, lineEnd(source, line)))
    .join("");
}

const OPENED = new Set(["Blockquote", "ListItem", "FencedCode", "Table"]);

/** Start of the line around a position. */
function lineAt(source: string, position: number): number {
  return position === 0 ? 0 : source.lastIndexOf("\n", position - 1) + 1;
}

function lineEnd(source: string, line: number): number {
  const end = source.indexOf("\n", line);
  return end < 0 ? source.length : end + 1;
}
