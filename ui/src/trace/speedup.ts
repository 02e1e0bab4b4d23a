/** Words for how much faster a reply was written with drafts than without. */
import type { Speedup } from "../bindings/Speedup";
import { count, decimal } from "../messages/numbers";
import { t } from "../messages/say";

/** Factors between these read "about as fast": measurements do not tell them apart. */
const SAME = { from: 0.95, to: 1.05 };

/** "1.6x faster", "about as fast", "0.8x the speed"; empty where there is nothing to compare. */
export function speedupWords(speedup: Speedup | null): string {
  if (speedup === null) return "";
  switch (verdictOf(speedup)) {
    case "same":
      return t("speedup.same");
    case "faster":
      return t("speedup.faster", { factor: factorWords(speedup.factor) });
    case "slower":
      return t("speedup.slower", { factor: factorWords(speedup.factor) });
  }
}

/** Whether a speed-up counts as a gain, a loss or neither. */
export function verdictOf({ factor }: Speedup): "faster" | "same" | "slower" {
  if (factor >= SAME.from && factor <= SAME.to) return "same";
  return factor > 1 ? "faster" : "slower";
}

/** "1.6", "12": two significant digits. */
export function factorWords(factor: number): string {
  return factor < 9.95 ? decimal(factor, 1) : count(factor);
}
