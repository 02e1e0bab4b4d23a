/** The result of a reply's check, in words. */
import type { ReplyCheck } from "../bindings/ReplyCheck";
import type { TextDifference } from "../bindings/TextDifference";
import { t } from "../messages/say";
import { count, decimal, scientific } from "../messages/numbers";

type TextCheck = Extract<ReplyCheck, { kind: "text" }>;
type DistributionCheck = Extract<ReplyCheck, { kind: "distribution" }>;

/** "SmolLM2 135M Instruct" from "SmolLM2 135M Instruct · Q4_1". */
export function shortName(label: string | null): string {
  return label?.split(" · ")[0]?.trim() || t("check.theTarget");
}

export function identicalWords({ tokens, seed }: TextCheck, target: string | null): string {
  const how = seed === null ? t("check.temperature0") : t("check.seed", { seed: String(seed) });
  return t("check.identical", { target: shortName(target), tokens, how });
}

export function differenceWords({ position }: TextDifference): string {
  return t("check.diverge", { number: count(position + 1) });
}

/** The cause of a difference: a near tie or a bug. */
export function causeWords({ near_tie, gap }: TextDifference): string {
  if (!near_tie) return t("check.bug");
  return t(gap === 0 ? "check.exactTie" : "check.nearTie");
}

/**
 * The result where distributions are compared instead of texts; if they differ, also why texts
 * cannot be.
 */
export function distributionWords(check: DistributionCheck): string {
  const { judged, different, largest_difference } = check;
  const why = t("check.why");
  if (judged === 0) return `${t("check.nothingJudged")} ${why}`;
  const difference = brief(largest_difference);
  if (different > 0) {
    return `${t("check.differ", { judged: count(judged), different, difference })} ${why}`;
  }
  return largest_difference > 0
    ? t("check.sameAlmost", { judged, difference })
    : t("check.same", { judged });
}

/** "0.0031", "2.4e-7": two significant digits. */
export function brief(value: number): string {
  if (value === 0 || value >= 1e-5) return count(Number(value.toPrecision(2)), 20);
  return scientific(value);
}

/** A logit with enough digits to show `gap`. */
export function logitWords(value: number, gap: number | null): string {
  const size = Math.abs(gap ?? 1);
  const digits = size > 0 ? Math.ceil(-Math.log10(size)) + 1 : 2;
  return decimal(value, Math.max(2, Math.min(6, digits)));
}
