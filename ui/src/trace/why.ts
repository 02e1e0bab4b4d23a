/** Words for the why line: whether replies are drafted, and the reason. */
import type { LengthReason } from "../bindings/LengthReason";
import type { Why } from "../bindings/Why";
import { lossWords } from "./decision";
import { times } from "./savings";

/** "Drafting 5 tokens per round, about 2.1x, with n-gram", "Drafting off: no draft is chosen". */
export function lineWords(why: Why): string {
  if (why.state === "off") return `Drafting off: ${why.text}`;
  const words = why.state === "on" ? onWords(why) : `Drafting paused: ${pausedWords(why)}`;
  return why.text === "" ? words : `${words}. ${why.text}`;
}

function onWords({ drafter, length, speedup }: Why): string {
  const tokens = length === 1 ? "1 token" : `${length} tokens`;
  const much = length === null ? "on" : `${tokens} per round`;
  const gain = speedup === null ? "" : `, about ${times(speedup)}`;
  return `Drafting ${much}${gain}, with ${drafter?.split(" · ")[0] ?? "a draft"}`;
}

function pausedWords({ reason, speedup }: Why): string {
  if (reason !== null && reason in PAUSED) return PAUSED[reason] ?? "";
  return speedup === null ? "it would take longer" : lossWords(1 - speedup);
}

const PAUSED: Partial<Record<LengthReason, string>> = {
  drafter_failed: "the draft failed in this reply; the next one tries again",
  cannot_pay: "it would take longer even if every token were accepted",
};
