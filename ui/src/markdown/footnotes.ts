/** GitHub's footnotes: `[^1]` in a text, `[^1]: note` at the beginning of a line. */
import type { BlockContext, LeafBlock, LeafBlockParser, MarkdownConfig } from "@lezer/markdown";

const NOTE = /^\[\^[^\s\][]{1,100}\]:/;

class NoteParser implements LeafBlockParser {
  nextLine(): boolean {
    return false;
  }

  finish(cx: BlockContext, leaf: LeafBlock): boolean {
    const { start, content } = leaf;
    const mark = NOTE.exec(content)?.[0].length ?? 0;
    const text = cx.parser.parseInline(content.slice(mark), start + mark);
    const inside = [cx.elt("FootnoteMark", start, start + mark), ...text];
    cx.addLeafElement(leaf, cx.elt("Footnote", start, start + content.length, inside));
    return true;
  }
}

export const footnotes: MarkdownConfig = {
  defineNodes: [{ name: "Footnote", block: true }, "FootnoteMark"],
  parseBlock: [
    {
      name: "Footnote",
      before: "LinkReference",
      leaf: (_, leaf) => (NOTE.test(leaf.content) ? new NoteParser() : null),
      endLeaf: (_, line) => NOTE.test(line.text.slice(line.pos)),
    },
  ],
};
