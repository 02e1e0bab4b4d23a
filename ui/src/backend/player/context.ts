/** Context of the player's conversations: its use, its start, and prompts that do not fit. */
import type { ErrorCode } from "../../bindings/ErrorCode";
import type { Sent } from "../../bindings/Sent";
import type { TokenCount } from "../../bindings/TokenCount";
import { BackendError } from "../backend";
import type { Handlers } from "./answers";
import type { Engine } from "./engine";
import type { History } from "./history";

export class Context {
  readonly #engine: Engine;
  readonly #history: History;

  constructor(engine: Engine, history: History) {
    this.#engine = engine;
    this.#history = history;
  }

  readonly handlers: Handlers = {
    read_document: () => ({ unread: "unknown" }),
    count_attachment: ({ file }) => estimated(file.text),
    context_use: ({ conversation }) => ({
      used: { tokens: this.#used(conversation), exact: true },
      system_prompt: estimated(this.#engine.settings.system_prompt),
      attachments: estimated(this.#history.attachedText(this.#history.shown(conversation))),
      whole_files: null,
    }),
    leave_out_oldest: ({ conversation, next }) => {
      const asked = this.#history.shown(conversation).findLast(({ role }) => role === "user");
      return this.#start(conversation, next === null ? asked?.id : undefined);
    },
    see_from: ({ conversation, question }) => this.#start(conversation, question ?? undefined),
    see_all: ({ conversation }) => this.#history.change(conversation, { seen_from: null }),
  };

  /** Throws if a question cannot be answered now; may leave out the messages before it. */
  refuseSent({ text, kept, attached }: Sent, conversation: number | null = null) {
    if (text.trim() === "" && kept.length + attached.length === 0) throw emptyPrompt();
    const { tokens } = estimated([text, ...attached.map((file) => file.text)].join(""));
    const before = this.#used(conversation);
    this.refuse(tokens, before);
    if (conversation === null || before + tokens < this.#engine.starter.context) return;
    this.#start(conversation);
  }

  /** Throws if a prompt alone cannot be answered now. */
  refusePrompt(prompt: string) {
    if (prompt.trim() === "") throw emptyPrompt();
    this.refuse(estimated(prompt).tokens);
  }

  /** Throws if a prompt of about `tokens` tokens after `before` others cannot be answered now. */
  refuse(tokens: number, before = 0) {
    this.#engine.refuseUnready();
    const { context } = this.#engine.starter;
    const refuse = (code: ErrorCode, tokens: number) => {
      throw new BackendError(code, "The prompt is too long.", { tokens, context });
    };
    if (tokens >= context) refuse("message_too_long", tokens);
    if (before + tokens < context) return;
    if (this.#engine.settings.context_overflow === "stop") {
      refuse("prompt_too_long", before + tokens);
    }
  }

  /** Number of tokens in the context of a conversation. */
  #used(conversation: number | null): number {
    const start = this.#history.conversation(conversation)?.seen_from ?? 0;
    const summary = this.#history.shown(conversation).findLast(({ id }) => id >= start)?.summary;
    return (summary?.prompt_tokens ?? 0) + (summary?.tokens ?? 0);
  }

  /** Begins the context at a message, by default at the next one. */
  #start(conversation: number, seen_from = this.#history.nextId) {
    return this.#history.change(conversation, { seen_from });
  }
}

/** Estimates tokens from characters, by the ratio of English. */
function estimated(text: string): TokenCount {
  return { tokens: Math.ceil(text.length / 4), exact: false };
}

function emptyPrompt(): BackendError {
  return new BackendError("empty_prompt", "the prompt is empty: write something first.");
}
