/** Labels of set-ups. */
import type { DraftOption } from "../bindings/DraftOption";
import type { Setup } from "../bindings/Setup";
import type { Threshold } from "../bindings/Threshold";
import type { Tree } from "../bindings/Tree";
import { facts } from "../bindings/facts";
import { SIDES, type Pair } from "./pairs";
import { t } from "../messages/say";
import { sentence } from "../messages/sentence";
import { count } from "../messages/numbers";
import { draftLabel, drafterName } from "../trace/names";

export const LETTERS: Pair<string> = ["A", "B"];

/** Whether a set-up decodes without drafts. */
export function isPlain({ draft, speculation: { length } }: Setup): boolean {
  return draft === facts.draftNone || length.type === "off";
}

/** The label of a set-up's draft; a draft that is not listed is named after its file. */
export function draftName({ draft }: Setup, drafts: readonly DraftOption[]): string {
  return drafts.find(({ id }) => id === draft)?.label ?? draft.split("/").at(-1) ?? draft;
}

/** "Starter draft" with all settings that differ from the default, or "no draft". */
export function labelOf(setup: Setup, draft: string): string {
  if (isPlain(setup)) return t("arena.noDraft");
  const { speculation, mode } = setup;
  const { drafter, length, staged } = speculation;
  const parts = [
    drafterName(draft.split(" · ")[0] ?? draft),
    length.type === "fixed" ? t("arena.ahead", { tokens: length.tokens }) : null,
    drafter === "combined" ? null : t(`arena.only.${drafter}`),
    treeWords(speculation.tree),
    thresholdWords(speculation.threshold),
    staged === "auto" ? null : t(`arena.staged.${staged}`),
    mode === "reproducible" ? t("arena.reproducible") : null,
  ];
  return parts.filter((part) => part !== null).join(", ");
}

function treeWords(tree: Tree): string | null {
  if (tree.type === "auto") return null;
  return tree.type === "off"
    ? t("arena.noTree")
    : t("arena.treeWidth", { width: count(tree.guesses) });
}

function thresholdWords(threshold: Threshold): string | null {
  if (threshold.type === "off") return null;
  return threshold.type === "auto"
    ? t("arena.thresholdAuto")
    : t("arena.threshold", { chance: count(threshold.chance, 6) });
}

/** A label as a heading; names of models and files keep their spelling. */
export function headingOf(label: string): string {
  const ours = [t("arena.noDraft"), t("drafter.ngram")];
  return ours.some((words) => label.startsWith(words)) ? sentence(label) : label;
}

/** The labels of two set-ups; equal ones get a letter. */
export function distinct(labels: Pair<string>): Pair<string> {
  if (labels[0] !== labels[1]) return labels;
  return [`${labels[0]} (${LETTERS[0]})`, `${labels[1]} (${LETTERS[1]})`];
}

/** Why two set-ups cannot be compared, in a sentence that says what to do; null if they can. */
export function obstacleOf(setups: Pair<Setup>, drafts: readonly DraftOption[]): string | null {
  for (const side of SIDES) {
    const { draft } = setups[side];
    if (draft === facts.draftNone) continue;
    const option = drafts.find(({ id }) => id === draft);
    if (!option) {
      return t("arena.draftGone", { letter: LETTERS[side], draft });
    }
    if (option.problem !== null) {
      return t("arena.cannotDraft", {
        draft: draftLabel(option),
        letter: LETTERS[side],
        reason: option.problem.reason,
      });
    }
  }
  return null;
}
