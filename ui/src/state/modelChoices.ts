/** Models and drafts as entries of a list to choose from, in words. */
import type { DraftMerit } from "../bindings/DraftMerit";
import type { DraftOption } from "../bindings/DraftOption";
import type { ModelDetail } from "../bindings/ModelDetail";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Problem } from "../bindings/Problem";
import { facts } from "../bindings/facts";
import { count, decimal } from "../messages/numbers";
import { t } from "../messages/say";
import { draftLabel } from "../trace/names";
import { size } from "./amounts";

/** Whether a listed model computes embeddings of texts and writes none. */
export const embeds = ({ problem }: ModelEntry) => problem?.kind === "embedding_model";

export function targetChoice({ id, label, detail, problem }: ModelEntry) {
  return { id, label, detail: detailWords(detail), problem: refusal(problem) };
}

export function draftChoice(option: DraftOption) {
  const { id, merit, problem } = option;
  return {
    id,
    label: draftLabel(option),
    detail: drafterDetail(id) ?? detailWords(option.detail),
    merit: merit === null ? null : meritWords(merit),
    problem: refusal(problem),
  };
}

/** The detail of a drafter without a model of its own. */
function drafterDetail(id: string): string | null {
  if (id === facts.draftNone) return t("draft.noneDetail");
  if (id === facts.draftNgram) return t("draft.ngramDetail");
  return id === facts.draftMtp ? t("draft.mtpDetail") : null;
}

function refusal(problem: Problem | null) {
  return problem && { short: t(`problem.${problem.kind}`), reason: problem.reason };
}

/** "llama, 8.8 MB, context 512 tokens"; empty for a model that could not be read. */
export function detailWords(detail: ModelDetail | null): string {
  if (detail === null) return "";
  if (detail.kind === "server") return t("model.server", { server: detail.host });
  const { architecture, bytes, context } = detail;
  return [
    architecture ?? t("model.noArchitecture"),
    size(bytes),
    context === null ? "" : t("model.context", { tokens: count(context) }),
  ]
    .filter(Boolean)
    .join(", ");
}

/** "known pair", "tried: 1.4×". */
export function meritWords(merit: DraftMerit): string {
  const speedup = merit.kind === "tried" ? decimal(merit.speedup, 1) : "";
  return t(`merit.${merit.kind}`, { speedup });
}
