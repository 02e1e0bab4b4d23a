/** What the check of a reply has found, in words. */
import type { ReplyCheck } from "../bindings/ReplyCheck";
import type { TextDifference } from "../bindings/TextDifference";

type TextCheck = Extract<ReplyCheck, { kind: "text" }>;
type DistributionCheck = Extract<ReplyCheck, { kind: "distribution" }>;

/** "SmolLM2 135M Instruct" of "SmolLM2 135M Instruct · Q4_1". */
export function shortName(label: string | null): string {
  return label?.split(" · ")[0]?.trim() || "the target";
}

export function identicalWords({ tokens, seed }: TextCheck, target: string | null): string {
  const how = seed === null ? "always the likeliest token" : `seed ${seed}`;
  const count = tokens === 1 ? "the one token is" : `all ${tokens.toLocaleString("en")} tokens are`;
  return `Identical: ${count} what ${shortName(target)} writes without drafts (${how}).`;
}

export function differenceWords({ position }: TextDifference): string {
  return `It differs from token ${(position + 1).toLocaleString("en")} on.`;
}

/** Whose fault a difference is. */
export function causeWords({ near_tie, gap }: TextDifference): string {
  if (!near_tie) return "This is a bug in Foretoken: please report it.";
  const tie = gap === 0 ? "An exact tie" : "A near tie";
  return `${tie}: rounding decided between two tokens that the target likes as well as each other.`;
}

/** What was compared where texts cannot be, and why they cannot. */
export function distributionWords(check: DistributionCheck, target: string | null): string {
  const { judged, different, largest_difference } = check;
  const name = shortName(target);
  const why =
    "Sampling in the fastest mode draws another text each time, so the text itself cannot be compared.";
  if (judged === 0) return `No drafted token was judged, so there is nothing to compare. ${why}`;
  const asked =
    judged === 1
      ? `the probability by which the one drafted token was judged`
      : `the ${judged.toLocaleString("en")} probabilities by which drafted tokens were judged`;
  const found =
    different === 0
      ? `and they are the same${largest_difference > 0 ? ` (largest difference ${brief(largest_difference)})` : " to the last bit"}`
      : `and ${different.toLocaleString("en")} ${different === 1 ? "differs" : "differ"}, by ${brief(largest_difference)} at most`;
  return `${name} gave ${asked} again, without drafts, ${found}. ${why}`;
}

/** "0.0031", "2.4e-7": two digits that matter. */
export function brief(value: number): string {
  if (value === 0 || value >= 1e-5) return String(Number(value.toPrecision(2)));
  return value.toExponential(1);
}

/** Logits with digits enough to tell them apart. */
export function logitWords(value: number, gap: number | null): string {
  const size = Math.abs(gap ?? 1);
  const digits = size > 0 ? Math.ceil(-Math.log10(size)) + 1 : 2;
  return value.toFixed(Math.max(2, Math.min(6, digits)));
}
