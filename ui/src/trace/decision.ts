/** Words for why the governor chose a draft length. */
import type { Decision } from "../bindings/Decision";
import { percent } from "./describe";

/** "K 5 → 0: drafting would cost 8 %", "K = 5 promises 2.1× plain". */
export function decisionWords({ before, chosen, tokens_per_second }: Decision): string {
  const changed = before !== null && before !== chosen;
  const [plain = 0, ...drafting] = tokens_per_second;
  if (plain <= 0) return changed ? `K ${before} → ${chosen}` : `K = ${chosen}`;
  if (chosen > 0) {
    const name = changed ? `K ${before} → ${chosen}:` : `K = ${chosen}`;
    const gain = (tokens_per_second[chosen] ?? plain) / plain;
    return `${name} promises ${gain.toFixed(gain < 1.095 ? 2 : 1)}× plain`;
  }
  const name = changed ? `K ${before} → 0` : "K = 0";
  const loss = 1 - Math.max(0, ...drafting) / plain;
  if (loss < 0.005) return `${name}: drafting promises too little`;
  return `${name}: drafting would cost ${percent(loss)}`;
}
