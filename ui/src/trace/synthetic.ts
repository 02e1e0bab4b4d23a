/**
 * Generated rounds for measurements and for cases that recordings lack: every outcome, drafter and
 * shape of draft, from plain decoding to trees 16 deep and 8 wide. The same seed gives the same
 * rounds.
 */
import type { Drafted } from "../bindings/Drafted";
import type { DrafterKind } from "../bindings/DrafterKind";
import type { Extra } from "../bindings/Extra";
import type { LengthReason } from "../bindings/LengthReason";
import type { Round } from "../bindings/Round";

const WORDS =
  "the fox a lantern and of moss it was small light under old glass when she found in half buried " +
  "dark but breathed on where are we going asked one two then river stone by night they walked home";

/** Parameters of a sequence of rounds: how they are drafted, and how often a token is accepted. */
interface Stretch {
  drafter: DrafterKind;
  longest: number;
  /** Most siblings at one position. */
  widest: number;
  staged: boolean;
  chance: number;
}

const STRETCHES: readonly Stretch[] = [
  { drafter: "model", longest: 5, widest: 1, staged: false, chance: 0.8 },
  { drafter: "ngram", longest: 16, widest: 1, staged: false, chance: 0.9 },
  { drafter: "model", longest: 4, widest: 3, staged: false, chance: 0.6 },
  { drafter: "model", longest: 6, widest: 1, staged: true, chance: 0.75 },
  { drafter: "recycling", longest: 16, widest: 8, staged: false, chance: 0.3 },
  { drafter: "head", longest: 5, widest: 3, staged: false, chance: 0.7 },
  { drafter: "model", longest: 0, widest: 1, staged: false, chance: 0 },
  { drafter: "recycling", longest: 7, widest: 4, staged: false, chance: 0.4 },
];
const STRETCH_ROUNDS = 24;
const PARAGRAPH_TOKENS = 70;
/** Share of rounds without a draft although drafting was possible. */
const EMPTY_SHARE = 0.03;
const DECISION_EVERY = 64;
/** Time of verifying a further row, as a share of a plain pass. */
const ROW_SHARE = 0.04;
/** Price of a row at twice the speed of plain decoding. */
const ROW_PRICE = 2 * ROW_SHARE;

/** How a round ended: its extra token, and the reason for its length. */
type Ended = [extra: Extra["kind"], reason: LengthReason];

export class Synthesis {
  readonly #tokensPerSecond: number;
  readonly #words = WORDS.split(" ");
  #state: number;
  #rounds = 0;
  #tokens = 0;

  /** Generates rounds whose times average to `tokensPerSecond`. */
  constructor(seed: number, tokensPerSecond: number) {
    this.#state = (seed * 2_654_435_761 + 1) >>> 0 || 1;
    this.#tokensPerSecond = tokensPerSecond;
  }

  take(rounds: number): Round[] {
    return Array.from({ length: rounds }, () => this.next());
  }

  next(): Round {
    const index = this.#rounds++;
    const position = this.#tokens;
    const stretch = STRETCHES[Math.floor(index / STRETCH_ROUNDS) % STRETCHES.length];
    const drafted: Drafted[] = [];
    let [extra, reason]: Ended = ["plain", "off"];
    if (stretch && stretch.longest > 0) {
      const drafts = this.#draw() >= EMPTY_SHARE;
      [extra, reason] = drafts ? this.#draft(stretch, drafted) : ["plain", "no_match"];
    }
    const accepted = drafted.filter(({ outcome }) => outcome === "accepted").length;
    this.#tokens += accepted + 1;
    const rate = this.#tokensPerSecond;
    const ms = ((accepted + 1) * 1000) / rate;
    return {
      index,
      position,
      drafted,
      extra: { token: 1000 + (this.#tokens % 900), text: this.#word(), kind: extra },
      draft_length: stretch?.longest ?? 0,
      reason,
      threshold: stretch?.widest === 1 && stretch.drafter === "model" ? 0.2 : null,
      expected: drafted.reduce((sum, { survival }) => sum + (survival ?? 0), 1),
      row_price: drafted.length > 0 ? ROW_PRICE : null,
      staged: stretch?.staged ?? false,
      decision: index % DECISION_EVERY === 0 ? decision(stretch?.longest ?? 0, rate) : null,
      times: { draft_ms: 0.3 * ms, verify_ms: 0.6 * ms, sample_ms: 0.06 * ms, rest_ms: 0.04 * ms },
      at_ms: (this.#tokens * 1000) / rate,
    };
  }

  /** Generates a tree or a chain with outcomes. */
  #draft({ drafter, longest, widest, chance }: Stretch, drafted: Drafted[]): Ended {
    const length = 1 + Math.floor(this.#draw() * longest);
    let path: number | null = null;
    let alive = true;
    let reached = 1;
    for (let depth = 0; depth < length; depth += 1) {
      const candidates = widest === 1 ? 1 : 1 + Math.floor(this.#draw() * widest);
      const parent = path;
      const judged = alive;
      let accepted: number | null = null;
      const first = drafted.length;
      let missed = reached;
      for (let candidate = 0; candidate < candidates; candidate += 1) {
        // After an accepted token its siblings are not verified, nor is anything behind a rejected
        // one.
        const asked = judged && accepted === null;
        const outcome = !asked ? "discarded" : this.#draw() < chance ? "accepted" : "rejected";
        if (outcome === "accepted") accepted = drafted.length;
        drafted.push({ ...this.#token(outcome, parent, drafter), survival: missed * chance });
        missed *= 1 - chance;
      }
      reached -= missed;
      if (judged) alive = accepted !== null;
      path = accepted ?? first;
    }
    const cut = length % 2 === 0 ? "step_too_dear" : "unlikely";
    return [alive ? "bonus" : "recovered", length < longest ? cut : "governed"];
  }

  #token(outcome: Drafted["outcome"], parent: number | null, drafter: DrafterKind): Drafted {
    const draft = 0.02 + 0.97 * this.#draw();
    const likeness = outcome === "accepted" ? 0.4 + 0.9 * this.#draw() : 0.7 * this.#draw();
    const judged = outcome !== "discarded";
    const target = Math.min(1, draft * likeness);
    return {
      token: Math.floor(this.#draw() * 32_000),
      text: this.#word(),
      parent,
      draft_probability: draft,
      target_probability: judged ? target : null,
      acceptance: judged ? Math.min(1, drafter === "model" ? target / draft : target) : null,
      outcome,
      drafter,
    };
  }

  #word(): string {
    const word = this.#words[Math.floor(this.#draw() * this.#words.length)] ?? "";
    return this.#draw() < 1 / PARAGRAPH_TOKENS ? `.\n\n${word}` : ` ${word}`;
  }

  /** A random number from 0 to 1, by Marsaglia's 32-bit xorshift. */
  #draw(): number {
    this.#state ^= this.#state << 13;
    this.#state ^= this.#state >>> 17;
    this.#state ^= this.#state << 5;
    return (this.#state >>> 0) / 2 ** 32;
  }
}

function decision(chosen: number, tokensPerSecond: number): Round["decision"] {
  const plain = tokensPerSecond / 2;
  const lengths = Array.from({ length: 17 }, (_, length) => length);
  return {
    before: chosen,
    chosen,
    drafting_ms: lengths.slice(1).map((length) => (length * 80) / plain),
    verify_ms: lengths.map((length) => ((1 + ROW_SHARE * length) * 1000) / plain),
    acceptance: lengths.slice(1).map((length) => 0.85 - 0.02 * length),
    tokens_per_second: lengths.map(
      (length) => plain * (1 + 0.5 * Math.sin((length * Math.PI) / 11)),
    ),
  };
}
