/**
 * The structure of a Markdown text: branches, whose leaves are ranges of the text. In their order
 * the leaves are the whole text, marks and line breaks included, so that a view can place whatever
 * it knows by offset. Says nothing about how anything looks.
 */

/** The kind of a leaf's characters. */
export type LeafKind =
  /** Meant to be read. */
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
  /** Marks that have a line to themselves: what is under a table's head, a link's address below. */
  | "marks";

export interface Branch {
  tag: Tag;
  children: Node[];
  /** Links: an address that may be followed; null where it may not. */
  address?: string | null;
  /** Ordered lists: the number of the first item. */
  start?: number;
  /** Lists: blank lines stand between the items. */
  loose?: boolean;
  align?: Align;
  /** The rest of a long block that was cut, and of the list item that the cut is in. */
  continued?: boolean;
  /** A paragraph with a box to tick. */
  task?: boolean;
  /** Blocks of code. */
  language?: string;
}

export type Node = Leaf | Branch;
export type Align = "left" | "center" | "right";

export function isLeaf(node: Node): node is Leaf {
  return "kind" in node;
}

/** The leaves below some nodes, in the order of the text. */
export function* leavesOf(nodes: readonly Node[]): Generator<Leaf> {
  for (const node of nodes) {
    if (isLeaf(node)) yield node;
    else yield* leavesOf(node.children);
  }
}
