/** Values at the ends of the inspector's folded lines. */
import type { Decision } from "../../bindings/Decision";
import type { Times } from "../../bindings/Times";
import type { Trace } from "../../state/trace.svelte";
import { duration } from "../../trace/describe";
import type { SpeedCurve } from "../../trace/speed";
import type { Statistics } from "../../trace/statistics";
import { decimal, percent, significant } from "../../messages/numbers";
import { t } from "../../messages/say";

/** "27 to 41 tokens/s"; the mean without a curve. */
export function speedValue(curve: SpeedCurve | null, rate: number | null): string {
  if (curve) {
    const rates = curve.points.map(([, held]) => held);
    const [low, high] = [significant(Math.min(...rates)), significant(Math.max(...rates))];
    return low === high ? t("decision.rate", { rate: low }) : t("inspector.fromTo", { low, high });
  }
  return rate === null ? "" : t("decision.rate", { rate: significant(rate) });
}

/** "4 tokens, about 2.9 accepted": the draft length, and how many tokens of it are expected. */
export function lengthValue(trace: Trace | null): string {
  const decision = trace?.statistics.decision;
  if (decision) {
    const { chosen, acceptance } = decision;
    if (chosen === 0) return t("inspector.noDraft");
    if (acceptance.length === 0) return t("inspector.tokensAlone", { tokens: chosen });
    const expected = decimal(expectedOf(decision), 1);
    return t("inspector.lengthExpected", { tokens: chosen, expected });
  }
  const length = trace?.rounds.at(-1)?.draft_length;
  return length === undefined ? "" : t("inspector.tokensAlone", { tokens: length });
}

/** Expected number of accepted draft tokens in a round. */
function expectedOf({ chosen, acceptance }: Decision): number {
  let [sum, survives] = [0, 1];
  for (const chance of acceptance.slice(0, chosen)) {
    survives *= chance;
    sum += survives;
  }
  return sum;
}

/** "71% checking, 24% drafting"; the time alone without drafts. */
export function timesValue(times: Times | undefined): string {
  if (!times) return "";
  const spent = times.draft_ms + times.verify_ms + times.sample_ms + times.rest_ms;
  if (spent <= 0) return "";
  if (times.draft_ms === 0) return duration(spent);
  const verify = percent(times.verify_ms / spent);
  return t("inspector.timesValue", { verify, draft: percent(times.draft_ms / spent) });
}

/** "182 tokens, 48 rounds". */
export function countsValue({ tokens, rounds }: Statistics): string {
  if (rounds === 0) return t("inspector.tokensAlone", { tokens });
  return t("inspector.tokens", { tokens, rounds });
}
