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
  const how = seed === null ? "temperature 0" : `seed ${seed}`;
  const count = tokens === 1 ? "token" : `${tokens.toLocaleString("en")} tokens`;
  return `Identical: without drafts ${shortName(target)} writes the same ${count} (${how}).`;
}

export function differenceWords({ position }: TextDifference): string {
  return `The texts diverge at token ${(position + 1).toLocaleString("en")}.`;
}

/** Whose fault a difference is. */
export function causeWords({ near_tie, gap }: TextDifference): string {
  if (!near_tie) return "This is a bug in Foretoken: please report it.";
  const tie = gap === 0 ? "Exact tie: two tokens were" : "Near tie: two tokens were almost";
  return `${tie} equally likely, and rounding decided. This is not an error.`;
}

/** What was compared where texts cannot be, and why they cannot. */
export function distributionWords(check: DistributionCheck, target: string | null): string {
  const { judged, different, largest_difference } = check;
  const name = shortName(target);
  const why =
    "In the fastest sampling mode every run writes another text, so the texts themselves cannot be compared.";
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
