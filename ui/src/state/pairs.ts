/** Suitable drafts for targets by their sizes, before any measurement. */
import { t } from "../messages/say";
import { percent } from "../messages/numbers";

/** Best ratio of a draft's parameters to its target's. */
const RULE_OF_THUMB = 0.1;

interface Sized {
  parameters: number;
}

/** The draft whose size is nearest to a tenth of the target's; undefined without drafts. */
export function draftFor<Draft extends Sized>(
  target: Sized,
  drafts: readonly Draft[],
): Draft | undefined {
  const distance = (draft: Draft) =>
    Math.abs(Math.log(draft.parameters / (target.parameters * RULE_OF_THUMB)));
  return drafts.toSorted((a, b) => distance(a) - distance(b))[0];
}

/** The expectation of a draft from the sizes alone, in words. */
export function sizeHint(target: Sized, draft: Sized): string {
  if (target.parameters === 0 || draft.parameters === 0) return t("advisor.sizeUnknown");
  const share = draft.parameters / target.parameters;
  if (share > 0.75) return t("advisor.asLarge");
  const words =
    share < 0.01 ? t("advisor.lessThanOne", { percent: percent(0.01) }) : percent(share);
  if (share > 0.35) return t("advisor.tooLarge", { share: words });
  if (share < 0.02) return t("advisor.tiny", { share: words });
  return t(share <= 0.2 ? "advisor.right" : "advisor.large", { share: words });
}
