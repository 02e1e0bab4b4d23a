/** Values at the ends of the inspector's folded lines. */
import type { Decision } from "../../bindings/Decision";
import type { Times } from "../../bindings/Times";
import type { Trace } from "../../state/trace.svelte";
import { percent } from "../../trace/describe";
import type { SpeedCurve } from "../../trace/speed";
import type { Statistics } from "../../trace/statistics";
import { short } from "../ui/plot/plot";
import { count, decimal } from "../../messages/numbers";
import { t } from "../../messages/say";

/** "27 to 41 tokens/s"; the mean without a curve. */
export function speedValue(curve: SpeedCurve | null, rate: number | null): string {
  if (curve) {
    const rates = curve.points.map(([, held]) => held);
    const [low, high] = [short(Math.min(...rates)), short(Math.max(...rates))];
    return low === high ? t("decision.rate", { rate: low }) : t("inspector.fromTo", { low, high });
  }
  return rate === null ? "" : t("decision.rate", { rate: short(rate) });
}

/** "4 of 16, expected 2.9": the draft length, and the number of tokens expected to be accepted. */
export function lengthValue(trace: Trace | null): string {
  const decision = trace?.statistics.decision;
  if (decision) {
    const { chosen, acceptance } = decision;
    const of = t("inspector.lengthOf", { length: count(chosen), most: count(acceptance.length) });
    if (chosen === 0 || acceptance.length === 0) return chosen === 0 ? t("inspector.noDraft") : of;
    return t("inspector.lengthExpected", {
      length: of,
      expected: decimal(expectedOf(decision), 1),
    });
  }
  const length = trace?.rounds.at(-1)?.draft_length;
  return length === undefined ? "" : count(length);
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

/** "verify 71 %, draft 24 %". */
export function timesValue(times: Times | undefined): string {
  if (!times) return "";
  const spent = times.draft_ms + times.verify_ms + times.sample_ms + times.rest_ms;
  if (spent <= 0) return "";
  const verify = percent(times.verify_ms / spent);
  return t("inspector.timesValue", { verify, draft: percent(times.draft_ms / spent) });
}

/** "182 tokens, 48 rounds". */
export function countsValue({ tokens, rounds }: Statistics): string {
  if (rounds === 0) return t("inspector.tokensAlone", { tokens });
  return t("inspector.tokens", { tokens, rounds });
}
