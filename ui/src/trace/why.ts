/** Words for the why line: whether replies are drafted, and the reason. */
import type { Why } from "../bindings/Why";
import { t } from "../messages/say";
import { shellWords } from "../messages/shell";
import { lossWords } from "./decision";
import { times } from "./savings";

/** "Drafting 5 tokens per round, about 2.1x, with n-gram", "Drafting off: no draft is chosen". */
export function lineWords(why: Why): string {
  if (why.state === "off") return t("why.off", { reason: shellWords(why.text) });
  const words = why.state === "on" ? onWords(why) : t("why.paused", { reason: pausedWords(why) });
  return why.text === "" ? words : `${words}. ${why.text}`;
}

function onWords({ drafter: label, length, speedup: gain }: Why): string {
  const drafter = shellWords(label?.split(" · ")[0] ?? t("why.aDraft"));
  const speedup = gain === null ? null : times(gain);
  if (length === null) {
    return speedup === null
      ? t("why.onOpen", { drafter })
      : t("why.onOpenGain", { drafter, speedup });
  }
  return speedup === null
    ? t("why.on", { length, drafter })
    : t("why.onGain", { length, drafter, speedup });
}

function pausedWords({ reason, speedup }: Why): string {
  if (reason === "drafter_failed" || reason === "cannot_pay") return t(`why.${reason}`);
  return speedup === null ? t("why.longer") : lossWords(1 - speedup);
}
