/**
 * What the page asks of the world outside it. Two implementations: `tauri.ts` (the shell) and
 * `replay.ts` (recorded traces in an ordinary browser). Nothing here knows which one is behind.
 */
import type { AppInfo } from "../bindings/AppInfo";
import type { CommandError } from "../bindings/CommandError";
import type { Conversation } from "../bindings/Conversation";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ErrorCode } from "../bindings/ErrorCode";
import type { Message } from "../bindings/Message";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Reply } from "../bindings/Reply";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Round } from "../bindings/Round";
import type { SearchHit } from "../bindings/SearchHit";
import type { Settings } from "../bindings/Settings";

/** Every method rejects with a {@link BackendError}. */
export interface Backend {
  appInfo(): Promise<AppInfo>;
  settings(): Promise<Settings>;
  /** Resolves with the settings as stored. */
  saveSettings(settings: Settings): Promise<Settings>;
  /** Calls `onStatus` with the present status at once, then at each change. */
  watchEngine(onStatus: (status: EngineStatus) => void): Promise<void>;
  addModel(path: string): Promise<ModelEntry>;
  removeModel(id: string): Promise<void>;
  /** Asks for a file in the system's own dialog; null when the person closed it. */
  chooseModelFile(): Promise<string | null>;
  /** Pinned first, then newest. */
  conversations(): Promise<Conversation[]>;
  messages(conversation: number): Promise<Message[]>;
  trace(message: number): Promise<Round[]>;
  rename(conversation: number, title: string): Promise<Conversation>;
  pin(conversation: number, pinned: boolean): Promise<Conversation>;
  /** Can be undone with {@link restore}. */
  delete(conversation: number): Promise<void>;
  restore(conversation: number): Promise<Conversation>;
  search(query: string): Promise<SearchHit[]>;
  /** Asks in a conversation, or in a new one when it is null. Resolves with the stored reply. */
  send(
    conversation: number | null,
    text: string,
    onEvent: (event: ReplyEvent) => void,
  ): Promise<Reply>;
  /** Writes the last reply of its conversation anew. */
  regenerate(message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  stop(): Promise<void>;
}

/** A command that failed: `code` to branch on, `message` for a person. */
export class BackendError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
  ) {
    super(message);
    this.name = "BackendError";
  }

  /** The error behind whatever was thrown. */
  static from(thrown: unknown): BackendError {
    if (thrown instanceof BackendError) return thrown;
    if (isCommandError(thrown)) return new BackendError(thrown.code, thrown.message);
    return new BackendError("internal", thrown instanceof Error ? thrown.message : String(thrown));
  }
}

function isCommandError(thrown: unknown): thrown is CommandError {
  return (
    typeof thrown === "object" &&
    thrown !== null &&
    "code" in thrown &&
    "message" in thrown &&
    typeof thrown.message === "string"
  );
}
