/** The reason line in words: whether replies are drafted, and why. */
import type { DraftRemark } from "../bindings/DraftRemark";
import type { OffReason } from "../bindings/OffReason";
import type { Why } from "../bindings/Why";
import { facts } from "../bindings/facts";
import { remarkWords as deviceRemark } from "../messages/devices";
import { t } from "../messages/say";
import { sentence } from "../messages/sentence";
import { lossWords } from "./decision";
import { drafterName } from "./names";

/** "N-gram drafts 5 tokens per round", "No draft model chosen". */
export function lineWords(why: Why): string {
  return [stateWords(why), ...why.remarks.map(remarkWords)].join(". ");
}

/** Why drafting is off: "no model is loaded". */
export function offWords(reason: OffReason | null): string {
  if (reason === null) return t("why.off.starting");
  return t(`why.off.${reason.kind}`);
}

function stateWords(why: Why): string {
  if (why.state === "off") {
    if (why.off?.kind === "no_draft") return t("why.noDraft");
    return t("why.off", { reason: offWords(why.off) });
  }
  return why.state === "on" ? onWords(why) : t("why.paused", { reason: pausedWords(why) });
}

function remarkWords(remark: DraftRemark): string {
  if (remark.kind === "on_cpu") return withoutStop(deviceRemark(remark.remark));
  return t(`why.remark.${remark.kind}`, { detail: withoutStop(remark.detail) });
}

/** A sentence without the full stop: another one may follow. */
function withoutStop(words: string): string {
  return words.replace(/\.$/, "");
}

function onWords({ drafter: name, length }: Why): string {
  const drafter = subjectOf(name);
  return length === null ? t("why.onOpen", { drafter }) : t("why.on", { length, drafter });
}

/** A drafter's name at the beginning of a sentence; a model's name keeps its spelling. */
function subjectOf(name: string | null): string {
  if (name === null) return sentence(t("why.aDraft"));
  return name === facts.ngramName ? sentence(drafterName(name)) : (name.split(" · ")[0] ?? name);
}

function pausedWords({ reason, expected }: Why): string {
  if (reason === "drafter_failed" || reason === "cannot_pay") return t(`why.${reason}`);
  return expected === null ? t("why.longer") : lossWords(1 - expected);
}
