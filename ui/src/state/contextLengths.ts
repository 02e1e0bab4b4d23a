/** Context lengths that can be chosen for a model, and what they cost. */
import type { ContextWindow } from "../bindings/ContextWindow";
import { count } from "../messages/numbers";
import { t } from "../messages/say";
import { seconds } from "../trace/describe";
import { size } from "./amounts";

/** The shortest length offered, in tokens. */
const SHORTEST = 2048;

/** Doublings below the trained length, that one, and the chosen one; ascending. */
export function contextLengths(trained: number, chosen: number | undefined): number[] {
  const lengths = new Set([trained, ...(chosen === undefined ? [] : [Math.min(chosen, trained)])]);
  for (let length = SHORTEST; length < trained; length *= 2) lengths.add(length);
  return [...lengths].sort((a, b) => a - b);
}

/**
 * Memory of a full context of `tokens`, and the time to read it at `rate` tokens per second; null
 * if that was never measured.
 */
export function contextCost(window: ContextWindow, tokens: number, rate: number | null): string {
  const memory = t("settings.contextMemory", { size: size(tokens * window.token_bytes) });
  if (rate === null || rate <= 0) return memory;
  const time = seconds((tokens / rate) * 1000);
  return `${memory}, ${t("settings.contextTime", { time })}`;
}

/** Trained length, and how the file scales RoPE to it. */
export function trainedWords({ trained, rope_scaling: scaling }: ContextWindow): string {
  const tokens = t("settings.contextTrained", { tokens: count(trained) });
  return `${tokens} ${scalingWords(scaling)}`;
}

function scalingWords(scaling: ContextWindow["rope_scaling"]): string {
  switch (scaling?.kind) {
    case "linear":
      return t("settings.ropeLinear", { factor: count(scaling.factor, 3) });
    case "per_frequency":
      return t("settings.ropePerFrequency");
    case "yarn": {
      const { factor, original } = scaling;
      return t("settings.ropeYarn", { factor: count(factor, 3), tokens: count(original) });
    }
    case "long_rope":
      return t("settings.ropeLong", { tokens: count(scaling.original) });
    case undefined:
      return t("settings.ropeNone");
  }
}
