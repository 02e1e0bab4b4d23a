/**
 * Measures what a frame costs the page's thread, and how late a round is seen. Loaded only when the
 * page is opened with `?meter`; `make bench-ui` reads it by {@link Window.foretokenMeter}.
 */
import type { Backend } from "./backend/backend";
import type { ReplyEvent } from "./bindings/ReplyEvent";

export interface Measured {
  frames: number;
  /** From the first callback of a frame to the end of its rendering. */
  median_ms: number;
  p99_ms: number;
  worst_ms: number;
  /** Rounds that arrived, and the time from then to the end of the frame that painted them. */
  rounds: number;
  delay_median_ms: number;
  delay_p99_ms: number;
  delay_worst_ms: number;
}

export class Meter {
  readonly #channel = new MessageChannel();
  #frames: number[] = [];
  #delays: number[] = [];
  #arrived: number[] = [];
  #running = false;

  constructor() {
    // A message posted in a frame's first callback is read when the frame has been rendered.
    this.#channel.port1.onmessage = ({
      data,
    }: MessageEvent<{ begin: number; arrived: number[] }>) =>
      this.#frameDone(data.begin, data.arrived);
  }

  start() {
    this.#frames = [];
    this.#delays = [];
    this.#arrived = [];
    if (this.#running) return;
    this.#running = true;
    requestAnimationFrame(this.#frame);
  }

  stop(): Measured {
    this.#running = false;
    const frames = this.#frames.toSorted((a, b) => a - b);
    const delays = this.#delays.toSorted((a, b) => a - b);
    return {
      frames: frames.length,
      median_ms: at(frames, 0.5),
      p99_ms: at(frames, 0.99),
      worst_ms: at(frames, 1),
      rounds: delays.length,
      delay_median_ms: at(delays, 0.5),
      delay_p99_ms: at(delays, 0.99),
      delay_worst_ms: at(delays, 1),
    };
  }

  /** The same backend, whose rounds are noticed when they arrive. */
  watch(backend: Backend): Backend {
    const noticed = (onEvent: (event: ReplyEvent) => void) => (event: ReplyEvent) => {
      if (this.#running && event.type === "round") this.#arrived.push(performance.now());
      onEvent(event);
    };
    return Object.assign(Object.create(backend) as Backend, {
      send: (conversation: number | null, text: string, onEvent: (event: ReplyEvent) => void) =>
        backend.send(conversation, text, noticed(onEvent)),
      regenerate: (message: number, onEvent: (event: ReplyEvent) => void) =>
        backend.regenerate(message, noticed(onEvent)),
    });
  }

  /** Asked for first in each frame, before anything the page does in it: so it runs first in the next. */
  readonly #frame = () => {
    if (!this.#running) return;
    requestAnimationFrame(this.#frame);
    this.#channel.port2.postMessage({ begin: performance.now(), arrived: this.#arrived });
    this.#arrived = [];
  };

  #frameDone(begin: number, arrived: number[]) {
    const end = performance.now();
    this.#frames.push(end - begin);
    for (const arrival of arrived) this.#delays.push(end - arrival);
  }
}

/** The value below which a share of the sorted ones lie; 0 without any. */
function at(sorted: readonly number[], share: number): number {
  return sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)] ?? 0;
}

declare global {
  interface Window {
    foretokenMeter?: Meter;
  }
}
