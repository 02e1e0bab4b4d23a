/** The speed-up of a reply by drafts, in words. */
import type { Speedup } from "../bindings/Speedup";
import { facts } from "../bindings/facts";
import { count, decimal } from "../messages/numbers";
import { t } from "../messages/say";

/** "1.6× faster", "no faster", "0.8× the speed"; empty without a comparison. */
export function speedupWords(speedup: Speedup | null): string {
  return speedup === null ? "" : fasterWords(speedup.factor);
}

/** An expected speed-up, in the same words. */
export function fasterWords(factor: number): string {
  const given = { factor: factorWords(factor) };
  switch (verdictOf({ factor })) {
    case "same":
      return t("speedup.same");
    case "faster":
      return t("speedup.faster", given);
    case "slower":
      return t("speedup.slower", given);
  }
}

/** Whether a speed-up counts as a gain, a loss or neither. */
export function verdictOf({ factor }: Pick<Speedup, "factor">): "faster" | "same" | "slower" {
  if (factor >= 1 - facts.sameSpeed && factor <= 1 + facts.sameSpeed) return "same";
  return factor > 1 ? "faster" : "slower";
}

/** "1.6", "12": two significant digits. */
export function factorWords(factor: number): string {
  return factor < 9.95 ? decimal(factor, 1) : count(factor);
}

/** "1.6×", "1,6-mal". */
export function times(factor: number): string {
  return t("speedup.times", { factor: factorWords(factor) });
}
