/**
 * Arena in an ordinary browser, with recordings as runs, each slightly slower or faster than the
 * last. `?arena=sample` begins with stored ones; `?arena=fails` fails in the third run;
 * `?arena=differs` lets texts differ in any mode.
 */
import type { Arena } from "../bindings/Arena";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { ArenaRun } from "../bindings/ArenaRun";
import type { Round } from "../bindings/Round";
import type { Setup } from "../bindings/Setup";
import { defaults } from "../bindings/defaults";
import { draftName, isPlain } from "../arena/label";
import { facts } from "../bindings/facts";
import { SIDES, verdictOf, type Side } from "../arena/pairs";
import { emitted } from "../trace/round";
import { textOf } from "../trace/text";
import { BackendError } from "./backend";
import { summaryOf } from "../trace/summary";
import { recordingFor } from "./recordings";
import type { Desk } from "./replayDesk";

const DAY_MS = 86_400_000;
/** Largest relative deviation of a run's time. */
const NOISE = 0.035;
/** Rounds left out of the second text where texts differ. */
const CHANCE = { from: 14, to: 17 };

export class ReplayArena {
  #arenas: Arena[] = [];
  #nextId = 1;

  readonly #desk: Desk;
  readonly #fails: boolean;
  readonly #differs: boolean;

  constructor(options: URLSearchParams, desk: Desk) {
    this.#desk = desk;
    this.#fails = options.get("arena") === "fails";
    this.#differs = options.get("arena") === "differs";
    if (options.get("arena") === "sample") for (const ask of SAMPLES) this.#recall(ask);
  }

  arenas = () => Promise.resolve([...this.#arenas]);

  delete = (id: number) => {
    this.#arenas = this.#arenas.filter((arena) => arena.id !== id);
    return Promise.resolve();
  };

  async run(request: ArenaRequest, onEvent: (event: ArenaEvent) => void): Promise<Arena> {
    if (request.prompt.trim() === "") {
      throw new BackendError("empty_prompt", "the prompt is empty: write something first.");
    }
    this.#desk.begin(Math.ceil(request.prompt.length / 4));
    try {
      const runs: ArenaRun[] = [];
      for (const [pair, side] of turns(request.pairs)) {
        onEvent({ type: "run", pair, setup: side });
        const rounds = this.#rounds(request, pair, side);
        await this.#play(rounds, onEvent, this.#fails && runs.length === 2);
        const run = measured(rounds, pair, side);
        runs.push(run);
        onEvent({ type: "finished", run });
      }
      return this.#store(request, runs, Date.now());
    } finally {
      this.#desk.end();
    }
  }

  async #play(rounds: readonly Round[], onEvent: (event: ArenaEvent) => void, fails: boolean) {
    let tokens = 0;
    let before = 0;
    for (const [index, round] of rounds.entries()) {
      await this.#desk.play(round.at_ms - before);
      before = round.at_ms;
      if (this.#desk.stopped()) throw new BackendError("cancelled", "the arena was stopped.");
      if (fails && index === 9) {
        const message =
          "the computation failed: expected 2.1 GB of memory, found 0.8 GB free. Close other programs and start again.";
        throw new BackendError("internal", message);
      }
      tokens += emitted(round);
      onEvent({ type: "progress", tokens, at_ms: round.at_ms, text: textOf([round]) });
    }
  }

  /** The recording that answers the prompt, at the set-up's speed. */
  #rounds({ prompt, setups, max_tokens }: ArenaRequest, pair: number, side: Side): Round[] {
    const setup = setups[side];
    const { rounds } = recordingFor(prompt, !isPlain(setup));
    const { temperature } = this.#desk.settings().sampling;
    const chance = temperature > 0 && setup.mode === "fastest";
    const said =
      side === 1 && (chance || this.#differs)
        ? rounds.filter(({ index }) => index < CHANCE.from || index >= CHANCE.to)
        : rounds;
    const slowness = slownessOf(setup) * (1 + NOISE * swing(3 * pair + side));
    let tokens = 0;
    let at_ms = 0;
    return said.flatMap((recorded, place) => {
      const round = shortened(recorded, max_tokens - tokens);
      if (emitted(round) === 0) return [];
      tokens += emitted(round);
      const { draft_ms, verify_ms, sample_ms, rest_ms } = round.times;
      const took = place === 0 ? round.at_ms : draft_ms + verify_ms + sample_ms + rest_ms;
      at_ms += took * slowness * (1 + NOISE * swing(7 * place + pair));
      return [{ ...round, index: place, at_ms }];
    });
  }

  #store(request: ArenaRequest, runs: ArenaRun[], created_at: number): Arena {
    const { target, drafts } = this.#desk.status();
    const { sampling } = this.#desk.settings();
    const texts = SIDES.map((side) => textOf(this.#rounds(request, 0, side)));
    const arena: Arena = {
      id: this.#nextId++,
      created_at,
      prompt: request.prompt,
      target: target?.label ?? "Starter 8.1M · Q8_0",
      device: "CPU, 2 threads, AVX-512",
      sampling: { ...sampling, seed: sampling.seed ?? 3 },
      max_tokens: request.max_tokens,
      setups: request.setups.map((setup) => ({ draft: draftName(setup, drafts), setup })),
      runs,
      texts,
      first_difference: texts[0] === texts[1] ? null : DIFFERS_AT,
      verdict: verdictOf(runs),
    };
    this.#arenas = [arena, ...this.#arenas];
    return arena;
  }

  #recall({ agoMs, ...request }: Sample) {
    const runs = turns(request.pairs).map(([pair, side]) =>
      measured(this.#rounds(request, pair, side), pair, side),
    );
    this.#store(request, runs, Date.now() - agoMs);
  }
}

const DIFFERS_AT = 40;

/** Alternating order: 0 1, 1 0, 0 1 and so on. */
function turns(pairs: number): [number, Side][] {
  return Array.from({ length: pairs }, (_, pair) => pair).flatMap((pair): [number, Side][] => {
    const order: [number, Side][] = [
      [pair, 0],
      [pair, 1],
    ];
    return pair % 2 === 0 ? order : order.reverse();
  });
}

function measured(rounds: Round[], pair: number, setup: Side): ArenaRun {
  const { tokens, elapsed_ms, ttft_ms, tokens_per_second, acceptance_rate, tokens_per_round } =
    summaryOf(rounds, "stop", 0);
  let emittedSoFar = 0;
  const curve = rounds.map((round): [number, number] => {
    emittedSoFar += emitted(round);
    return [round.at_ms, emittedSoFar];
  });
  return {
    pair,
    setup,
    tokens,
    elapsed_ms,
    ttft_ms,
    tokens_per_second,
    acceptance_rate,
    tokens_per_round,
    curve,
  };
}

/** A round cut to at most `room` tokens. */
function shortened(round: Round, room: number): Round {
  if (emitted(round) <= room) return round;
  const accepted = round.drafted.filter(({ outcome }) => outcome === "accepted");
  return { ...round, drafted: accepted.slice(0, room), extra: null };
}

/** Factor on the recording's time for a set-up. */
function slownessOf(setup: Setup): number {
  const { length } = setup.speculation;
  if (isPlain(setup)) return 1;
  const byLength = length.type === "fixed" ? 1 + 0.03 * Math.abs(length.tokens - 4) : 1;
  if (setup.draft === "starter-draft") return byLength;
  return byLength * (setup.draft === "ngram" ? 1.7 : 1.25);
}

/** A pseudorandom number from -1 to 1, by its seed. */
function swing(seed: number): number {
  return Math.sin(seed * 12.9898 + 4.1) * Math.cos(seed * 3.7);
}

type Sample = ArenaRequest & { agoMs: number };

const USUAL: Setup = {
  draft: "starter-draft",
  speculation: defaults.speculation,
  mode: "fastest",
};
const SEEDED: Setup = { ...USUAL, mode: "reproducible" };
const PLAIN: Setup = { ...USUAL, draft: facts.draftNone };
const NGRAM: Setup = { ...USUAL, draft: facts.draftNgram };
const SAMPLES: readonly Sample[] = [
  {
    prompt: "What is speculative decoding?",
    setups: [SEEDED, SEEDED],
    pairs: 8,
    max_tokens: 128,
    agoMs: 3 * DAY_MS,
  },
  {
    prompt: "Tell me a story about a fox who finds a lantern.",
    setups: [USUAL, NGRAM],
    pairs: 3,
    max_tokens: 256,
    agoMs: DAY_MS,
  },
  {
    prompt: "Tell me a story about a fox who finds a lantern.",
    setups: [USUAL, PLAIN],
    pairs: 5,
    max_tokens: 256,
    agoMs: 3_600_000,
  },
];
