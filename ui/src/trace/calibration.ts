/** Calibration of a reply's drafts: how often tokens were accepted by their expected survival. */
import type { Round } from "../bindings/Round";
import { t } from "../messages/say";
import { percent } from "../messages/numbers";

const BINS = 10;
/** Least number of tokens for a calibration, and in a bin of it. */
export const MIN_TOKENS = 50;
const MIN_BIN_TOKENS = 5;

/** Tokens of similar survival. */
export interface Bin {
  /** Mean survival. */
  expected: number;
  /** Share of accepted tokens. */
  accepted: number;
  tokens: number;
}

/**
 * Follows a trace that only grows; each query reads only new rounds. A survival is the chance
 * before the verification, so tokens that were never judged count as not accepted.
 */
export class Calibration {
  readonly #rounds: readonly Round[];
  #read = 0;
  #tokens = 0;
  readonly #sums = Array.from({ length: BINS }, () => ({ tokens: 0, survival: 0, accepted: 0 }));

  constructor(rounds: readonly Round[]) {
    this.#rounds = rounds;
  }

  /** Bins with enough tokens, by rising survival; none before {@link MIN_TOKENS} tokens. */
  bins(): Bin[] {
    this.#catchUp();
    if (this.#tokens < MIN_TOKENS) return [];
    return this.#sums.flatMap(({ tokens, survival, accepted }) => {
      if (tokens < MIN_BIN_TOKENS) return [];
      return [{ expected: survival / tokens, accepted: accepted / tokens, tokens }];
    });
  }

  #catchUp() {
    for (; this.#read < this.#rounds.length; this.#read += 1) {
      const round = this.#rounds[this.#read];
      if (!round) break;
      for (const { survival, outcome } of round.drafted) {
        if (survival == null) continue;
        const sums = this.#sums[Math.min(BINS - 1, Math.floor(survival * BINS))];
        if (!sums) continue;
        this.#tokens += 1;
        sums.tokens += 1;
        sums.survival += survival;
        if (outcome === "accepted") sums.accepted += 1;
      }
    }
  }
}

/** "62% expected, 59% of 120 tokens accepted". */
export function binWords({ expected, accepted, tokens }: Bin): string {
  const [before, after] = [percent(expected), percent(accepted)];
  return t("inspector.calibrationBin", { expected: before, accepted: after, tokens });
}
