/**
 * The token view's fold: every token of a trace, in reading order, with its outcome and its place in
 * the text. What a rejected token was replaced by follows it; the extra token follows the discarded
 * ones too.
 */
import type { ExtraKind } from "../bindings/ExtraKind";
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import { tokenAt, type Place } from "./round";
import { readingOrder } from "./tree";

export type ChipKind = Outcome | ExtraKind;

export interface Chip extends Place {
  kind: ChipKind;
  text: string;
  /**
   * The range of the reply's text that the token is, in UTF-16 units. Empty for one that was not
   * emitted, at the place of what stands there instead.
   */
  from: number;
  to: number;
}

/** Part of the reply's text, unlike rejected and discarded tokens. */
export function isEmitted(kind: ChipKind): boolean {
  return kind !== "rejected" && kind !== "discarded";
}

/** `firstRound` is the place of `rounds[0]` in the whole trace, `offset` the text before it. */
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

/** Tokens of a round, all outcomes. */
export function chipCount({ drafted, extra }: Round): number {
  return drafted.length + (extra ? 1 : 0);
}

/** A piece of a chip and how it is shown. */
export interface Piece {
  text: string;
  /**
   * "mark": drawn faint for what cannot be seen, and no part of the text. "hidden": part of the text
   * that takes no room.
   */
  look: "text" | "mark" | "hidden";
}

/** Line breaks, control characters but tabs, and what is between them. */
// eslint-disable-next-line no-control-regex -- these are looked for
const PARTS = /\n+|[\0-\x08\x0b-\x1f\x7f]+|[^\0-\x08\x0a-\x1f\x7f]+/g;
/** Characters that only tell others how to be written. */
const UNSEEN = /^\p{Cf}+$/u;

/**
 * How a stretch of an emitted token is shown. A line break in a text stays and breaks the line
 * behind a faint return mark; one `between` blocks has nothing to break.
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

/** How a token that was not emitted is shown: its white space must not disturb the text. */
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

/** A text with line breaks and other control characters, but tabs, as signs. */
export function picture(text: string): string {
  // eslint-disable-next-line no-control-regex -- these are looked for
  return text.replace(/[\0-\x08\x0a-\x1f\x7f]/g, (one) => {
    const code = one.charCodeAt(0);
    if (one === "\n") return "↵";
    return code === 0x7f ? "␡" : String.fromCharCode(0x2400 + code);
  });
}

/** A text with all of its white space in sight. */
export function visibleBlank(text: string): string {
  return picture(text).replaceAll("\t", "⇥").replaceAll(" ", "␣");
}

/**
 * Whether white space must be kept as it stands. A single leading space need not be: where the
 * line breaks before the token it then vanishes instead of leaving a stub of colour behind.
 */
export function keepsSpace(text: string): boolean {
  return !/^ ?\S+$/u.test(text);
}
