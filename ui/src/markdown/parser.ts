/**
 * The Markdown parser: CommonMark with GitHub's tables, task lists, strikethrough, addresses and footnotes, and
 * LaTeX. Its tree has the exact place of every mark in the text. Tags are not HTML here, but text.
 */
import type { Tree } from "@lezer/common";
import { GFM, parser as commonmark, type MarkdownParser } from "@lezer/markdown";
import { footnotes } from "./footnotes";
import { math } from "./math";

/**
 * A paragraph is parsed in pieces of so many characters: what a broken model may write, thousands of
 * open brackets, would take time that grows with their square.
 */
const PIECE = 8192;
/** Longer runs of spaces mean nothing in Markdown and take the parser as long. */
const LONGEST_BLANK = /[ \t]{500,}/g;

/** A line that begins with more marks of quotes and lists than can be laid out: the rest of it is text. */
const DEEP_LINE = /^((?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){100})(.*)/gm;

/** What stands behind so many characters read at once is text: no reply is as long, and more would hold up the page. */
const LONGEST = 1_000_000;

const parser = inPieces(commonmark.configure([GFM, math, footnotes, { remove: ["HTMLBlock"] }]));

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
  const read = text.slice(0, LONGEST) + dots(text.slice(LONGEST));
  const shallow = read.replace(DEEP_LINE, (_, marks: string, rest: string) => marks + dots(rest));
  return parser.parse(shallow.replace(LONGEST_BLANK, dots));
}

/** What means nothing, in the place of a stretch. */
function dots(stretch: string): string {
  return ".".repeat(stretch.length);
}
