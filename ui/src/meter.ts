/**
 * Measures the cost of frames and the delay of rounds. Loaded only with `?meter`; `make bench-ui`
 * reads the result by {@link Window.foretokenMeter}.
 */
import type { Backend } from "./backend/backend";
import type { ReplyEvent } from "./bindings/ReplyEvent";
import type { Sent } from "./bindings/Sent";
import type { Frames, Lane } from "./frames";

export interface Measured {
  /** Duration of the measurement. */
  seconds: number;
  /** Frames requested by the page, without those for pointers or scroll bars. */
  frames: number;
  frames_per_second: number;
  /** Cost of a frame on this thread, from its first callback to the end of its rendering. */
  median_ms: number;
  p99_ms: number;
  worst_ms: number;
  /** Cost of all frames as a share of one core. */
  share: number;
  /** Rounds received, and their delay until the end of the frame that painted them. */
  rounds: number;
  delay_median_ms: number;
  delay_p99_ms: number;
  delay_worst_ms: number;
}

export class Meter {
  #begun = 0;
  #frames: number[] = [];
  #delays: number[] = [];
  #arrived: number[] = [];
  #running = false;

  constructor(frames: Frames) {
    frames.onframe = (begin, end, lane) => this.#take(begin, end, lane);
  }

  start() {
    this.#begun = performance.now();
    this.#frames = [];
    this.#delays = [];
    this.#arrived = [];
    this.#running = true;
  }

  stop(): Measured {
    this.#running = false;
    const seconds = (performance.now() - this.#begun) / 1000;
    const frames = this.#frames.toSorted((a, b) => a - b);
    const delays = this.#delays.toSorted((a, b) => a - b);
    const cost = frames.reduce((sum, ms) => sum + ms, 0) / 1000;
    return {
      seconds,
      frames: frames.length,
      frames_per_second: frames.length / seconds,
      median_ms: at(frames, 0.5),
      p99_ms: at(frames, 0.99),
      worst_ms: at(frames, 1),
      share: cost / seconds,
      rounds: delays.length,
      delay_median_ms: at(delays, 0.5),
      delay_p99_ms: at(delays, 0.99),
      delay_worst_ms: at(delays, 1),
    };
  }

  /** Wraps a backend to record the arrival of rounds. */
  watch(backend: Backend): Backend {
    const noticed = (onEvent: (event: ReplyEvent) => void) => (event: ReplyEvent) => {
      if (this.#running && event.type === "round") this.#arrived.push(performance.now());
      onEvent(event);
    };
    return Object.assign(Object.create(backend) as Backend, {
      send: (conversation: number | null, sent: Sent, onEvent: (event: ReplyEvent) => void) =>
        backend.send(conversation, sent, noticed(onEvent)),
      regenerate: (message: number, onEvent: (event: ReplyEvent) => void) =>
        backend.regenerate(message, noticed(onEvent)),
    });
  }

  /** Records a frame; a frame of the text shows the rounds received before its start. */
  #take(begin: number, end: number, lane: Lane) {
    if (!this.#running) return;
    this.#frames.push(end - begin);
    if (lane !== "text") return;
    const shown = this.#arrived.filter((arrival) => arrival <= begin);
    for (const arrival of shown) this.#delays.push(end - arrival);
    this.#arrived.splice(0, shown.length);
  }
}

/** Quantile of sorted values; 0 without values. */
function at(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

declare global {
  interface Window {
    foretokenMeter?: Meter;
  }
}
