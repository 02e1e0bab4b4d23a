/**
 * The reply under way, of which there is at most one: asks for it, takes its rounds or its text, and
 * lets the stored reply replace the preview when it ends. Also keeps why the last question was
 * refused.
 */
import { SvelteMap } from "svelte/reactivity";
import type { Message } from "../bindings/Message";
import type { Reply as Stored } from "../bindings/Reply";
import type { PromptSize } from "../bindings/PromptSize";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Sent } from "../bindings/Sent";
import type { Speedup } from "../bindings/Speedup";
import { frames } from "../frames";
import { BackendError, type Backend } from "../backend/backend";
import type { Conversations } from "./conversations.svelte";
import { Trace } from "./trace.svelte";
import type { Traces } from "./traces.svelte";
import { t } from "../messages/say";
import { errorWords } from "../messages/shell";

/** A question that no longer fits into the context together with its conversation. */
interface TooLong {
  conversation: number;
  /** What was to be sent; null for a reply that was to be written again. */
  next: Sent | null;
  again: () => Promise<void>;
}

/** Why a conversation's last question was refused. */
interface Refusal {
  problem: string;
  /** Length of the prompt, where it is too long and was counted. */
  size: PromptSize | null;
  /** Whether it is too long for the context, with its conversation or by itself. */
  overflows: boolean;
  /** What was in the context then; null where that is not known. */
  context: string | null;
  /** Set where it helps to drop messages from the context. */
  tooLong: TooLong | null;
}

export class Reply {
  /** From the question's sending to the stored reply's arrival. */
  active = $state(false);
  stopping = $state(false);
  /** The reply being written, from the moment the shell has begun it. */
  message = $state.raw<Message | null>(null);
  trace = $state.raw<Trace | null>(null);
  /** Its speed-up so far, with the parts that it continues. */
  speedup = $state.raw<Speedup | null>(null);
  /** How far the prompt has been read. */
  prompt = $state.raw<{ done: number; total: number } | null>(null);
  /** Said to screen readers when a reply ends. */
  announcement = $state("");

  /** By conversation; null is one that is to come. */
  readonly #refusals = new SvelteMap<number | null, Refusal>();
  /** Where rounds go; also those that arrive after the stored reply. */
  #receiving: Trace | null = null;
  /** Of a reply that has no rounds, what was written so far. */
  #text = "";
  readonly #backend: Backend;
  readonly #conversations: Conversations;
  readonly #traces: Traces;
  readonly #onBegin: (conversation: number) => void;

  /** `onBegin` runs with the conversation's id when a reply's first event arrives. */
  constructor(
    backend: Backend,
    conversations: Conversations,
    traces: Traces,
    onBegin: (conversation: number) => void,
  ) {
    this.#backend = backend;
    this.#conversations = conversations;
    this.#traces = traces;
    this.#onBegin = onBegin;
  }

  /** Why the open conversation's last question was refused. */
  get refusal(): Refusal | null {
    const refusal = this.#refusals.get(this.#conversations.current) ?? null;
    const isPast = refusal?.overflows && (refusal.context ?? this.#context) !== this.#context;
    return isPast ? null : refusal;
  }

  /** Tells one state of the open conversation's context from another. */
  get #context(): string {
    const { seenFrom, messages } = this.#conversations;
    return `${seenFrom} ${messages.at(-1)?.id}`;
  }

  /** The same in a sentence. */
  get problem(): string | null {
    return this.refusal?.problem ?? null;
  }

  /** Set with the problem where it helps to drop messages from the context. */
  get tooLong(): TooLong | null {
    return this.refusal?.tooLong ?? null;
  }

  /** Takes up a reply that is written while the page is loaded; `show` opens its conversation if none is open. */
  async takeUp(show: (conversation: number) => Promise<void>) {
    let asked: number | null = null;
    let followed = false;
    const take = (event: ReplyEvent) => {
      if (event.type === "started") {
        // This page's own question came first; it is told of that reply already.
        if (this.active && !followed) return;
        followed = this.active = true;
        asked = event.conversation.id;
      }
      if (!followed) return;
      this.#take(event);
      if (event.type === "started" && this.#conversations.current === null) void show(asked ?? 0);
    };
    await this.#end(
      () => asked,
      null,
      () => this.#backend.followReply(take),
      () => followed,
    );
  }

  /** Asks in the open conversation; `onAccepted` runs once the question is stored. */
  async send(sent: Sent, onAccepted: () => void) {
    const conversation = this.#conversations.current;
    const again = () => this.send(sent, onAccepted);
    const offer = conversation === null ? null : { conversation, next: sent, again };
    await this.#run(offer, (onEvent) =>
      this.#backend.send(conversation, sent, (event) => {
        if (event.type === "started" && event.user) {
          onAccepted();
          this.#arriveIn(event.conversation.id, conversation);
        }
        onEvent(event);
      }),
    );
  }

  /** Asks in the place of a question, which is kept with all that followed it. */
  async sendInstead(question: number, sent: Sent) {
    const again = () => this.sendInstead(question, sent);
    await this.#run(this.#offer("user", question, sent, again), (onEvent) =>
      this.#backend.sendInstead(question, sent, onEvent),
    );
  }

  /** Replies once more to what a reply answered, which is kept, or to the question at the end that has no reply. */
  async regenerate(message: number) {
    const again = () => this.regenerate(message);
    const role = this.#conversations.unanswered?.id === message ? "user" : "assistant";
    await this.#run(this.#offer(role, message, null, again), (onEvent) =>
      this.#backend.regenerate(message, onEvent),
    );
  }

  /** Goes on where a reply was cut. */
  async continue(message: number) {
    await this.#run(null, (onEvent) => this.#backend.continueReply(message, onEvent));
  }

  /** What is left out makes room at the end of a conversation, so it helps with the last of its messages alone. */
  #offer(
    role: Message["role"],
    message: number,
    next: Sent | null,
    again: () => Promise<void>,
  ): TooLong | null {
    const { current, messages } = this.#conversations;
    const last = messages.findLast((other) => other.role === role)?.id === message;
    return current !== null && last ? { conversation: current, next, again } : null;
  }

  /** Drops messages of the conversation from the context, and asks again if it is still open. */
  async makeRoom(drop: "oldest" | "all") {
    const offer = this.tooLong;
    if (!offer || this.active) return;
    this.dismiss();
    const { conversation, next } = offer;
    try {
      const asked = next ? null : (this.#conversations.seenQuestions.at(-1)?.id ?? null);
      const changed =
        drop === "oldest"
          ? this.#backend.leaveOutOldest(conversation, next)
          : this.#backend.seeFrom(conversation, asked);
      this.#conversations.update(await changed);
    } catch (thrown) {
      this.#refuse(conversation, BackendError.from(thrown));
      return;
    }
    if (this.#conversations.current === conversation) await offer.again();
  }

  /** Forgets why the open conversation's last question was refused. */
  dismiss() {
    this.#refusals.delete(this.#conversations.current);
  }

  /** Forgets what was too long: another model counts otherwise. */
  recount() {
    for (const [conversation, { overflows }] of this.#refusals) {
      if (overflows) this.#refusals.delete(conversation);
    }
  }

  #refuse(conversation: number | null, error: BackendError, offer: TooLong | null = null) {
    const { code, prompt: size } = error;
    const tooLong = code === "prompt_too_long" ? offer : null;
    const overflows = code === "prompt_too_long" || code === "message_too_long";
    const context = conversation === this.#conversations.current ? this.#context : null;
    const problem = errorWords(error);
    this.#refusals.set(conversation, { problem, size, overflows, context, tooLong });
  }

  async stop() {
    if (!this.active) return;
    this.stopping = true;
    try {
      await this.#backend.stop();
    } catch (thrown) {
      this.stopping = false;
      this.#refuse(this.#conversations.current, BackendError.from(thrown));
    }
  }

  /** After the open conversation was fetched: its stored state knows less than the preview. */
  replaceIn(conversation: number) {
    if (this.message?.conversation === conversation) this.#conversations.place(this.message);
  }

  /** Follows a new conversation's first question into it, unless the person has gone elsewhere. */
  #arriveIn(arrived: number, asked: number | null) {
    if (asked === null && this.#conversations.current === null) {
      this.#conversations.current = arrived;
    }
  }

  async #run(
    offer: TooLong | null,
    ask: (onEvent: (event: ReplyEvent) => void) => Promise<Stored>,
  ) {
    if (this.active) return;
    this.active = true;
    this.dismiss();
    this.announcement = "";
    const { current } = this.#conversations;
    await this.#end(
      () => this.message?.conversation ?? current,
      offer,
      () => ask((event) => this.#take(event)),
      () => true,
    );
  }

  /** Waits for the end of a reply, and takes it if it is this page's: `own`. */
  async #end(
    conversation: () => number | null,
    offer: TooLong | null,
    ended: () => Promise<Stored | null>,
    own: () => boolean,
  ) {
    try {
      const stored = await ended();
      if (stored && own()) await this.#finish(stored);
    } catch (thrown) {
      const error = BackendError.from(thrown);
      if (!own()) return;
      this.#refuse(conversation(), error, offer);
      this.trace?.flush();
      if (this.message) await this.#conversations.refresh();
    } finally {
      if (own()) this.#clear();
    }
  }

  #clear() {
    this.active = false;
    this.stopping = false;
    this.message = null;
    this.trace = null;
    this.speedup = null;
    this.prompt = null;
  }

  #take(event: ReplyEvent) {
    switch (event.type) {
      case "started":
        this.#conversations.update(event.conversation);
        if (event.user) this.#conversations.place(event.user);
        this.message = event.reply;
        this.trace = this.#receiving = new Trace();
        this.#traces.keep(event.reply.id, this.trace);
        this.#conversations.place(event.reply);
        this.#text = "";
        this.speedup = this.prompt = null;
        this.#onBegin(event.conversation.id);
        break;
      case "part_ended":
        this.trace?.flush();
        if (this.trace?.gap) void this.#traces.refresh(event.reply.id);
        this.#conversations.place(event.reply);
        break;
      case "prompt":
        this.prompt = { done: event.done, total: event.total };
        break;
      case "round":
        this.#receiving?.push(event.round);
        // Late ones are shown with what says that the reply is over.
        if (!this.active) this.#receiving?.flush();
        break;
      case "speedup":
        this.speedup = event.speedup;
        break;
      case "text":
        this.#text += event.delta;
        frames.ask(this.#showText);
        break;
    }
  }

  readonly #showText = () => {
    if (!this.message) return;
    this.message = { ...this.message, text: this.#text };
    this.#conversations.place(this.message);
  };

  async #finish({ conversation, reply }: Stored) {
    this.trace?.flush();
    if (this.trace?.gap || this.trace === null) void this.#traces.refresh(reply.id);
    this.#conversations.update(conversation);
    const begun = this.message?.id ?? reply.id;
    if (reply.id === begun) this.#conversations.place(reply);
    // One in which nothing is leaves another in its place.
    else await this.#conversations.refresh();
    this.announcement =
      reply.finish === "cancelled" ? t("window.replyStopped") : t("window.replyFinished");
    void this.#conversations.writeTitle(conversation.id);
  }
}
