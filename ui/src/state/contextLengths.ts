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

/** Bytes of a token in the KV cache; in 8 bits if they are chosen and the model can have them. */
export function tokenBytes(window: ContextWindow, inInt8: boolean): number {
  return (inInt8 ? window.int8_token_bytes : null) ?? window.token_bytes;
}

/**
 * Memory of a full context of `tokens` with `bytes` each, and the time to read it at `rate` tokens
 * per second; null if that was never measured.
 */
export function contextCost(bytes: number, tokens: number, rate: number | null): string {
  const memory = t("settings.contextMemory", { size: size(tokens * bytes) });
  if (rate === null || rate <= 0) return memory;
  const time = seconds((tokens / rate) * 1000);
  return `${memory}, ${t("settings.contextTime", { time })}`;
}

/** Memory that an 8-bit KV cache saves of `tokens` tokens; null for models without one. */
export function int8Saving(window: ContextWindow, tokens: number): string | null {
  const { token_bytes: all, int8_token_bytes: rounded } = window;
  if (rounded === null) return null;
  const sizes = { saved: size((all - rounded) * tokens), whole: size(all * tokens) };
  return t("settings.int8Saving", { ...sizes, tokens: count(tokens) });
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
