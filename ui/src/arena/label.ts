/** What a set-up is called, before the shell has named it. */
import type { DraftOption } from "../bindings/DraftOption";
import type { DrafterChoice } from "../bindings/DrafterChoice";
import type { Setup } from "../bindings/Setup";
import type { Staged } from "../bindings/Staged";
import type { Threshold } from "../bindings/Threshold";
import type { Tree } from "../bindings/Tree";
import { SIDES, type Pair } from "./pairs";

export const LETTERS: Pair<string> = ["A", "B"];
/** The id of plain decoding among the drafts. */
export const NONE = "none";

/** Whether its replies are decoded without drafts. */
export function isPlain({ draft, speculation: { length } }: Setup): boolean {
  return draft === NONE || (length.type === "fixed" && length.tokens === 0);
}

const ALONE: Record<DrafterChoice, string | null> = {
  combined: null,
  model: "the model alone",
  ngram: "n-grams alone",
  recycling: "recycling alone",
};
const STAGED: Record<Staged, string | null> = { auto: null, off: "not staged", on: "staged" };

/**
 * As the shell will call it: "Starter draft, K auto" and whatever is not as it comes, or "no draft". A
 * draft that is not listed goes by its file's name.
 */
export function labelOf(setup: Setup, drafts: readonly DraftOption[]): string {
  if (isPlain(setup)) return "no draft";
  const { draft, speculation, mode } = setup;
  const { drafter, length, staged } = speculation;
  const known = drafts.find(({ id }) => id === draft)?.label ?? draft.split("/").at(-1) ?? draft;
  const parts = [
    known.split(" · ")[0] ?? known,
    length.type === "auto" ? "K auto" : `K = ${length.tokens}`,
    ALONE[drafter],
    treeWords(speculation.tree),
    thresholdWords(speculation.threshold),
    STAGED[staged],
    mode === "reproducible" ? "reproducible" : null,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

function treeWords(tree: Tree): string | null {
  if (tree.type === "auto") return null;
  return tree.type === "off" ? "chains" : `trees of width ${tree.guesses}`;
}

function thresholdWords(threshold: Threshold): string | null {
  if (threshold.type === "off") return null;
  return threshold.type === "auto" ? "threshold auto" : `threshold ${threshold.chance}`;
}

/** The labels of two set-ups, with a letter where they would be the same. */
export function distinct(labels: Pair<string>): Pair<string> {
  if (labels[0] !== labels[1]) return labels;
  return [`${labels[0]} (${LETTERS[0]})`, `${labels[1]} (${LETTERS[1]})`];
}

/** Why two set-ups cannot be run, in a sentence that says what to do; null when they can. */
export function obstacleOf(setups: Pair<Setup>, drafts: readonly DraftOption[]): string | null {
  for (const side of SIDES) {
    const { draft } = setups[side];
    if (draft === NONE) continue;
    const option = drafts.find(({ id }) => id === draft);
    if (!option) {
      return `The draft of set-up ${LETTERS[side]}, ${draft}, is not on this computer any more: choose another.`;
    }
    if (option.problem !== null) {
      return `${option.label} in set-up ${LETTERS[side]} cannot draft for this target: ${option.problem.reason}. Choose another.`;
    }
  }
  return null;
}
