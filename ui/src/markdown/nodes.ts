/**
 * Structure of a Markdown text: branches with leaves, which are ranges of the text. The leaves in
 * order cover the whole text, including marks and line breaks, so that a view can place anything by
 * its offset. Independent of the appearance.
 */

/** The kind of a leaf's characters. */
export type LeafKind =
  /** Visible text. */
  | "text"
  /** Markdown's marks: `**`, `#`, fences, pipes, bullets, an address. */
  | "syntax"
  /** White space and line breaks between blocks. */
  | "gap";

export interface Leaf {
  kind: LeafKind;
  from: number;
  to: number;
  /** Text shown instead of the source, where it differs: for `&amp;`, `&`. */
  shown?: string;
}

export type Tag =
  | "blockquote"
  | "ul"
  | "ol"
  | "li"
  | "p"
  | "h1"
  | "h2"
  | "h3"
  | "h4"
  | "h5"
  | "h6"
  | "hr"
  | "table"
  | "thead"
  | "tbody"
  | "tr"
  | "th"
  | "td"
  | "strong"
  | "em"
  | "del"
  | "code"
  /** The number of a footnote. */
  | "sup"
  | "a"
  /** A block of code. */
  | "code-block"
  | "formula"
  | "display-formula"
  /** Marks on a line of their own: the line below a table's head, a link's address. */
  | "marks";

export interface Branch {
  tag: Tag;
  children: Node[];
  /** Address of a link; null if it was refused. */
  address?: string | null;
  /** Number of an ordered list's first item. */
  start?: number;
  /** Whether a list has blank lines between its items. */
  loose?: boolean;
  align?: Align;
  /** Whether a block or a list item continues one that was split. */
  continued?: boolean;
  /** Whether a paragraph has a checkbox. */
  task?: boolean;
  /** Language of a code block. */
  language?: string;
}

export type Node = Leaf | Branch;
export type Align = "left" | "center" | "right";

export function isLeaf(node: Node): node is Leaf {
  return "kind" in node;
}

/** Elements that a code block is drawn with: a head, two buttons and a scroller. */
const CODE_ELEMENTS = 10;

/** Number of elements of one branch without the branches in it, as a measure of its layout. */
export function ownElements(tag: Tag): number {
  return tag === "code-block" ? CODE_ELEMENTS : 1;
}

/** Number of elements of a branch and all branches in it. */
export function elementsOf({ tag, children }: Branch): number {
  let count = ownElements(tag);
  for (const child of children) if (!isLeaf(child)) count += elementsOf(child);
  return count;
}

/** The leaves below some nodes, in the order of the text. */
export function* leavesOf(nodes: readonly Node[]): Generator<Leaf> {
  for (const node of nodes) {
    if (isLeaf(node)) yield node;
    else yield* leavesOf(node.children);
  }
}
