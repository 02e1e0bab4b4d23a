/**
 * The replay of a stored reply: a moment on the trace's own clock, and a trace of the rounds that
 * had ended by then. It runs on animation frames and feeds the page in slices, so that seeking in a
 * long trace stays fast.
 */
import type { Round } from "../bindings/Round";
import type { Speedup } from "../bindings/Speedup";
import { Clock } from "../trace/clock";
import { stagesOf, type Stage } from "../trace/stage";
import { Trace } from "./trace.svelte";

/** Factor on the original pace; null is as fast as possible. */
export type Speed = number | null;
/** Selectable speeds. The slowest is for small models, whose replies take a tenth of a second. */
export const SPEEDS: readonly Speed[] = [0.02, 0.1, 0.25, 0.5, 1, 2, 4, null];

/** Shortest duration of a replay at its initial speed. */
const WATCHABLE_MS = 4000;
/** Rounds fed to the page in a frame, which it can count and draw in time. */
const SLICE_ROUNDS = 4000;
/** Most frames of a replay at full speed; a frame shows at least one round. */
const FASTEST_FRAMES = 600;
/** Duration of a stage when rounds are shown in stages. */
const STAGE_MS = 700;
/** Longest step of a frame: a page in the background gets no frames, and skips nothing later. */
const LONGEST_FRAME_MS = 250;

/** Shortest time a draft is shown ahead; less would flicker. */
const SHORTEST_AHEAD_MS = 60;

const NOTHING = new Clock([]);

export class Playback {
  /** The replayed reply; null without a replay. */
  message = $state<number | null>(null);
  /** All rounds of the reply, and their clock. */
  rounds = $state.raw<readonly Round[]>([]);
  clock = $state.raw(NOTHING);
  /** The speed-up after each round. */
  speedups = $state.raw<readonly (Speedup | null)[]>([]);
  /** The moment shown, in milliseconds from the start of the reply. */
  position = $state(0);
  /** The shown trace: rounds that had ended at `position`, once a long trace has been fed. */
  trace = $state.raw(new Trace());
  playing = $state(false);
  speed = $state<Speed>(1);
  /** Whether rounds are shown in stages, which play at an even pace. */
  staged = $state(false);
  /** Stage of the round after those shown; "emitted" before it begins. */
  stage = $state<Stage>("emitted");

  /** Number of rounds that had ended at `position`. */
  readonly count = $derived(this.clock.countAt(this.position));
  /** The speed-up after these rounds. */
  readonly speedup = $derived(this.speedups[this.count - 1] ?? null);

  /** The round being verified, with its draft complete; null if it is too short to see. */
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

  /** The next trace while it is being fed, after a step back. */
  #coming: Trace | null = null;
  #fed = 0;
  #frame: number | undefined;
  #last: number | undefined;
  #stageMs = 0;

  /** Shows a reply from its start; plays at once unless reduced motion is on. */
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

  /** Plays from the current moment, or from the start at the end. */
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

  /** Shows a moment; a replay that plays continues from there. */
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

  /** Advances by one round, or by one stage of it. */
  next() {
    this.pause();
    this.#step();
  }

  /** Goes back by one round, or by one stage of it. */
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

  /** Switches between rounds in stages and whole rounds. */
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
    // A speed below 1 does not slow the stages down: that would take too long.
    this.#stageMs += this.speed === null ? STAGE_MS : passed * Math.max(1, this.speed);
    if (this.#stageMs < STAGE_MS) return;
    this.#stageMs = 0;
    this.#step();
  }

  /** Feeds a slice of rounds to the shown trace; a step back feeds a new one. */
  #feed(now: number) {
    const wanted = this.count;
    if (wanted < this.#fed) this.#begin();
    const filling = this.#coming ?? this.trace;
    const until = Math.min(wanted, this.#fed + SLICE_ROUNDS);
    filling.show(this.rounds.slice(this.#fed, until), now);
    this.#fed = until;
    if (until < wanted) return;
    // While it plays, numbers change a few times a second, as in a reply being written.
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
