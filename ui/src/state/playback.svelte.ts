/**
 * The replay of a stored reply: a moment on the trace's own clock, and a trace that holds the rounds
 * that had ended by then. It runs on animation frames, and is fed to the page a slice a frame, so
 * that a long trace stays easy to move about in.
 */
import type { Round } from "../bindings/Round";
import type { Speedup } from "../bindings/Speedup";
import { Clock } from "../trace/clock";
import { stagesOf, type Stage } from "../trace/stage";
import { Trace } from "./trace.svelte";

/** Times the pace it was written at; null is as fast as possible. */
export type Speed = number | null;
/** The slowest is for small models, whose replies take a tenth of a second. */
export const SPEEDS: readonly Speed[] = [0.02, 0.1, 0.25, 0.5, 1, 2, 4, null];

/** A replay begins at the pace it was written at, or as slowly as it takes to last this long. */
const WATCHABLE_MS = 4000;
/** Rounds given to the page in a frame: what it can count and draw within one. */
const SLICE_ROUNDS = 4000;
/** As fast as possible is at most this many frames, and at least a round a frame. */
const FASTEST_FRAMES = 600;
/** How long a stage of a round stays when rounds are shown in stages. */
const STAGE_MS = 700;
/** A page in the background gets no frames; what passed meanwhile is not caught up with. */
const LONGEST_FRAME_MS = 250;

/** A draft that ran ahead for less than this would only flicker. */
const SHORTEST_AHEAD_MS = 60;

const NOTHING = new Clock([]);

export class Playback {
  /** The reply that is replayed; null without a replay. */
  message = $state<number | null>(null);
  /** All its rounds, and the clock they were written by. */
  rounds = $state.raw<readonly Round[]>([]);
  clock = $state.raw(NOTHING);
  /** The speed-up after each of them. */
  speedups = $state.raw<readonly (Speedup | null)[]>([]);
  /** The moment shown, in milliseconds from the start of the reply. */
  position = $state(0);
  /** What the page shows: the rounds that had ended at the moment, once a long trace was fed. */
  trace = $state.raw(new Trace());
  playing = $state(false);
  speed = $state<Speed>(1);
  /** Whether rounds are shown in stages; they are then played at an even pace. */
  staged = $state(false);
  /** How far the round after those shown has come; "emitted" before it begins. */
  stage = $state<Stage>("emitted");

  /** Rounds that had ended at the moment. */
  readonly count = $derived(this.clock.countAt(this.position));
  /** The speed-up of these rounds. */
  readonly speedup = $derived(this.speedups[this.count - 1] ?? null);

  /** The round under way once it was drafted and while it is checked; null where it is too short to see. */
  readonly ahead = $derived.by(() => {
    const next = this.rounds[this.count];
    if (!next) return null;
    if (this.staged) return this.stage === "emitted" ? null : next;
    const begin = this.clock.momentOf(this.count);
    const drafted = begin + next.times.draft_ms;
    const forMs = this.clock.momentOf(this.count + 1) - drafted;
    const isSeen = this.speed !== null && forMs / this.speed >= SHORTEST_AHEAD_MS;
    return isSeen && this.position > begin && this.position >= drafted ? next : null;
  });

  /** On its way to what shall be shown, when that is less than what is. */
  #coming: Trace | null = null;
  #fed = 0;
  #frame: number | undefined;
  #last: number | undefined;
  #stageMs = 0;

  /** Shows a reply from its start; a person who wants little motion begins it by hand. */
  open(
    message: number,
    rounds: readonly Round[],
    playing: boolean,
    speedups: readonly (Speedup | null)[] = [],
  ) {
    this.close();
    this.message = message;
    this.rounds = rounds;
    this.speedups = speedups;
    this.clock = new Clock(rounds);
    this.speed = watchable(this.clock.end);
    if (playing) this.play();
  }

  close() {
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame);
    this.#frame = undefined;
    this.message = null;
    this.rounds = [];
    this.speedups = [];
    this.clock = NOTHING;
    this.position = 0;
    this.playing = false;
    this.stage = "emitted";
    this.#show(new Trace());
  }

  /** From where it stands, or again from the start when it stands at the end. */
  play() {
    if (this.count >= this.clock.rounds) this.#moveTo(0);
    this.playing = true;
    this.#stageMs = 0;
    this.#run();
  }

  pause() {
    this.playing = false;
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  /** Shows a moment; playing goes on from there. */
  seek(moment: number) {
    this.#moveTo(Math.min(Math.max(0, moment), this.clock.end));
  }

  toStart() {
    this.pause();
    this.seek(0);
  }

  toEnd() {
    this.pause();
    this.seek(this.clock.end);
  }

  /** One round further, or one stage of it. */
  next() {
    this.pause();
    this.#step();
  }

  /** One round back, or one stage of it. */
  previous() {
    this.pause();
    if (!this.staged) {
      this.seek(this.clock.momentOf(this.count - 1));
      return;
    }
    const begun = this.stage !== "emitted";
    if (!begun && this.count === 0) return;
    if (!begun) this.seek(this.clock.momentOf(this.count - 1));
    const stages = stagesOf(this.rounds[this.count]);
    const at = begun ? stages.indexOf(this.stage) : stages.length - 1;
    this.stage = stages[at - 1] ?? "emitted";
  }

  /** Shows rounds in stages, or as wholes again. */
  changeStaged(staged: boolean) {
    this.staged = staged;
    this.stage = "emitted";
    this.#stageMs = 0;
  }

  #step() {
    if (this.count >= this.clock.rounds) return;
    if (this.staged) {
      const stages = stagesOf(this.rounds[this.count]);
      const at = this.stage === "emitted" ? -1 : stages.indexOf(this.stage);
      const stage = stages[at + 1] ?? "emitted";
      if (stage !== "emitted") {
        this.stage = stage;
        return;
      }
    }
    this.seek(this.clock.momentOf(this.count + 1));
  }

  #moveTo(moment: number) {
    this.position = moment;
    this.stage = "emitted";
    this.#run();
  }

  #run() {
    this.#frame ??= requestAnimationFrame((now) => {
      this.#frame = undefined;
      const passed = Math.min(LONGEST_FRAME_MS, now - (this.#last ?? now));
      this.#last = this.playing ? now : undefined;
      if (this.playing) this.#advance(passed);
      this.#feed(now);
      if (this.playing || !this.#settled()) this.#run();
    });
  }

  #advance(passed: number) {
    if (this.staged) this.#advanceStages(passed);
    else if (this.speed === null) {
      const step = Math.ceil(this.clock.rounds / FASTEST_FRAMES);
      this.position = this.clock.momentOf(this.count + step);
    } else {
      this.position = Math.min(this.clock.end, this.position + passed * this.speed);
    }
    if (this.count >= this.clock.rounds) this.playing = false;
  }

  #advanceStages(passed: number) {
    // Slower than this nobody would wait for.
    this.#stageMs += this.speed === null ? STAGE_MS : passed * Math.max(1, this.speed);
    if (this.#stageMs < STAGE_MS) return;
    this.#stageMs = 0;
    this.#step();
  }

  /** Brings the trace shown nearer to the rounds that it shall hold: forwards by more, back by a new one. */
  #feed(now: number) {
    const wanted = this.count;
    if (wanted < this.#fed) this.#begin();
    const filling = this.#coming ?? this.trace;
    const until = Math.min(wanted, this.#fed + SLICE_ROUNDS);
    filling.show(this.rounds.slice(this.#fed, until), now);
    this.#fed = until;
    if (until < wanted) return;
    // While it plays numbers follow a few times a second, as in a reply that is being written.
    if (this.#coming || !this.playing) filling.flush();
    if (this.#coming) this.trace = this.#coming;
    this.#coming = null;
  }

  #begin() {
    this.#coming = new Trace();
    this.#fed = 0;
  }

  #show(trace: Trace) {
    this.trace = trace;
    this.#coming = null;
    this.#fed = 0;
  }

  #settled(): boolean {
    return this.#coming === null && this.#fed === this.count;
  }
}

function watchable(end: number): Speed {
  const slower = SPEEDS.filter((speed) => speed !== null && speed <= 1);
  return slower.findLast((speed) => end >= WATCHABLE_MS * (speed ?? 1)) ?? slower[0] ?? 1;
}
