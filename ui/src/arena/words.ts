/** What an arena has shown, in words: who won and by how much, and whether the texts are the same. */
import type { Arena } from "../bindings/Arena";
import type { Sampling } from "../bindings/Sampling";
import type { Setup } from "../bindings/Setup";
import type { Verdict } from "../bindings/Verdict";
import type { Pair } from "./pairs";

export interface VerdictWords {
  /** "1.42x"; null where nobody won. */
  figure: string | null;
  /** "Starter draft, K auto is 1.42x as fast as no draft". */
  sentence: string;
  /** Over how many pairs, and what to make of it. */
  spread: string;
}

/** Two digits behind the point, and a third where two would say that nothing differs. */
export function times(ratio: number): string {
  const digits = ratio !== 1 && Math.abs(ratio - 1) < 0.005 ? 3 : 2;
  return `${ratio.toFixed(digits)}x`;
}

export function verdictWords(verdict: Verdict, names: Pair<string>, same: boolean): VerdictWords {
  const { winner, ratio, lowest, highest, pairs } = verdict;
  const over = `over ${pairs} ${pairs === 1 ? "pair" : "pairs"}`;
  if (pairs === 0) {
    return {
      figure: null,
      sentence: "Nothing to compare",
      spread: "No pair of runs was finished.",
    };
  }
  const noise = same ? " Both set-ups are the same, so any difference is chance." : "";
  if (winner === null) {
    const spread = `The pairs disagree: ${times(lowest)} to ${times(highest)} ${over}.`;
    return { figure: null, sentence: "No winner", spread: spread + noise };
  }
  const [fast, slow] = winner === 0 ? names : [names[1], names[0]];
  const spread =
    pairs === 1
      ? "This is one pair only: run more to see how certain it is."
      : `${times(lowest)} to ${times(highest)} ${over}.`;
  const sentence = `${fast} is ${times(ratio)} as fast as ${slow}`;
  return { figure: times(ratio), sentence, spread: spread + noise };
}

/** Whether two set-ups are the same: an arena of them shows the noise. */
export function sameSetup([one, other]: Pair<Setup>): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}

/** Whether chance, and not the seed alone, decides a text. */
function byChance(sampling: Sampling, setups: readonly Setup[]): boolean {
  return sampling.temperature > 0 && setups.some(({ mode }) => mode === "fastest");
}

export interface TextWords {
  verdict: "identical" | "chance" | "different";
  sentence: string;
}

/** Whether the two texts are the same, and what it means that they are not. */
export function textWords(arena: Arena): TextWords {
  const { first_difference: at, texts, setups, sampling } = arena;
  if (at === null) return { verdict: "identical", sentence: "The texts are identical." };
  const where = `token ${(at + 1).toLocaleString("en")}`;
  const modes = setups.map(({ setup }) => setup);
  if (byChance(sampling, modes)) {
    return {
      verdict: "chance",
      sentence: `The texts differ from ${where} on, as expected: the fastest sampling mode is random.`,
    };
  }
  if (texts[0] === texts[1]) {
    return {
      verdict: "different",
      sentence: `The texts read the same, but their tokens differ from ${where} on.`,
    };
  }
  return {
    verdict: "different",
    sentence: `The texts diverge at ${where}. “Check” below a reply in a chat shows whether rounding is the cause.`,
  };
}

/** What the texts will be like, said before the start. */
export function expectationOf(setups: Pair<Setup>, sampling: Sampling): string {
  if (sampling.temperature === 0) return "Temperature 0: the texts should be identical.";
  if (byChance(sampling, setups)) {
    return "Fastest sampling mode: the texts will differ by chance, but their speeds can be compared.";
  }
  return "Reproducible sampling mode: the texts should be identical.";
}
