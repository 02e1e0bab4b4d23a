/**
 * The token view's fold: every token of a trace, in reading order, with its outcome. What a
 * rejected token was replaced by follows it; the extra token follows the discarded ones too.
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
}

/** Part of the reply's text, unlike rejected and discarded tokens. */
export function isEmitted(kind: ChipKind): boolean {
  return kind !== "rejected" && kind !== "discarded";
}

/** `firstRound` is the place of `rounds[0]` in the whole trace. */
export function chipsOf(rounds: readonly Round[], firstRound = 0): Chip[] {
  const chips: Chip[] = [];
  rounds.forEach((round, offset) => {
    const place = firstRound + offset;
    for (const slot of readingOrder(round)) {
      const token = tokenAt(round, slot);
      if (!token) continue;
      const { kind, text } =
        "extra" in token ? token.extra : { kind: token.drafted.outcome, text: token.drafted.text };
      chips.push({ round: place, slot, kind, text });
    }
  });
  return chips;
}

/** A piece of a chip: text to show as it stands, or a mark for what cannot be seen. */
export interface Piece {
  text: string;
  /** A mark is drawn faint and is not part of the text. */
  mark: boolean;
}

const RETURN_MARK = "↵";

/**
 * What a chip shows. An emitted newline stays and breaks the line behind a faint return mark; a
 * token that was not emitted must not disturb the text, so its white space becomes marks.
 */
export function pieces(chip: Chip): Piece[] {
  if (!isEmitted(chip.kind)) {
    const shown = chip.text.trim();
    if (shown !== "") return [{ text: shown.replaceAll("\n", RETURN_MARK), mark: false }];
    const marks = chip.text.replaceAll("\n", RETURN_MARK).replaceAll("\t", "⇥");
    return [{ text: marks.replaceAll(" ", "␣") || "∅", mark: true }];
  }
  return chip.text
    .split(/(\n+)/)
    .filter((part) => part !== "")
    .flatMap((part) => {
      const shown = { text: part, mark: false };
      if (!part.startsWith("\n")) return [shown];
      return [{ text: RETURN_MARK.repeat(part.length), mark: true }, shown];
    });
}

/**
 * Whether white space must be kept as it stands. A single leading space need not be: where the
 * line breaks before the token it then vanishes instead of leaving a stub of colour behind.
 */
export function keepsSpace(text: string): boolean {
  return !/^ ?\S+$/u.test(text);
}
