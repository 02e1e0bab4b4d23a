/** The reason line in words: whether replies are drafted, and why. */
import type { Why } from "../bindings/Why";
import { t } from "../messages/say";
import { sentence } from "../messages/sentence";
import { isTerm, shellWords } from "../messages/shell";
import { lossWords } from "./decision";

/** "N-gram drafts 5 tokens per round", "Drafting off: no draft is chosen". */
export function lineWords(why: Why): string {
  if (why.state === "off") return t("why.off", { reason: shellWords(why.text) });
  const words = why.state === "on" ? onWords(why) : t("why.paused", { reason: pausedWords(why) });
  return why.text === "" ? words : `${words}. ${why.text}`;
}

function onWords({ drafter: label, length }: Why): string {
  const drafter = drafterWords(label?.split(" · ")[0] ?? null);
  return length === null ? t("why.onOpen", { drafter }) : t("why.on", { length, drafter });
}

/** A drafter's name at the beginning of a sentence; a model's name keeps its spelling. */
function drafterWords(name: string | null): string {
  if (name === null) return sentence(t("why.aDraft"));
  return isTerm(name) ? sentence(shellWords(name)) : name;
}

function pausedWords({ reason, expected }: Why): string {
  if (reason === "drafter_failed" || reason === "cannot_pay") return t(`why.${reason}`);
  return expected === null ? t("why.longer") : lossWords(1 - expected);
}
