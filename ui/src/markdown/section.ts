/**
 * A stretch of Markdown that grows at its end. Blocks that nothing written later can change are
 * kept; each update parses what follows them. A block is such when another begins after a blank
 * line behind it and the first line of that one is complete.
 */
import type { SyntaxNode, Tree } from "@lezer/common";
import { LONGEST_BLOCK } from "./builder";
import { childrenOf, definitionsIn } from "./inline";
import { isLeaf, type Branch } from "./nodes";
import { parsedInSteps } from "./parser";
import { atOnce } from "./slices";
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
  readonly #longest: number;
  #kept: Block[] = [];
  /** The text from here is parsed again at each update. */
  #cut: number;
  /** Parsed before it: the lines that opened what is open at the cut. */
  #head = "";
  /** Whether parts of a block are kept that may yet change. */
  #isRough = false;
  readonly #definitions = new Map<string, string>();
  /** Labels of links in kept blocks that have no definition yet. */
  readonly #unresolved = new Set<string>();

  /** Longer blocks are cut into some of about `longest` characters. */
  constructor(from: number, longest = LONGEST_BLOCK) {
    this.#from = from;
    this.#cut = from;
    this.#longest = longest;
  }

  /**
   * Takes the text from the section's begin to `end`; `whole` when nothing more will come. Yields
   * between steps. {@link blocks} change with the last one. Of a long block that grows all but the
   * end is kept as it is; it is read again when it is whole, since an item far below may make a
   * list a loose one.
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

  /** Where the text begins that is read next. */
  unread(whole: boolean): number {
    return whole && this.#isRough ? this.#from : this.#cut;
  }

  /**
   * The blocks that are done while {@link steps} are under way, and the rest of the text as it is.
   */
  soFar(text: string, end: number): Block[] {
    return this.#kept.concat(plainBlocks(text, this.#cut, end));
  }

  /**
   * Reads a portion; true when links of kept blocks need its definitions, and all is to be read
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

  /** Takes up definitions; true when kept links need them. */
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
    const { tree } = atOnce(parsedInSteps(source));
    this.#head = near ? opening(tree, source, line - shift) : "";
    this.#cut = near ? line : before;
  }
}

/** Characters read at once; more where a block is longer. */
const PORTION = 65_536;
/** And at first, so that something is there to be drawn. */
const FIRST_PORTION = 8192;
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

/**
 * A stretch of text that was not parsed, in paragraphs of about {@link LONGEST_BLOCK} characters.
 */
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

/** Gives each block its place, from its first leaf to the next block's. */
function placed(branches: readonly Branch[], from: number): Block[] {
  let at = from;
  return branches.map((branch) => {
    const begin = at;
    at = endOf(branch) ?? at;
    return { branch, from: begin, to: at };
  });
}

/** Where the last leaf of a branch ends. */
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

/** The lines before `at` that opened the blocks which are open there. */
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
    // A table is one by its second line.
    if (name === "Table") lines.add(lineEnd(source, line));
  }
  return [...lines]
    .filter((line) => line < at)
    .map((line) => source.slice(line, lineEnd(source, line)))
    .join("");
}

const OPENED = new Set(["Blockquote", "ListItem", "FencedCode", "Table"]);

/** The beginning of the line around a position. */
function lineAt(source: string, position: number): number {
  return position === 0 ? 0 : source.lastIndexOf("\n", position - 1) + 1;
}

function lineEnd(source: string, line: number): number {
  const end = source.indexOf("\n", line);
  return end < 0 ? source.length : end + 1;
}
