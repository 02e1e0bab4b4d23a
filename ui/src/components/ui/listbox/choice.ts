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

/** What the line that hides those that cannot be chosen says of one and of several. */
export type Words = readonly [one: string, several: string];

export const DO_NOT_FIT: Words = ["does not fit", "do not fit"];
export const CANNOT_BE_USED: Words = ["cannot be used", "cannot be used"];

/** "1 does not fit", "5 do not fit". */
export function counted(count: number, [one, several]: Words): string {
  return `${count} ${count === 1 ? one : several}`;
}
