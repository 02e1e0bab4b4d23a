/** Replies of the player: recorded ones, and synthetic ones at a rate. */
import type { Conversation } from "../../bindings/Conversation";
import type { Finish } from "../../bindings/Finish";
import type { Message } from "../../bindings/Message";
import type { Reply } from "../../bindings/Reply";
import type { ReplyEvent } from "../../bindings/ReplyEvent";
import type { Round } from "../../bindings/Round";
import type { Speedup } from "../../bindings/Speedup";
import { summaryOf } from "../../trace/summary";
import { Synthesis } from "../../trace/synthetic";
import { textOf } from "../../trace/text";
import type { Channel } from "../channel";
import { restOf, type Recording } from "../recording";
import { replyTo } from "../recordings";
import { notFound, until, type Handlers } from "./answers";
import type { Context } from "./context";
import type { Engine } from "./engine";
import type { History } from "./history";
import type { Preferences } from "./preferences";
import type { Trace, Traces } from "./traces";

const DAY_MS = 86_400_000;
/** Tokens per second of stored synthetic replies. */
const STORED_RATE = 40;

export class Replies {
  /** Tokens per second of a synthetic reply; 0 plays recordings. */
  readonly #rate: number;
  readonly #roundsAtOnce: number;
  readonly #engine: Engine;
  readonly #history: History;
  readonly #traces: Traces;
  readonly #context: Context;
  readonly #preferences: Preferences;

  constructor(
    options: URLSearchParams,
    parts: {
      engine: Engine;
      history: History;
      traces: Traces;
      context: Context;
      preferences: Preferences;
    },
  ) {
    this.#rate = Number(options.get("rate")) || 0;
    this.#roundsAtOnce = Number(options.get("rounds")) || 0;
    this.#engine = parts.engine;
    this.#history = parts.history;
    this.#traces = parts.traces;
    this.#context = parts.context;
    this.#preferences = parts.preferences;
    this.#recall("Tell me a story about a fox who finds a lantern.", 2, true);
    this.#recall("What is speculative decoding?", 20 * 60_000);
    this.#recall("Count from one to twelve.", DAY_MS);
    this.#recall("Why is my draft slow?", 4 * DAY_MS);
    this.#recallLong(Number(options.get("messages")) || 0);
  }

  readonly handlers: Handlers = {
    send: ({ conversation, sent, onEvents }) => {
      this.#context.refuseSent(sent, conversation);
      const words = sent.text || (sent.attached[0]?.name ?? "");
      const home = this.#history.home(conversation, words, sent.folder);
      const user = this.#history.ask(home.id, sent, this.#history.messages.leaf(home.id));
      return this.#reply(home, user, user.id, onEvents);
    },
    send_instead: ({ message, sent, onEvents }) => {
      this.#context.refuseSent(sent);
      const { home, found } = this.#history.found(message, "user");
      const user = this.#history.ask(home.id, sent, found.parent);
      return this.#reply(home, user, user.id, onEvents);
    },
    regenerate: ({ message, onEvents }) => {
      this.#engine.refuseUnready();
      const { home, found } = this.#history.found(message);
      return this.#reply(home, null, found.role === "user" ? message : found.parent, onEvents);
    },
    continue_reply: ({ message, onEvents }) => {
      this.#engine.refuseUnready();
      const { home, found } = this.#history.found(message, "assistant");
      return found.text === "" ? notFound(message) : this.#reply(home, null, message, onEvents);
    },
  };

  /** Plays a reply after the message `after`: to a question, or as a continuation of a reply. */
  async #reply(
    home: Conversation,
    user: Message | null,
    after: number | null,
    channel: Channel<ReplyEvent[]>,
  ): Promise<Reply> {
    const send = (event: ReplyEvent) => channel.onmessage([event]);
    this.#engine.begin();
    const recording = this.#rest(this.#history.messages.upTo(after));
    const reply = this.#history.write(home.id, "assistant", "", after);
    this.#preferences.keepSetup(home.id);
    send({ type: "started", conversation: home, user, reply });
    const stored = await (this.#rate > 0
      ? this.#synthesise(reply, send)
      : this.#play(reply, recording, send));
    this.#engine.end();
    const instead = stored.text === "" ? this.#history.messages.withdraw(stored) : undefined;
    return { conversation: this.#history.touch(home), reply: instead ?? stored };
  }

  /** The recording for the last question, without the part that was already played. */
  #rest(before: Message[]): Recording {
    const asked = before.findLastIndex(({ role }) => role === "user");
    const recording = replyTo(before[asked]?.text ?? "", this.#engine.isDrafting);
    const length = before.slice(asked + 1).reduce((letters, { text }) => letters + text.length, 0);
    return restOf(recording, length);
  }

  async #play(
    reply: Message,
    { rounds, speedups, promptTokens, finish }: Recording,
    send: (event: ReplyEvent) => void,
  ): Promise<Message> {
    send({ type: "prompt", done: 0, total: promptTokens });
    const played: Round[] = [];
    const begin = performance.now();
    for (const [index, round] of rounds.entries()) {
      if (this.#engine.hasStopped() || this.#isFull(played)) break;
      await until(begin + round.at_ms / this.#engine.speed);
      played.push(round);
      send({ type: "round", round });
      const speedup = speedups[index];
      if (speedup) send({ type: "speedup", speedup });
    }
    const whole = played.length === rounds.length;
    const end = this.#engine.hasStopped() ? "cancelled" : whole ? finish : "length";
    return this.#store(reply, { rounds: played, speedups }, end, promptTokens);
  }

  /** Streams an endless reply until it is stopped. */
  async #synthesise(reply: Message, send: (event: ReplyEvent) => void): Promise<Message> {
    const source = new Synthesis(reply.id, this.#rate);
    const played = source.take(this.#roundsAtOnce);
    for (const round of played) send({ type: "round", round });
    const begin = performance.now() - (played.at(-1)?.at_ms ?? 0);
    while (!this.#engine.hasStopped()) {
      const round = source.next();
      // Timers are coarser than rounds: all rounds that are due come at once.
      if (begin + round.at_ms > performance.now()) await until(begin + round.at_ms);
      played.push(round);
      send({ type: "round", round });
    }
    return this.#store(reply, { rounds: played, speedups: [] }, "cancelled", 0);
  }

  #isFull(played: Round[]) {
    const limit = this.#engine.settings.max_tokens;
    return limit > 0 && summaryOf(played, "length", 0).tokens >= limit;
  }

  #store(reply: Message, trace: Trace, finish: Finish | null, promptTokens: number): Message {
    const { rounds, speedups } = trace;
    const { speculation, sampling, system_prompt, thinking, keep_traces } = this.#engine.settings;
    const settings = structuredClone({ speculation, sampling, system_prompt, thinking });
    const speedup: Speedup | null = speedups[rounds.length - 1] ?? null;
    const summary = { ...summaryOf(rounds, finish ?? "stop", promptTokens), settings, speedup };
    const stored: Message = { ...reply, text: textOf(rounds), finish, summary, speedup };
    if (keep_traces) this.#traces.keep(reply.id, { rounds, speedups });
    this.#history.messages.change(reply.id, stored);
    return stored;
  }

  /** Adds a conversation from before this page was opened. */
  #recall(question: string, agoMs: number, pinned = false) {
    const home = this.#history.home(null, question);
    this.#history.change(home.id, { updated_at: Date.now() - agoMs, pinned });
    const { id } = this.#history.write(home.id, "user", question, null);
    const recording = replyTo(question, true);
    const reply = this.#history.write(home.id, "assistant", "", id);
    this.#store(reply, recording, recording.finish, recording.promptTokens);
  }

  /** Adds a conversation of many messages: questions and synthetic replies alternately. */
  #recallLong(messages: number) {
    if (messages === 0) return;
    const home = this.#history.home(null, "A long conversation");
    for (let at = 0; at < messages / 2; at += 1) {
      const before = this.#history.messages.leaf(home.id);
      const question = `What happened on night ${at + 1}?`;
      const { id } = this.#history.write(home.id, "user", question, before);
      const rounds = new Synthesis(at, STORED_RATE).take(30 + ((at * 37) % 90));
      const reply = this.#history.write(home.id, "assistant", "", id);
      this.#store(reply, { rounds, speedups: [] }, "stop", 20 + at);
    }
  }
}
