/** The governor's decisions in words, and the points of the curve behind a decision. */
import type { Decision } from "../bindings/Decision";
import { duration } from "./describe";
import type { Decided } from "./history";
import { reasonWords } from "./reasons";
import { times } from "./speedup";
import { t } from "../messages/say";
import { count, decimal, percent } from "../messages/numbers";

/** "K 5 → 0: no drafts, it would be 8% slower", "K = 5: 2.1× expected next". */
export function decisionWords(decision: Decision): string {
  const expectation = expectationWords(decision);
  return expectation === null ? changeWords(decision) : `${changeWords(decision)}: ${expectation}`;
}

/** "K 5 → 0", or "K = 5" if nothing changed. */
export function changeWords({ before, chosen }: Decision): string {
  return before === null || before === chosen ? `K = ${chosen}` : `K ${before} → ${chosen}`;
}

/** Reason of a decision: the expectation from the curve, unless another reason applied. */
export function whyWords({ reason, decision }: Decided): string {
  const expectation = expectationWords(decision);
  switch (reason) {
    case "fixed":
      return expectation === null
        ? reasonWords("fixed").short
        : t("decision.asSet", { expectation });
    case "cannot_pay":
    case "off":
    case "no_room":
    case "draft_context_full":
    case "drafter_failed":
      return reasonWords(reason).short;
    default:
      return expectation ?? reasonWords(reason).short;
  }
}

/** Loss of speed with the best draft, as a share: "it would be 8% slower". */
export function lossWords(loss: number): string {
  return loss < 0.005 ? t("decision.tooLittle") : t("decision.slower", { percent: percent(loss) });
}

/** "2.1× expected next", "no drafts, it would be 8% slower"; null without a curve. */
function expectationWords({ chosen, tokens_per_second }: Decision): string | null {
  const [plain = 0, ...drafting] = tokens_per_second;
  if (plain <= 0) return null;
  if (chosen > 0) {
    const promised = tokens_per_second[chosen];
    return promised === undefined
      ? null
      : t("decision.expected", { speedup: times(promised / plain) });
  }
  return t("decision.noDrafts", { loss: lossWords(1 - Math.max(0, ...drafting) / plain) });
}

/** Values of the curve at one draft length, in a sentence. */
export function lengthWords(decision: Decision, length: number): string {
  const plain = decision.tokens_per_second[0] ?? 0;
  const expected = decision.tokens_per_second[length];
  const verify = decision.verify_ms[length];
  const facts = [expected === undefined ? "" : t("decision.rate", { rate: decimal(expected, 1) })];
  if (length > 0) {
    const acceptance = decision.acceptance[length - 1];
    const drafting = decision.drafting_ms[length - 1];
    if (expected !== undefined && plain > 0)
      facts.push(t("decision.plainTimes", { speedup: times(expected / plain) }));
    if (acceptance !== undefined)
      facts.push(t("decision.accepted", { percent: percent(acceptance), depth: count(length) }));
    if (drafting !== undefined) facts.push(t("decision.toDraft", { time: duration(drafting) }));
  }
  if (verify !== undefined) facts.push(t("decision.toVerify", { time: duration(verify) }));
  const known = facts.filter((fact) => fact !== "");
  return `K = ${length}: ${known.join(", ")}${length === 0 ? ` ${t("decision.plain")}` : ""}`;
}
