/** The result of a contest in words: the winner, its lead, and whether the texts are equal. */
import type { Arena } from "../bindings/Arena";
import type { Sampling } from "../bindings/Sampling";
import type { Setup } from "../bindings/Setup";
import type { Verdict } from "../bindings/Verdict";
import type { Pair } from "./pairs";
import { t } from "../messages/say";
import { count } from "../messages/numbers";

export interface VerdictWords {
  /** "1.42×"; null without a winner. */
  figure: string | null;
  /** "Starter draft is 1.42× as fast as no draft". */
  sentence: string;
  /** Number of pairs, and how to read the result. */
  spread: string;
}

/** "1.5", "1.42": up to two decimals; a third where two would read as 1. */
export function ratioWords(ratio: number): string {
  return count(ratio, ratio !== 1 && Math.abs(ratio - 1) < 0.005 ? 3 : 2);
}

/** "1.42×", "1,42-mal". */
export function times(ratio: number): string {
  return t("speedup.times", { factor: ratioWords(ratio) });
}

export function verdictWords(verdict: Verdict, names: Pair<string>, same: boolean): VerdictWords {
  const { winner, ratio, lowest, highest, pairs } = verdict;
  const range = { low: times(lowest), high: times(highest), pairs };
  if (pairs === 0) {
    return {
      figure: null,
      sentence: t("arena.nothing"),
      spread: t("arena.noPair"),
    };
  }
  const noise = same ? ` ${t("arena.noise")}` : "";
  if (winner === null) {
    const spread = t("arena.disagree", { first: times(highest), second: times(1 / lowest), pairs });
    return { figure: null, sentence: t("arena.noWinner"), spread: spread + noise };
  }
  const [fast, slow] = winner === 0 ? names : [names[1], names[0]];
  const spread = pairs === 1 ? t("arena.onePair") : t("arena.spread", range);
  const sentence = t("arena.faster", { fast, ratio: times(ratio), slow });
  return { figure: times(ratio), sentence, spread: spread + noise };
}

/** Whether two set-ups are equal; their contest then shows the noise. */
export function sameSetup([one, other]: Pair<Setup>): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Whether sampling depends on more than the seed, so that texts can differ. */
function byChance(sampling: Sampling, setups: readonly Setup[]): boolean {
  return sampling.temperature > 0 && setups.some(({ mode }) => mode === "fastest");
}

export interface TextWords {
  verdict: "identical" | "chance" | "different";
  sentence: string;
}

/** Whether the two texts are equal, and the meaning of a difference. */
export function textWords(arena: Arena): TextWords {
  const { first_difference: at, texts, setups, sampling } = arena;
  if (at === null) return { verdict: "identical", sentence: t("arena.identical") };
  const token = count(at + 1);
  const modes = setups.map(({ setup }) => setup);
  if (byChance(sampling, modes)) {
    return {
      verdict: "chance",
      sentence: t("arena.differByChance", { token }),
    };
  }
  if (texts[0] === texts[1]) {
    return {
      verdict: "different",
      sentence: t("arena.tokensDiffer", { token }),
    };
  }
  return {
    verdict: "different",
    sentence: t("arena.diverge", { token }),
  };
}

/** The texts to expect, shown before the start. */
export function expectationOf(setups: Pair<Setup>, sampling: Sampling): string {
  if (sampling.temperature === 0) return t("arena.expectIdentical0");
  if (byChance(sampling, setups)) {
    return t("arena.expectChance");
  }
  return t("arena.expectIdentical");
}
