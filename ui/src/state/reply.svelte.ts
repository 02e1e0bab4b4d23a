/**
 * The reply under way, of which there is at most one. Requests it, receives its rounds or its text,
 * and replaces the preview with the stored reply at the end. Also keeps why the last question was
 * refused.
 */
import { SvelteMap } from "svelte/reactivity";
import type { Call } from "../bindings/Call";
import type { CallDecision } from "../bindings/CallDecision";
import type { Message } from "../bindings/Message";
import type { Reply as Stored } from "../bindings/Reply";
import type { PromptSize } from "../bindings/PromptSize";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Sent } from "../bindings/Sent";
import type { Speedup } from "../bindings/Speedup";
import { frames } from "../frames";
import { BackendError, type Backend } from "../backend/backend";
import type { Conversations } from "./conversations.svelte";
import type { ConversationList } from "./conversationList.svelte";
import { Trace } from "./trace.svelte";
import type { Traces } from "./traces.svelte";
import { t } from "../messages/say";
import { errorWords } from "../messages/errors";

/** A question that does not fit in the context together with its conversation. */
interface TooLong {
  conversation: number;
  /** The unsent message; null for a reply to be regenerated. */
  next: Sent | null;
  again: () => Promise<void>;
}

/** A call while the model writes it. */
export interface WrittenCall {
  server: string | null;
  tool: string;
  /** The beginning of a JSON object. */
  arguments: string;
}

export type CallProgress = Extract<ReplyEvent, { type: "call_progress" }>;

/** Why a conversation's last question was refused. */
interface Refusal {
  problem: string;
  /** Length of the prompt, if it is too long and was counted. */
  size: PromptSize | null;
  /** Whether the prompt is too long for the context, with or without its conversation. */
  overflows: boolean;
  /** Whether a remote server refused it; another model may answer. */
  isRemote: boolean;
  /** State of the context at the refusal; null if unknown. */
  context: string | null;
  /** Set if dropping messages from the context helps. */
  tooLong: TooLong | null;
}

/** The conversations of the window. */
export interface ShownConversations {
  readonly list: ConversationList;
  /** The conversations of all chats. */
  readonly all: () => readonly Conversations[];
  /** The one of the chat with the focus, to which requests belong. */
  readonly focused: () => Conversations;
}

export class Reply {
  /** True from the sending of the question to the arrival of the stored reply. */
  active = $state(false);
  stopping = $state(false);
  /** The reply being written, once its first event has arrived. */
  message = $state.raw<Message | null>(null);
  trace = $state.raw<Trace | null>(null);
  /** Speed-up so far, including the parts that the reply continues. */
  speedup = $state.raw<Speedup | null>(null);
  /** Progress of the prefill, in tokens. */
  prompt = $state.raw<{ done: number; total: number } | null>(null);
  /** Percent of new pictures that the model has looked at; null without any. */
  looked = $state.raw<number | null>(null);
  /** Calls of the part being written, which have no ids yet. */
  writing = $state.raw<readonly WrittenCall[]>([]);
  /** Place in the text where the calls begin; null before. */
  callsStart = $state<number | null>(null);
  /** Whether the newest part is complete, and its calls wait or run. */
  calling = $state(false);
  /** Latest progress of a running call. */
  progress = $state.raw<CallProgress | null>(null);
  /** Announcement for screen readers when a reply ends. */
  announcement = $state("");

  /** Refusals by conversation; null is a new one. */
  readonly #refusals = new SvelteMap<number | null, Refusal>();
  /** The loaded target at the last count. */
  #target: string | null = null;
  /** The trace that receives rounds, including those after the stored reply. */
  #receiving: Trace | null = null;
  /** Calls so far, which are shown with the next frame. */
  #written: readonly WrittenCall[] = [];
  /** The text so far of a reply without rounds. */
  #text = "";
  readonly #backend: Backend;
  readonly #shown: ShownConversations;
  readonly #traces: Traces;
  readonly #onBegin: (conversation: number) => void;
  readonly #onEnd: (stored: Stored, ms: number) => void;
  /** Time of the request. */
  #asked = 0;

  /**
   * `onBegin` runs with the conversation's id when a reply's first event arrives, `onEnd` with the
   * stored reply and the time since its request.
   */
  constructor(
    backend: Backend,
    shown: ShownConversations,
    traces: Traces,
    onBegin: (conversation: number) => void,
    onEnd: (stored: Stored, ms: number) => void,
  ) {
    this.#backend = backend;
    this.#shown = shown;
    this.#traces = traces;
    this.#onBegin = onBegin;
    this.#onEnd = onEnd;
  }

  get #conversations(): Conversations {
    return this.#shown.focused();
  }

  /** Why the last question of the conversation with the focus was refused. */
  get refusal(): Refusal | null {
    return this.refusalIn(this.#conversations);
  }

  /** Why the last question of a chat's conversation was refused. */
  refusalIn(conversations: Conversations): Refusal | null {
    const refusal = this.#refusals.get(conversations.current) ?? null;
    const context = contextOf(conversations);
    const isPast = refusal?.overflows && (refusal.context ?? context) !== context;
    return isPast ? null : refusal;
  }

  /** The chat's conversations that show this one. */
  #showing(conversation: number | null): Conversations | undefined {
    return this.#shown.all().find(({ current }) => current === conversation);
  }

  #place(message: Message) {
    this.#showing(message.conversation)?.place(message);
  }

  /** The refusal in a sentence. */
  get problem(): string | null {
    return this.refusal?.problem ?? null;
  }

  /** Set with the problem if dropping messages from the context helps. */
  get tooLong(): TooLong | null {
    return this.refusal?.tooLong ?? null;
  }

  /**
   * Follows a reply that was under way when the page was loaded; `show` opens its conversation if
   * none is open.
   */
  async follow(show: (conversation: number) => Promise<void>) {
    let asked: number | null = null;
    let followed = false;
    const take = (event: ReplyEvent) => {
      if (event.type === "started") {
        // This page has sent a question already; its own handler receives that reply.
        if (this.active && !followed) return;
        followed = this.active = true;
        asked = event.conversation.id;
        this.#asked = performance.now();
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

  /** Sends a message in the open conversation; `onAccepted` runs once it is stored. */
  async send(sent: Sent, onAccepted: () => void) {
    const home = this.#conversations;
    const conversation = home.current;
    const again = () => this.send(sent, onAccepted);
    const offer = conversation === null ? null : { conversation, next: sent, again };
    await this.#run(offer, (onEvent) =>
      this.#backend.send(conversation, this.#filed(conversation, sent), (event) => {
        if (event.type === "started" && event.user) {
          onAccepted();
          this.#arriveIn(event.conversation.id, home, conversation);
        }
        onEvent(event);
      }),
    );
  }

  /** The message with the folder of a new conversation. */
  #filed(conversation: number | null, sent: Sent): Sent {
    const { newIn } = this.#conversations.folders;
    return conversation === null && newIn ? { ...sent, folder: newIn.id } : sent;
  }

  /**
   * Sends an edited question as a sibling of `question`, which is kept with everything after it.
   */
  async sendInstead(question: number, sent: Sent) {
    const again = () => this.sendInstead(question, sent);
    await this.#run(this.#offer("user", question, sent, again), (onEvent) =>
      this.#backend.sendInstead(question, sent, onEvent),
    );
  }

  /** Regenerates a reply as a sibling, or answers the question at the end that has no reply. */
  async regenerate(message: number) {
    const again = () => this.regenerate(message);
    const role = this.#conversations.unanswered?.id === message ? "user" : "assistant";
    await this.#run(this.#offer(role, message, null, again), (onEvent) =>
      this.#backend.regenerate(message, onEvent),
    );
  }

  /** Continues a reply that was cut. */
  async continue(message: number) {
    await this.#run(null, (onEvent) => this.#backend.continueReply(message, onEvent));
  }

  /**
   * Dropping messages frees room only at the end of a conversation, so it is offered for the last
   * message of `role`.
   */
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

  /** Drops messages from the context, and tries again if the conversation is still open. */
  async makeRoom(drop: "oldest" | "all") {
    const offer = this.tooLong;
    if (!offer || this.active) return;
    this.dismiss();
    const { conversation, next } = offer;
    try {
      const asked = next ? null : (this.#conversations.questionsInContext.at(-1)?.id ?? null);
      const changed =
        drop === "oldest"
          ? this.#backend.leaveOutOldest(conversation, next)
          : this.#backend.setContextStart(conversation, asked);
      this.#shown.list.update(await changed);
    } catch (thrown) {
      this.#refuse(conversation, BackendError.from(thrown));
      return;
    }
    if (this.#conversations.current === conversation) await offer.again();
  }

  /** Removes the refusal of the open conversation. */
  dismiss() {
    this.#refusals.delete(this.#conversations.current);
  }

  /**
   * Removes refusals that may no longer hold for `target`: another model counts differently, and
   * need not be on the server that refused.
   */
  recount(target: string | null) {
    const isOther = target !== this.#target;
    this.#target = target;
    for (const [conversation, { overflows, isRemote }] of this.#refusals) {
      if (overflows || (isOther && isRemote)) this.#refusals.delete(conversation);
    }
  }

  #refuse(conversation: number | null, error: BackendError, offer: TooLong | null = null) {
    const { code, prompt: size } = error;
    const tooLong = code === "prompt_too_long" ? offer : null;
    const overflows = code === "prompt_too_long" || code === "message_too_long";
    const shown = this.#showing(conversation);
    const context = shown ? contextOf(shown) : null;
    this.#refusals.set(conversation, {
      problem: errorWords(error),
      size,
      overflows,
      isRemote: code === "remote",
      context,
      tooLong,
    });
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

  /** Restores the preview after the open conversation was fetched, whose stored state is older. */
  replaceIn(conversations: Conversations) {
    if (this.message?.conversation === conversations.current) conversations.place(this.message);
  }

  /** Opens a new conversation after its first question, unless another one was opened meanwhile. */
  #arriveIn(arrived: number, home: Conversations, asked: number | null) {
    if (asked === null && home.current === null) home.current = arrived;
  }

  async #run(
    offer: TooLong | null,
    ask: (onEvent: (event: ReplyEvent) => void) => Promise<Stored>,
  ) {
    if (this.active) return;
    this.active = true;
    this.#asked = performance.now();
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

  /** Waits for the end of a reply, and handles it if this page requested it (`own`). */
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
      if (this.message) await this.#showing(this.message.conversation)?.refresh();
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
    this.prompt = this.looked = null;
    this.#clearCalls();
  }

  #clearCalls() {
    this.writing = this.#written = [];
    this.callsStart = null;
    this.calling = false;
    this.progress = null;
  }

  #take(event: ReplyEvent) {
    switch (event.type) {
      case "started":
        this.#shown.list.update(event.conversation);
        if (event.user) this.#place(event.user);
        this.message = event.reply;
        this.trace = this.#receiving = new Trace();
        this.#traces.keep(event.reply.id, this.trace);
        this.#place(event.reply);
        this.#text = "";
        this.speedup = this.prompt = this.looked = null;
        this.#clearCalls();
        this.#onBegin(event.conversation.id);
        break;
      case "part_ended":
        this.trace?.flush();
        if (this.trace?.gap) void this.#traces.refresh(event.reply.id);
        this.#place(event.reply);
        if (event.reply.calls.length > 0) {
          this.message = event.reply;
          this.#clearCalls();
          this.calling = true;
        }
        break;
      case "call_began": {
        const { server, tool, start } = event;
        this.callsStart ??= start;
        this.#written = [...this.#written, { server, tool, arguments: "" }];
        frames.request(this.#showWritten);
        break;
      }
      case "call_arguments": {
        const last = this.#written.at(-1);
        if (!last) break;
        const grown = { ...last, arguments: last.arguments + event.json };
        this.#written = this.#written.with(-1, grown);
        frames.request(this.#showWritten);
        break;
      }
      case "call":
        this.#placeCall(event.call);
        break;
      case "call_progress":
        this.progress = event;
        break;
      case "pictures":
        this.looked = event.percent;
        break;
      case "prompt":
        this.looked = null;
        this.prompt = { done: event.done, total: event.total };
        break;
      case "round":
        this.#receiving?.push(event.round);
        // Late rounds are shown together with the end of the reply.
        if (!this.active) this.#receiving?.flush();
        break;
      case "speedup":
        this.speedup = event.speedup;
        break;
      case "text":
        this.#text += event.delta;
        frames.request(this.#showText);
        break;
    }
  }

  readonly #showText = () => {
    if (!this.message) return;
    this.message = { ...this.message, text: this.#text };
    this.#place(this.message);
  };

  readonly #showWritten = () => {
    this.writing = this.#written;
  };

  /** Shows the new state of a call. */
  #placeCall(call: Call) {
    const { message } = this;
    if (message?.id !== call.message) return;
    const calls = message.calls.map((other) => (other.id === call.id ? call : other));
    this.message = { ...message, calls };
    this.progress = null;
    this.#place(this.message);
  }

  async decide(call: number, decision: CallDecision) {
    try {
      await this.#backend.decideCall(call, decision);
    } catch (thrown) {
      this.#refuse(this.#conversations.current, BackendError.from(thrown));
    }
  }

  async #finish(stored: Stored) {
    const { conversation, reply } = stored;
    this.#onEnd(stored, performance.now() - this.#asked);
    this.trace?.flush();
    if (this.trace?.gap || this.trace === null) void this.#traces.refresh(reply.id);
    this.#shown.list.update(conversation);
    const begun = this.message?.id ?? reply.id;
    if (reply.id === begun) this.#place(reply);
    // After an empty reply, an older branch is shown again.
    else await this.#showing(reply.conversation)?.refresh();
    this.announcement =
      reply.finish === "cancelled" ? t("window.replyStopped") : t("window.replyFinished");
    void this.#conversations.writeTitle(conversation.id);
  }
}

/** Key of a conversation's context, to detect changes. */
function contextOf({ contextStart, messages }: Conversations): string {
  return `${contextStart} ${messages.at(-1)?.id}`;
}
