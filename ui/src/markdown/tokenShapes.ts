/**
 * Token view of a block: its structure with a chip for each token. A token across several leaves
 * has a piece in each. Draft tokens that were not emitted are in folds at their place, which take
 * no room until unfolded (reply.css).
 */
import {
  draftPieces,
  emittedPieces,
  isEmitted,
  keepsSpace,
  type Chip,
  type ChipKind,
  type Piece,
} from "../trace/chips";
import { codeHead } from "./codeHead";
import { frame } from "./frame";
import { isLeaf, type Branch, type Leaf, type LeafKind, type Node } from "./nodes";
import type { Block } from "./section";
import { element, type ElementShape, type Shape } from "./shapes";

/** Options for drawing a block. */
export interface TokenLook {
  /** Shapes after the end of the text. */
  tail?: readonly Shape[];
  /** Whether long lines of code wrap. */
  wraps?: boolean;
}

/**
 * Shape of a block with `chips` in the order of the text. Chips without text come before the next
 * character; after the last character only in the `last` block, before the `tail`. Null for a block
 * without chips.
 */
export function tokenShape(
  block: Block,
  chips: readonly Chip[],
  last: boolean,
  { tail = [], wraps = false }: TokenLook = {},
): ElementShape | null {
  const walk = new Walk(chips, firstIn(chips, block.from), tail, wraps);
  return walk.branch(block.branch, last);
}

/** Shapes of consecutive chips without structure. */
export function tokenLine(chips: readonly Chip[]): ElementShape[] {
  return new Line().all(chips);
}

/** Shapes after a growing text: the cursor, and the draft being verified. */
export function tailShapes(draft: string): Shape[] {
  const hidden = { "aria-hidden": "true" };
  const cursor = { ...element("span", "cursor", [], hidden), key: "cursor" };
  if (draft === "") return [cursor];
  const attributes = { ...hidden, dir: "auto", "data-testid": "ghost" };
  return [cursor, { ...element("span", "ghost", [draft], attributes), key: "ghost" }];
}

/** Index of the first chip that ends after a place, or is empty and not before it. */
export function firstIn(chips: readonly Chip[], place: number): number {
  let [low, high] = [0, chips.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    const chip = chips[middle];
    if (chip && (chip.to > place || (chip.from === chip.to && chip.from >= place))) high = middle;
    else low = middle + 1;
  }
  return low;
}

class Walk {
  readonly #chips: readonly Chip[];
  readonly #tail: readonly Shape[];
  readonly #wraps: boolean;
  readonly #line = new Line();
  #at: number;

  constructor(chips: readonly Chip[], at: number, tail: readonly Shape[], wraps: boolean) {
    this.#chips = chips;
    this.#at = at;
    this.#tail = tail;
    this.#wraps = wraps;
  }

  /** Shape of a branch; with `last`, chips after the text go to the end of its last host. */
  branch(branch: Branch, last: boolean): ElementShape | null {
    const shapes: Shape[] = [];
    const end = branch.children.length - 1;
    branch.children.forEach((node, at) => shapes.push(...this.#node(node, last && at === end)));
    const isHost = branch.children.every(isInline);
    if (last && isHost && !INSIDE.has(branch.tag)) shapes.push(...this.#rest());
    const isCell = branch.tag === "td" || branch.tag === "th";
    return shapes.length > 0 || isCell ? drawn(branch, shapes, this.#wraps) : null;
  }

  #node(node: Node, last: boolean): Shape[] {
    if (isLeaf(node)) return this.#leaf(node);
    const shape = this.branch(node, last);
    return shape ? [shape] : [];
  }

  #leaf({ from, to, kind, shown }: Leaf): Shape[] {
    const line = this.#line;
    let place = from;
    while (place < to) {
      const chip = this.#chips[this.#at];
      if (!chip || chip.from >= to) break;
      if (chip.from === chip.to) {
        line.add(chip, chip.text, true, kind);
      } else if (chip.to > place) {
        const begin = Math.max(place, chip.from);
        const end = Math.min(to, chip.to);
        const text = chip.text.slice(begin - chip.from, end - chip.from);
        const instead = place === from ? shown : shown && "";
        line.add(chip, text, begin === chip.from, kind, instead);
        place = end;
        if (chip.to > to) break;
      }
      this.#at += 1;
    }
    return line.take();
  }

  /** Shapes of the chips after the end of the text. */
  #rest(): Shape[] {
    const shapes = this.#line.all(this.#chips.slice(this.#at));
    this.#at = this.#chips.length;
    return [...shapes, ...this.#tail];
  }
}

/** Builds a row of chips, with those that were not emitted in folds. */
class Line {
  #shapes: ElementShape[] = [];
  #folded: Chip[] = [];
  /** Kind of the last emitted token; neighbours of one kind share an underline. */
  #before: ChipKind | null = null;

  add(chip: Chip, text: string, first: boolean, kind: LeafKind, shown?: string) {
    if (!isEmitted(chip.kind)) {
      this.#folded.push(chip);
      return;
    }
    this.#fold();
    const parted = this.#before !== null && this.#before !== chip.kind;
    this.#shapes.push(chipShape(chip, { text, first, kind, parted, shown }));
    this.#before = chip.kind;
  }

  all(chips: readonly Chip[]): ElementShape[] {
    for (const chip of chips) this.add(chip, chip.text, true, "text");
    return this.take();
  }

  /** Returns and clears the shapes added since the last call. */
  take(): ElementShape[] {
    this.#fold();
    const shapes = this.#shapes;
    this.#shapes = [];
    return shapes;
  }

  #fold() {
    if (this.#folded.length === 0) return;
    this.#shapes.push(foldShape(this.#folded));
    this.#folded = [];
  }
}

const foldedBefore = new WeakMap<Chip, { size: number; shape: ElementShape }>();

/** A fold of draft tokens that were not emitted, with a mark if any was rejected. */
function foldShape(chips: readonly Chip[]): ElementShape {
  const [first] = chips;
  const before = first && foldedBefore.get(first);
  if (before?.size === chips.length) return before.shape;
  const names = ["fold"];
  if (chips.some(({ kind }) => kind === "rejected")) names.push("wrong");
  const drafts = chips.map((chip) =>
    chipShape(chip, { text: chip.text, first: true, kind: "text" }),
  );
  const inner = element("span", "drafts", drafts);
  const shape = {
    ...element("span", names.join(" "), [inner], { "aria-hidden": "true" }),
    key: `${first?.round}.${first?.slot}.fold`,
  };
  if (first) foldedBefore.set(first, { size: chips.length, shape });
  return shape;
}

const INSIDE = new Set<Branch["tag"]>(["strong", "em", "del", "code", "a", "sup", "formula"]);

function isInline(node: Node): boolean {
  return isLeaf(node) || INSIDE.has(node.tag) || node.tag === "display-formula";
}

function drawn(branch: Branch, children: readonly Shape[], wraps: boolean): ElementShape | null {
  switch (branch.tag) {
    case "a":
      return element("span", "link", children);
    case "code":
      return element("code", undefined, children, { dir: "ltr" });
    case "formula":
      return element("code", "formula", children, { dir: "ltr" });
    case "display-formula":
      return element("div", "formula display", children, { dir: "ltr" });
    case "code-block":
      return element("div", "code", [
        codeHead(branch, wraps),
        element("pre", undefined, inLines(children), { dir: "ltr" }),
      ]);
    case "hr":
      return element("p", "rule", children);
    case "marks":
      return element("p", "marks", children);
    case "thead":
      return frame(branch, children.map(inRow));
    case "tr":
      return children.some(isFilled) ? frame(branch, children) : null;
    default:
      return frame(branch, children);
  }
}

/** Rounds per group of code lines that are laid out together. */
const ROUNDS_LAID_OUT = 8;

/**
 * Divides code into groups of lines, so that a frame lays out only the last one. The ends of groups
 * depend only on their own chips, so that they stay the same when the beginning is dropped.
 */
function inLines(chips: readonly Shape[]): Shape[] {
  const stretches: Shape[] = [];
  let lines: Shape[] = [];
  let before: number | null = null;
  for (const chip of chips) {
    lines.push(chip);
    const round = endOfLine(chip);
    if (round === null) continue;
    const part = Math.floor(round / ROUNDS_LAID_OUT);
    if (before !== null && part !== before) {
      stretches.push({ ...element("div", undefined, lines), key: `to ${round}` });
      lines = [];
    }
    before = part;
  }
  if (lines.length > 0) stretches.push({ ...element("div", undefined, lines), key: "open" });
  return stretches;
}

/** Round of a chip that ends a line; null for others. */
function endOfLine(chip: Shape): number | null {
  if (typeof chip === "string") return null;
  const last = chip.children.at(-1);
  const ends = typeof last === "string" && last.endsWith("\n");
  return ends ? Number(chip.attributes?.["data-round"]) : null;
}

/** Wraps the line below a table's head in its own row. */
function inRow(shape: Shape): Shape {
  if (typeof shape === "string" || shape.class !== "marks") return shape;
  const cell = element("td", undefined, shape.children, { colspan: "1000" });
  return element("tr", "marks", [cell]);
}

function isFilled(shape: Shape): boolean {
  return typeof shape !== "string" && shape.children.length > 0;
}

/** A part of a token to draw. */
interface Stretch {
  text: string;
  /** Whether the part is the token's first, which represents it. */
  first: boolean;
  kind: LeafKind;
  /** Whether the emitted token before has another outcome. */
  parted?: boolean;
  /** Text shown instead of the source, if it differs. */
  shown?: string | undefined;
}

/** Cached shapes of whole tokens: most stay the same in the next frame. */
const drawnBefore = new WeakMap<Chip, { kind: LeafKind; parted: boolean; shape: ElementShape }>();

function chipShape(chip: Chip, stretch: Stretch): ElementShape {
  const { text, kind, parted = false, shown } = stretch;
  if (text.length < chip.text.length || shown !== undefined) return pieceShape(chip, stretch);
  const before = drawnBefore.get(chip);
  if (before?.kind === kind && before.parted === parted) return before.shape;
  const shape = pieceShape(chip, stretch);
  drawnBefore.set(chip, { kind, parted, shape });
  return shape;
}

function pieceShape(chip: Chip, stretch: Stretch): ElementShape {
  const { text, first, kind, shown } = stretch;
  const emitted = isEmitted(chip.kind);
  const pieces = emitted ? emittedPieces(text, kind === "gap") : draftPieces(text);
  const parted = emitted && stretch.parted === true && /^ \S+$/u.test(text) && pieces.length === 1;
  const names = ["chip", chip.kind];
  if (emitted && kind !== "text") names.push("syntax");
  if (emitted && keepsSpace(text)) names.push("pre");
  if (pieces.every(({ look }) => look === "hidden")) names.push("empty");
  if (parted) names.push("parted");
  const attributes: Record<string, string> = {
    "data-outcome": chip.kind,
    "data-round": String(chip.round),
    "data-slot": String(chip.slot),
  };
  if (first) attributes["data-testid"] = "token-chip";
  // The element's text differs from the token's: a part of it, or with marks.
  const differs =
    text.length < chip.text.length ||
    shown !== undefined ||
    pieces.some(({ look }) => look === "mark");
  if (first && emitted && differs) attributes["data-text"] = chip.text;
  // Its own direction prevents a rejected token from changing that of the line.
  if (!emitted) attributes["dir"] = "auto";
  const inside = parted ? [" ", element("span", "word", [text.slice(1)])] : pieces.map(inChip);
  const children = shown === undefined ? inside : [element("span", "raw", inside), ...as(shown)];
  const key = `${chip.round}.${chip.slot}.${first}`;
  return { ...element("span", names.join(" "), children, attributes), key };
}

function inChip({ text, look }: Piece): Shape {
  if (look === "text") return text;
  if (look === "hidden") return element("span", "unseen", [text]);
  return element("span", "mark", [text], { "aria-hidden": "true" });
}

/** Shape of text shown instead of the source. */
function as(shown: string): Shape[] {
  return shown === "" ? [] : [element("span", "shown", [shown], { "aria-hidden": "true" })];
}
