/** Names of models and drafters. */
import type { DraftOption } from "../bindings/DraftOption";
import { facts } from "../bindings/facts";
import { t } from "../messages/say";

/** The name of a draft that can be chosen. */
export function draftLabel({ id, label }: Pick<DraftOption, "id" | "label">): string {
  if (id === facts.draftNone) return t("draft.none");
  return id === facts.draftNgram ? t("draft.ngram") : label;
}

/** A drafter's name as replies record it, with n-grams in the language of the page. */
export function drafterName(recorded: string): string {
  return recorded === facts.ngramName ? t("drafter.ngram") : recorded;
}

/**
 * "SmolLM2 135M" from "SmolLM2 135M Instruct · Q4_1": without the format and words such as Chat.
 */
export function shortName(label: string): string {
  const [name = label] = label.split(" · ");
  return name.replaceAll(/\s(?:Instruct|Chat|it)(?=\s|$)/gi, "") || name;
}

/**
 * The name of a draft. Beside a target of the same family only its size: "0.5B" from "Qwen2.5 Coder
 * 0.5B" beside "Qwen2.5 Coder 1.5B".
 */
export function shortDraftName(label: string, target: string): string {
  const [name, beside] = [shortName(label), shortName(target)].map((words) => words.split(" "));
  if (!name || !beside) return shortName(label);
  const same = name.findIndex((word, at) => word !== beside[at]);
  const sized = [name[same], beside[same]].every((word) => /^\d/.test(word ?? ""));
  return (same > 0 && sized ? name.slice(same) : name).join(" ");
}
