/**
 * A stretch of Markdown that grows at its end. Blocks that nothing written later can change are
 * kept; each update parses what follows them. A block is such when another begins after a blank line
 * behind it and the first line of that one is complete.
 */
import type { SyntaxNode, Tree } from "@lezer/common";
import { childrenOf, definitionsIn } from "./inline";
import { leavesOf, type Branch } from "./nodes";
import { parseMarkdown } from "./parser";
import { structureOf } from "./structure";

/** One of the outermost blocks, with the white space behind it. Never changed once made. */
export interface Block {
  readonly branch: Branch;
  readonly from: number;
  readonly to: number;
}

export class Section {
  blocks: readonly Block[] = [];
  readonly #from: number;
  #kept: Block[] = [];
  /** The text from here is parsed again at each update. */
  #cut: number;
  /** Parsed before it: the lines that opened what is open at the cut. */
  #head = "";
  readonly #definitions = new Map<string, string>();
  /** What links in kept blocks would be, if it were defined. */
  readonly #unresolved = new Set<string>();

  constructor(from: number) {
    this.#from = from;
    this.#cut = from;
  }

  /** The text from the section's begin to `end`; `whole` when nothing more will come. */
  update(text: string, end: number, whole: boolean) {
    const source = this.#head + text.slice(this.#cut, end);
    const tree = parseMarkdown(source);
    const outermost = childrenOf(tree.topNode);
    const last = whole ? outermost.length : lastOpen(outermost, source);
    if (this.#define(outermost.slice(0, last), source)) {
      this.update(text, end, whole);
      return;
    }
    const shift = this.#cut - this.#head.length;
    const { blocks, unresolved } = structureOf(
      { source, tree, shift, least: this.#cut },
      this.#definitions,
    );
    const made = placed(blocks, this.#cut);
    this.blocks = [...this.#kept, ...made].filter(({ from, to }) => from < to);
    if (last === 0) return;
    this.#kept = this.#kept.concat(made.slice(0, last));
    for (const label of unresolved) this.#unresolved.add(label);
    this.#cut = made[last]?.from ?? end;
    this.#head = "";
  }

  /** Takes up definitions; true when kept links need them, and everything is to be read again. */
  #define(blocks: readonly SyntaxNode[], source: string): boolean {
    let needed = false;
    for (const [label, address] of definitionsIn(blocks, source)) {
      if (this.#definitions.has(label)) continue;
      this.#definitions.set(label, address);
      needed ||= this.#unresolved.has(label);
    }
    if (!needed) return false;
    this.#kept = [];
    this.#cut = this.#from;
    this.#head = "";
    this.#unresolved.clear();
    return true;
  }

  /**
   * Forgets what stands before a place, also in a block that goes on there: of that one the lines
   * that opened it are kept, so that a long list stays a list and a long program code.
   */
  forget(text: string, before: number) {
    this.#kept = this.#kept.filter(({ to }) => to > before);
    this.blocks = this.blocks.filter(({ to }) => to > before);
    if (before - this.#cut < LONG_TAIL) return;
    const source = this.#head + text.slice(this.#cut);
    const shift = this.#cut - this.#head.length;
    const line = Math.max(text.lastIndexOf("\n", before - 1) + 1, this.#cut);
    const near = before - line < LONGEST_LINE;
    this.#head = near ? opening(parseMarkdown(source), source, line - shift) : "";
    this.#cut = near ? line : before;
  }
}

/** A block that began so many characters ago is cut rather than parsed from there each time. */
const LONG_TAIL = 4000;
/** A line that is longer is cut in two. */
const LONGEST_LINE = 2000;

/** The first of the outermost blocks that may yet change; those before it are done. */
function lastOpen(outermost: readonly SyntaxNode[], source: string): number {
  for (let at = outermost.length - 1; at > 0; at -= 1) {
    const [before, block] = [outermost[at - 1], outermost[at]];
    if (!before || !block) continue;
    const apart = source.slice(before.to, block.from).split("\n").length > 2;
    if (apart && source.includes("\n", block.from)) return at;
  }
  return 0;
}

/** Gives each block its place, from its first leaf to the next block's. */
function placed(branches: readonly Branch[], from: number): Block[] {
  const blocks: Block[] = [];
  let at = from;
  for (const branch of branches) {
    let to = at;
    for (const leaf of leavesOf([branch])) to = leaf.to;
    blocks.push({ branch, from: at, to });
    at = to;
  }
  return blocks;
}

/** The lines before `at` that opened the blocks which are open there. */
function opening(tree: Tree, source: string, at: number): string {
  const lines = new Set<number>();
  const parents: SyntaxNode[] = [];
  for (let node: SyntaxNode | null = tree.resolveInner(at, 1); node; node = node.parent) {
    parents.unshift(node);
  }
  for (const { name, from } of parents) {
    if (from >= at || !OPENED.has(name)) continue;
    const line = source.lastIndexOf("\n", from - 1) + 1;
    lines.add(line);
    // A table is one by its second line.
    if (name === "Table") lines.add(lineEnd(source, line));
  }
  return [...lines]
    .filter((line) => line < at)
    .map((line) => source.slice(line, lineEnd(source, line)))
    .join("");
}

const OPENED = new Set(["Blockquote", "ListItem", "FencedCode", "Table"]);

function lineEnd(source: string, line: number): number {
  const end = source.indexOf("\n", line);
  return end < 0 ? source.length : end + 1;
}
