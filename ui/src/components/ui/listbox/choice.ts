/** Choices of a list, and the message for those that cannot be chosen. */

/** A choice of a list. */
export interface Choice {
  id: string;
  label: string;
  detail: string;
  /** Advantage of the choice, in a word or two. */
  merit?: string | null;
  /** Why the choice cannot be used, in a few words and in full; null if it can. */
  problem: { short: string; reason: string } | null;
}

/** Message of the line that folds unusable choices, with their number. */
export type Unusable = "choice.doNotFit" | "choice.cannotBeUsed";
