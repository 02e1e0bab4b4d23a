/**
 * All tokens of a trace in reading order, with outcome and place in the text, for the token view. A
 * rejected token is followed by its replacement; the extra token also follows the discarded ones.
 */
import type { ExtraKind } from "../bindings/ExtraKind";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import { tokenAt, type TokenRef } from "./round";
import { readingOrder } from "./tree";

export type ChipKind = Outcome | ExtraKind;

export interface Chip extends TokenRef {
  kind: ChipKind;
  text: string;
  /**
   * Range of the token in the reply's text, in UTF-16 units. Empty for a token that was not
   * emitted, at the place of its replacement.
   */
  from: number;
  to: number;
}

/** Whether a token is part of the reply's text; rejected and discarded ones are not. */
export function isEmitted(kind: ChipKind): boolean {
  return kind !== "rejected" && kind !== "discarded";
}

/**
 * Chips of `rounds`. `firstRound` is the index of the first of them in the whole trace, `offset`
 * the length of the text before it.
 */
export function chipsOf(rounds: readonly Round[], firstRound = 0, offset = 0): Chip[] {
  const chips: Chip[] = [];
  let from = offset;
  rounds.forEach((round, index) => {
    for (const slot of readingOrder(round)) {
      const token = tokenAt(round, slot);
      if (!token) continue;
      const { kind, text } =
        "extra" in token ? token.extra : { kind: token.drafted.outcome, text: token.drafted.text };
      const to = isEmitted(kind) ? from + text.length : from;
      chips.push({ round: firstRound + index, slot, kind, text, from, to });
      from = to;
    }
  });
  return chips;
}

/** Number of a round's tokens, of any outcome. */
export function chipCount({ drafted, extra }: Round): number {
  return drafted.length + (extra ? 1 : 0);
}

/** A part of a chip and its appearance. */
export interface Piece {
  text: string;
  /**
   * "mark": a faint sign for an invisible character, no part of the text. "hidden": text without
   * width.
   */
  look: "text" | "mark" | "hidden";
}

/** Splits a text into line breaks, control characters except tabs, and other text. */
// eslint-disable-next-line no-control-regex -- these are looked for
const PARTS = /\n+|[\0-\x08\x0b-\x1f\x7f]+|[^\0-\x08\x0a-\x1f\x7f]+/g;
/** Invisible characters that only format others. */
const UNSEEN = /^\p{Cf}+$/u;

/**
 * Pieces of an emitted token. A line break is kept behind a faint return mark, except `between`
 * blocks.
 */
export function emittedPieces(text: string, between: boolean): Piece[] {
  if (UNSEEN.test(text)) return [mark(codesOf(text)), { text, look: "text" }];
  const shown = between ? "hidden" : "text";
  return (text.match(PARTS) ?? []).flatMap((part): Piece[] => {
    if (part.startsWith("\n")) return [mark(picture(part)), { text: part, look: shown }];
    if (picture(part) !== part) return [mark(picture(part)), { text: part, look: "hidden" }];
    return [{ text: part, look: between && part.trim() === "" ? "hidden" : "text" }];
  });
}

/** Pieces of a token that was not emitted: its white space must not change the layout. */
export function draftPieces(text: string): Piece[] {
  const shown = text.trim();
  if (UNSEEN.test(shown)) return [mark(codesOf(shown))];
  if (shown !== "") return [{ text: picture(shown), look: "text" }];
  return [mark(visibleBlank(text) || "∅")];
}

function mark(text: string): Piece {
  return { text, look: "mark" };
}

function codesOf(text: string): string {
  const codes = Array.from(text, (one) => one.codePointAt(0)?.toString(16).padStart(4, "0") ?? "");
  return codes.map((code) => `U+${code.toUpperCase()}`).join(" ");
}

/** A text with signs for line breaks and control characters, except tabs. */
export function picture(text: string): string {
  // eslint-disable-next-line no-control-regex -- these are looked for
  return text.replace(/[\0-\x08\x0a-\x1f\x7f]/g, (one) => {
    const code = one.charCodeAt(0);
    if (one === "\n") return "↵";
    return code === 0x7f ? "␡" : String.fromCharCode(0x2400 + code);
  });
}

/** A text with signs for all white space. */
export function visibleBlank(text: string): string {
  return picture(text).replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

/**
 * Whether white space must be preserved. A single leading space must not: if the line breaks before
 * the token, the space vanishes instead of leaving a coloured stub.
 */
export function keepsSpace(text: string): boolean {
  return !/^ ?\S+$/u.test(text);
}
