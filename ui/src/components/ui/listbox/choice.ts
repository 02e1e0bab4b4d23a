/** What a list to choose from is made of, and the words for what in it cannot be chosen. */

/** An entry of a list to choose from. */
export interface Choice {
  id: string;
  label: string;
  detail: string;
  /** What speaks for it, in a word or two. */
  merit?: string | null;
  /** Why it cannot be chosen, in a few words and in full; null when it can. */
  problem: { short: string; reason: string } | null;
}

/** What the line that hides those that cannot be chosen says of them: a message that counts them. */
export type Unusable = "choice.doNotFit" | "choice.cannotBeUsed";
