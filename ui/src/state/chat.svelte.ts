/** A chat of the window: the conversation that it shows, with everything that belongs to it. */
import { createContext } from "svelte";
import type { Backend } from "../backend/backend";
import type { Message } from "../bindings/Message";
import type { Speedup } from "../bindings/Speedup";
import { Attachments, type UnsentFiles } from "./attachments.svelte";
import { replyParts, turnsOf } from "./branches";
import { Context } from "./context.svelte";
import { Conversations } from "./conversations.svelte";
import type { ConversationList } from "./conversationList.svelte";
import { Find } from "./find.svelte";
import { Playback } from "./playback.svelte";
import type { Reply } from "./reply.svelte";
import type { Settings } from "./settings.svelte";
import { Setup } from "./setup.svelte";
import type { Toasts } from "./toasts.svelte";
import type { Trace } from "./trace.svelte";
import type { Traces } from "./traces.svelte";
import type { View } from "./view.svelte";

/** State that the chats of a window share. */
export interface Shared {
  readonly backend: Backend;
  readonly toasts: Toasts;
  readonly settings: Settings;
  readonly view: View;
  readonly traces: Traces;
  readonly list: ConversationList;
  readonly files: UnsentFiles;
  /** The reply under way. */
  readonly reply: () => Reply;
}

export class Chat {
  readonly conversations: Conversations;
  readonly attachments: Attachments;
  readonly context: Context;
  readonly setup: Setup;
  readonly playback = new Playback();
  readonly find = new Find();
  /** The reply in view; null at the conversation's end. */
  inView = $state<number | null>(null);

  readonly #shared: Shared;

  readonly newestReply = $derived.by(
    () => this.conversations.messages.findLast(({ role }) => role === "assistant") ?? null,
  );

  /** The reply whose trace the inspector shows: the chosen one, the one in view, or the newest. */
  readonly inspected = $derived.by(() => {
    const { messages } = this.conversations;
    const find = (wanted: number | null) => messages.find(({ id }) => id === wanted);
    return find(this.#shared.view.inspected) ?? find(this.inView) ?? this.newestReply;
  });

  /** First part of the first reply that is shown as tokens, or null. */
  readonly firstInTokens = $derived.by(() => {
    const replies = turnsOf(this.conversations.messages).filter(
      ({ message }) => message.role === "assistant" && !this.lacksTrace(message),
    );
    const firsts = replies.map(({ message, before }) => before[0]?.id ?? message.id);
    return firsts.find((first) => this.#shared.view.viewOf(first) === "tokens") ?? null;
  });

  constructor(shared: Shared) {
    const { backend, toasts, settings, list, files } = shared;
    this.#shared = shared;
    this.conversations = new Conversations(backend, toasts, () => this.playback.close(), list);
    this.context = new Context(backend);
    this.setup = new Setup(backend, settings, toasts);
    this.attachments = new Attachments(
      backend,
      () => this.conversations.current,
      () => this.context.use.whole_files,
      files,
    );
  }

  /** The trace of a reply as shown: during a replay, only the rounds up to the current moment. */
  traceOf(message: number): Trace | undefined {
    if (this.playback.message === message) return this.playback.trace;
    return this.#shared.traces.of(message);
  }

  get inspectedTrace(): Trace | undefined {
    return this.inspected ? this.traceOf(this.inspected.id) : undefined;
  }

  /**
   * Speed-up of a reply with all its parts: live while it streams, else up to the shown round of a
   * replay, else as stored. Null without drafts or without a baseline.
   */
  speedupOf(message: number): Speedup | null {
    const found = this.conversations.messages.find(({ id }) => id === message);
    if (!found) return null;
    const parts = replyParts(this.conversations.messages, found);
    if (parts.some(({ id }) => id === this.playback.message)) return this.playback.speedup;
    const last = parts.at(-1);
    const reply = this.#shared.reply();
    return last?.id === reply.message?.id ? reply.speedup : (last?.speedup ?? null);
  }

  /** Whether a reply has no recorded rounds, and so no tokens to show. */
  lacksTrace({ id, summary, text }: Message): boolean {
    const trace = this.#shared.traces.of(id);
    if (this.#shared.reply().message?.id === id) return trace?.length === 0 && text !== "";
    return trace ? trace.length === 0 : summary?.rounds === 0;
  }
}

/** The chat of a component in it. */
export const [getChat, setChat] = createContext<Chat>();
