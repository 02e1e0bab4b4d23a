/** Words for what the governor chose and why, and for the points of the curve behind its choice. */
import type { Decision } from "../bindings/Decision";
import { duration, percent } from "./describe";
import type { Decided } from "./history";
import { REASON_WORDS } from "./reasons";
import { times } from "./savings";

/** "K 5 → 0: drafting would cost 8 %", "K = 5: promises 2.1x plain". */
export function decisionWords(decision: Decision): string {
  const promise = promiseWords(decision);
  return promise === null ? changeWords(decision) : `${changeWords(decision)}: ${promise}`;
}

/** "K 5 → 0", or "K = 5" where nothing changed. */
export function changeWords({ before, chosen }: Decision): string {
  return before === null || before === chosen ? `K = ${chosen}` : `K ${before} → ${chosen}`;
}

/** The reason of a decision in the history: what the curve promised, unless something else decided. */
export function whyWords({ reason, decision }: Decided): string {
  const promise = promiseWords(decision);
  switch (reason) {
    case "cannot_pay":
      return "drafting would cost time even if every token were accepted";
    case "fixed":
      return promise === null ? "as set" : `as set, ${promise}`;
    case "off":
    case "no_room":
    case "draft_context_full":
    case "drafter_failed":
      return REASON_WORDS[reason].short;
    default:
      return promise ?? REASON_WORDS[reason].short;
  }
}

/** "promises 2.1x plain", "drafting would cost 8 %"; null for a decision without a curve. */
function promiseWords({ chosen, tokens_per_second }: Decision): string | null {
  const [plain = 0, ...drafting] = tokens_per_second;
  if (plain <= 0) return null;
  if (chosen > 0) {
    const promised = tokens_per_second[chosen];
    return promised === undefined ? null : `promises ${times(promised / plain)} plain`;
  }
  const loss = 1 - Math.max(0, ...drafting) / plain;
  if (loss < 0.005) return "drafting promises too little";
  return `drafting would cost ${percent(loss)}`;
}

/** All that the curve knows of one draft length, in a sentence. */
export function lengthWords(decision: Decision, length: number): string {
  const plain = decision.tokens_per_second[0] ?? 0;
  const expected = decision.tokens_per_second[length];
  const verify = decision.verify_ms[length];
  const facts = [expected === undefined ? "" : `${expected.toFixed(1)} tokens/s`];
  if (length > 0) {
    const acceptance = decision.acceptance[length - 1];
    const drafting = decision.drafting_ms[length - 1];
    if (expected !== undefined && plain > 0) facts.push(`${times(expected / plain)} plain`);
    if (acceptance !== undefined) facts.push(`${percent(acceptance)} accepted at depth ${length}`);
    if (drafting !== undefined) facts.push(`${duration(drafting)} to draft`);
  }
  if (verify !== undefined) facts.push(`${duration(verify)} to verify`);
  const known = facts.filter((fact) => fact !== "");
  return `K = ${length}: ${known.join(", ")}${length === 0 ? " (plain decoding)" : ""}`;
}
