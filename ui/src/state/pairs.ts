/** Which draft suits which target, before anything is measured: by their sizes. */

/** A draft does best at about this share of its target's parameters. */
const RULE_OF_THUMB = 0.1;

interface Sized {
  parameters: number;
}

/** The draft whose size is nearest to a tenth of the target's; undefined when there is none. */
export function draftFor<Draft extends Sized>(
  target: Sized,
  drafts: readonly Draft[],
): Draft | undefined {
  const distance = (draft: Draft) =>
    Math.abs(Math.log(draft.parameters / (target.parameters * RULE_OF_THUMB)));
  return drafts.toSorted((a, b) => distance(a) - distance(b))[0];
}

/** What the sizes alone let expect of a draft. */
export function sizeHint(target: Sized, draft: Sized): string {
  if (target.parameters === 0 || draft.parameters === 0) return "size unknown";
  const share = draft.parameters / target.parameters;
  if (share > 0.75) return "as large as the target model: too large to gain from drafting";
  const words = share < 0.01 ? "less than 1 %" : `${Math.round(share * 100)} %`;
  const size = `${words} of the target model's size`;
  if (share > 0.35) return `${size}: probably too large to be faster`;
  if (share < 0.02) return `${size}: fast, but it may guess badly`;
  return share <= 0.2 ? `${size}: about right` : `${size}: rather large`;
}
