/**
 * The Markdown parser: CommonMark with GitHub's tables, task lists, strikethrough and addresses, and
 * LaTeX. Its tree has the exact place of every mark in the text. Tags are not HTML here, but text.
 */
import type { Tree } from "@lezer/common";
import { GFM, parser as commonmark, type MarkdownParser } from "@lezer/markdown";
import { math } from "./math";

/**
 * A paragraph is parsed in pieces of so many characters: what a broken model may write, thousands of
 * open brackets, would take time that grows with their square.
 */
const PIECE = 8192;
/** Longer runs of spaces mean nothing in Markdown and take the parser as long. */
const LONGEST_BLANK = /[ \t]{500,}/g;

const parser = inPieces(commonmark.configure([GFM, math, { remove: ["HTMLBlock"] }]));

function inPieces(whole: MarkdownParser): MarkdownParser {
  const parsePiece = whole.parseInline.bind(whole);
  whole.parseInline = (text, offset) => {
    const elements = [];
    for (let at = 0; at < text.length;) {
      const end = pieceEnd(text, at);
      elements.push(...parsePiece(text.slice(at, end), offset + at));
      at = end;
    }
    return elements;
  };
  return whole;
}

/** The end of a piece: between words if it can be. */
function pieceEnd(text: string, at: number): number {
  if (text.length - at <= PIECE) return text.length;
  const space = text.lastIndexOf(" ", at + PIECE);
  return space > at + PIECE / 2 ? space : at + PIECE;
}

export function parseMarkdown(text: string): Tree {
  return parser.parse(text.replace(LONGEST_BLANK, (run) => ".".repeat(run.length)));
}
