/** A round's draft as a list of its tokens with the chances expected of them. */
import type { Outcome } from "../bindings/Outcome";
import type { Round } from "../bindings/Round";
import { outcomeWords, tokenName } from "./describe";
import { emitted } from "./round";
import { depthsOf } from "./tree";
import { t } from "../messages/say";
import { count, decimal, percent } from "../messages/numbers";

/** A draft token before its verification, and its outcome. */
export interface Prospect {
  slot: number;
  /** Position in the draft, from 1. */
  position: number;
  text: string;
  outcome: Outcome;
  /** Expected chance that this token and all before it are accepted; null if unknown. */
  survival: number | null;
}

/** Tokens of a round's draft, in its order. */
export function prospectsOf(round: Round): Prospect[] {
  const depths = depthsOf(round);
  return round.drafted.map(({ text, outcome, survival }, slot) => ({
    slot,
    position: (depths[slot] ?? 0) + 1,
    text,
    outcome,
    survival: survival ?? null,
  }));
}

/**
 * Price of verifying one more token, in tokens; null if it is unknown, or if time was not
 * considered, as with a length set by hand.
 */
export function rowPriceOf({ row_price }: Round): number | null {
  return row_price != null && row_price > 0 ? row_price : null;
}

/** A draft token in a sentence: "lantern: position 2, 62% expected, accepted". */
export function prospectWords({ text, position, survival, outcome }: Prospect): string {
  const given = { token: tokenName(text), position: count(position) };
  const words = outcomeWords(outcome);
  if (survival === null) return t("inspector.draftTokenUnknown", { ...given, outcome: words });
  return t("inspector.draftToken", { ...given, percent: percent(survival), outcome: words });
}

/** Expected and written tokens of a round, and the price of a row, in sentences. */
export function roundWords(round: Round): string {
  const price = rowPriceOf(round);
  const sentences = [
    round.expected == null
      ? ""
      : t("inspector.roundExpected", {
          expected: decimal(round.expected, 1),
          written: count(emitted(round)),
        }),
    price === null ? "" : t("inspector.rowPriceMeaning", { price: decimal(price, 2) }),
  ];
  return sentences.filter((sentence) => sentence !== "").join(" ");
}
