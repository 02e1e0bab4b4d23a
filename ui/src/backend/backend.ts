/**
 * What the page asks of the world outside it. Two implementations: `tauri.ts` (the shell) and
 * `replay.ts` (recorded traces in an ordinary browser). Nothing here knows which one is behind.
 */
import type { Advice } from "../bindings/Advice";
import type { AppInfo } from "../bindings/AppInfo";
import type { Arena } from "../bindings/Arena";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { Attached } from "../bindings/Attached";
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { CheckProgress } from "../bindings/CheckProgress";
import type { CommandError } from "../bindings/CommandError";
import type { ContextUse } from "../bindings/ContextUse";
import type { Conversation } from "../bindings/Conversation";
import type { ConversationSetup } from "../bindings/ConversationSetup";
import type { Download } from "../bindings/Download";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ErrorCode } from "../bindings/ErrorCode";
import type { Export } from "../bindings/Export";
import type { FileDrag } from "../bindings/FileDrag";
import type { Folder } from "../bindings/Folder";
import type { FoundRepository } from "../bindings/FoundRepository";
import type { Imported } from "../bindings/Imported";
import type { ImportedTrace } from "../bindings/ImportedTrace";
import type { ImportProgress } from "../bindings/ImportProgress";
import type { Message } from "../bindings/Message";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { PairSpeedup } from "../bindings/PairSpeedup";
import type { Preset } from "../bindings/Preset";
import type { PresetValues } from "../bindings/PresetValues";
import type { Reply } from "../bindings/Reply";
import type { ReplyCheck } from "../bindings/ReplyCheck";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { PromptSize } from "../bindings/PromptSize";
import type { Recommendation } from "../bindings/Recommendation";
import type { Repository } from "../bindings/Repository";
import type { Round } from "../bindings/Round";
import type { SearchHit } from "../bindings/SearchHit";
import type { Sent } from "../bindings/Sent";
import type { ServerRequest } from "../bindings/ServerRequest";
import type { ServerStatus } from "../bindings/ServerStatus";
import type { Settings } from "../bindings/Settings";
import type { Speedup } from "../bindings/Speedup";
import type { TokenCount } from "../bindings/TokenCount";
import type { TokenSource } from "../bindings/TokenSource";
import type { TraceStorage } from "../bindings/TraceStorage";
import type { Unsent } from "../bindings/Unsent";
import type { UnsentEdit } from "../bindings/UnsentEdit";
import type { UnsentFile } from "../bindings/UnsentFile";
import type { ViewState } from "../bindings/ViewState";

/** Every method rejects with a {@link BackendError}. */
export interface Backend {
  appInfo(): Promise<AppInfo>;
  /** Opens a folder in the system's file manager. */
  openFolder(folder: Folder): Promise<void>;
  /** What the person is to be told of this start: sentences, each given once. */
  takeNotices(): Promise<string[]>;
  settings(): Promise<Settings>;
  /** Resolves with the settings as stored. */
  saveSettings(settings: Settings): Promise<Settings>;
  /** How the window looked last; null where that was never saved. */
  viewState(): Promise<ViewState | null>;
  saveViewState(state: ViewState): Promise<void>;
  /** Texts that were typed and not sent. */
  unsent(): Promise<Unsent[]>;
  /** Replaces that of its conversation; an empty one is removed. */
  saveUnsent(unsent: Unsent): Promise<void>;
  /** Files that were attached in a conversation and not sent. */
  unsentFiles(conversation: number | null): Promise<UnsentFile[]>;
  /** Resolves with the id of the stored file. */
  addUnsentFile(conversation: number | null, file: Attached): Promise<number>;
  removeUnsentFiles(ids: number[]): Promise<void>;
  /** Edits of questions that were not sent. */
  unsentEdits(): Promise<UnsentEdit[]>;
  saveUnsentEdit(edit: UnsentEdit): Promise<void>;
  removeUnsentEdit(message: number): Promise<void>;
  /** Keeps an imported file for a page that is loaded again; null where it is too large. */
  keepImportedTrace(name: string, text: string): Promise<number | null>;
  /** Imported files that are kept, the oldest first. */
  importedTraces(): Promise<ImportedTrace[]>;
  importedTrace(id: number): Promise<ArrayBuffer>;
  forgetImportedTrace(id: number): Promise<void>;
  /** Closes the window. */
  quit(): Promise<void>;
  toggleFullscreen(): Promise<void>;
  /** The presets that come with the program, as the settings and the chosen target have them. */
  builtInPresets(): Promise<Preset[]>;
  /**
   * Makes a conversation, or with null one that is to come, the one that the engine is ready to write in; resolves
   * with what it is written with. Loads no model.
   */
  openSetup(conversation: number | null): Promise<ConversationSetup>;
  /**
   * Has it written with these values from its next reply on, with null with what the settings say; `preset` is the id
   * of the one that they are from.
   */
  saveSetup(
    conversation: number | null,
    preset: string | null,
    values: PresetValues | null,
  ): Promise<ConversationSetup>;
  /** Whether the local server runs by the settings that were saved last. */
  serverStatus(): Promise<ServerStatus>;
  /** The latest requests to the local server, the latest first; none while it does not run. */
  serverRequests(): Promise<ServerRequest[]>;
  /** Adds a server elsewhere, or changes the one of this name; with null its address keeps its key. Asks nobody. */
  addServer(name: string, address: string, key: string | null): Promise<Settings>;
  /** Asks a server for its models; resolves with the settings that have them. */
  testServer(name: string): Promise<Settings>;
  /** Takes a server off the list and forgets its key. */
  removeServer(name: string): Promise<Settings>;
  /** Calls `onStatus` with the present status at once, then at each change. */
  watchEngine(onStatus: (status: EngineStatus) => void): Promise<void>;
  /** Looks for what could compute, which the engine's status then lists; resolves when all of it was looked at. */
  lookForDevices(): Promise<void>;
  addModel(path: string): Promise<ModelEntry>;
  /** Takes a model that was added by its path off the list; the file stays. */
  removeModel(id: string): Promise<void>;
  /** Deletes an installed model from disk. */
  deleteModel(id: string): Promise<void>;
  /** Asks for a file in the system's own dialog; null when the person closed it. */
  chooseModelFile(): Promise<string | null>;
  /** The same for a folder. */
  chooseModelFolder(): Promise<string | null>;
  /** Calls `onDrag` when files are dragged over the window, away again, or dropped. */
  watchFileDrags(onDrag: (drag: FileDrag) => void): Promise<void>;
  /** A file that was dropped on the window, by its path. */
  droppedFile(path: string): Promise<File>;
  /** The known pairs of models, by family. */
  catalogue(): Promise<CatalogueFamily[]>;
  /** The pairs to begin with on this computer, three at most. */
  recommendations(): Promise<Recommendation[]>;
  /** Asks the hub for repositories with GGUF files whose names contain `words`, the most downloaded first. */
  searchHub(words: string): Promise<FoundRepository[]>;
  /** Asks the hub what the repository `owner/name` offers. */
  findRepository(name: string): Promise<Repository>;
  /** Ends the requests of `searchHub` and `findRepository` that run. */
  cancelHubRequests(): Promise<void>;
  /** Calls `onChange` with all downloads at once, then at each change. */
  watchDownloads(onChange: (downloads: Download[]) => void): Promise<void>;
  /** Begins a download or goes on with it; null for the file asks for a safetensors folder. */
  startDownload(repository: string, file: string | null): Promise<Download>;
  pauseDownload(id: string): Promise<void>;
  resumeDownload(id: string): Promise<void>;
  /** Stops it and deletes what is here of it. */
  cancelDownload(id: string): Promise<void>;
  /** Forgets one that is done or failed. */
  dismissDownload(id: string): Promise<void>;
  hubToken(): Promise<TokenSource>;
  /** Keeps a token, or with null removes the kept one; resolves with where it comes from then. */
  setHubToken(token: string | null): Promise<TokenSource>;
  /** Gives up the model that is being loaded; what is loaded stays. */
  cancelLoading(): Promise<void>;
  /**
   * Tries every installed draft on a conversation, or with null on a sample; resolves when all were tried.
   */
  advise(conversation: number | null, onAdvice: (advice: Advice) => void): Promise<void>;
  stopAdvice(): Promise<void>;
  /** Pinned first, then newest. */
  conversations(): Promise<Conversation[]>;
  /** The branch that the conversation shows, oldest first. */
  messages(conversation: number): Promise<Message[]>;
  trace(message: number): Promise<Round[]>;
  /** The speed-up of a reply after each of its rounds, with the parts that it continues. */
  speedups(message: number): Promise<(Speedup | null)[]>;
  /** The speed-up after each round of a trace that is not stored. */
  traceSpeedups(rounds: Round[]): Promise<(Speedup | null)[]>;
  /** The speed-ups over all stored replies, by the pair that wrote them. */
  pairSpeedups(): Promise<PairSpeedup[]>;
  rename(conversation: number, title: string): Promise<Conversation>;
  pin(conversation: number, pinned: boolean): Promise<Conversation>;
  /** Can be undone with {@link restore}. */
  delete(conversation: number): Promise<void>;
  restore(conversation: number): Promise<Conversation>;
  /**
   * Has a title written for a conversation that is called by its first words; null where it keeps them, as when
   * anything else is asked for meanwhile.
   */
  writeTitle(conversation: number): Promise<Conversation | null>;
  /** Copies a conversation with its traces: all its branches, or what leads to a message and that alone. */
  duplicate(conversation: number, upTo: number | null, title: string): Promise<Conversation>;
  /** Writes conversations into a file in the person's Downloads folder; resolves with its path. */
  exportConversations(wanted: Export): Promise<string>;
  /** Asks for files in the system's own dialog; none when the person closed it. */
  chooseConversationFiles(): Promise<string[]>;
  /** Stores what is in a file and not here yet: all of it or nothing. */
  importConversations(
    path: string,
    onProgress: (progress: ImportProgress) => void,
  ): Promise<Imported>;
  /** Ends the import under way, which rejects with the code "cancelled". */
  stopImport(): Promise<void>;
  search(query: string): Promise<SearchHit[]>;
  /** A file that stands beside a message. */
  attachment(id: number): Promise<Attached>;
  /** The tokens that a file takes in a prompt. */
  countAttachment(file: Attached): Promise<TokenCount>;
  /** Tokens in the context before the next message: all, the system prompt's, the files'. */
  contextUse(conversation: number | null): Promise<ContextUse>;
  /** Asks in a conversation, or in a new one when it is null. Resolves with the stored reply. */
  send(
    conversation: number | null,
    sent: Sent,
    onEvent: (event: ReplyEvent) => void,
  ): Promise<Reply>;
  /** Asks in the place of a question, which is kept with all that followed it. */
  sendInstead(message: number, sent: Sent, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  /** Replies once more to what a reply answered, which is kept with all that followed it, or to a question. */
  regenerate(message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  /** Goes on where a reply was cut, in a reply that follows it. */
  continueReply(message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  /**
   * Takes up the reply under way, from its beginning on: for a page that was loaded while it is written. Resolves with
   * the stored reply, or with null at once where none is under way.
   */
  followReply(onEvent: (event: ReplyEvent) => void): Promise<Reply | null>;
  /** Shows the branch that a message is in; resolves with what the conversation shows then. */
  chooseBranch(message: number): Promise<Message[]>;
  /** Deletes a message and all that follows it; {@link restoreMessage} undoes it. */
  deleteMessage(message: number): Promise<Message[]>;
  restoreMessage(message: number): Promise<Message[]>;
  /**
   * Lets the model no longer see the oldest messages of a conversation, as few as leave room for what is sent
   * next, or with null for the last reply again.
   */
  leaveOutOldest(conversation: number, next: Sent | null): Promise<Conversation>;
  /** Starts the model's context at this question, or with null at the message that is sent next. */
  seeFrom(conversation: number, question: number | null): Promise<Conversation>;
  /** Lets the model see all of a conversation, where it fits. */
  seeAll(conversation: number): Promise<Conversation>;
  /** Ends what is under way: a reply, a check, an arena. */
  stop(): Promise<void>;
  /** Says how long it is from frame to frame: to be told of anything more often is of no use. */
  pace(intervalMs: number): Promise<void>;
  /**
   * Writes a text file into the person's Downloads folder under this name, or the next free one;
   * resolves with its path.
   */
  saveFile(name: string, text: string): Promise<string>;
  /** The trace file that the page was asked to show when it was opened; null without one. */
  traceToOpen(): Promise<File | null>;
  /**
   * Decodes a stored reply again without drafts and compares. {@link stop} ends it, which rejects with the
   * code "cancelled".
   */
  checkReply(message: number, onProgress: (progress: CheckProgress) => void): Promise<ReplyCheck>;
  /**
   * Runs two set-ups in turn. Resolves with what was stored; {@link stop} ends it, which rejects with the
   * code "cancelled" and stores nothing.
   */
  runArena(request: ArenaRequest, onEvent: (event: ArenaEvent) => void): Promise<Arena>;
  /** Newest first. */
  arenas(): Promise<Arena[]>;
  deleteArena(id: number): Promise<void>;
  traceStorage(): Promise<TraceStorage>;
  /** Deletes the traces of replies older than so many days; null deletes all. */
  deleteTraces(olderThanDays: number | null): Promise<TraceStorage>;
}

/** A command that failed: `code` to branch on, `message` for a person. */
export class BackendError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
    /** Length of a prompt that is too long, where it was counted. */
    readonly prompt: PromptSize | null = null,
  ) {
    super(message);
    this.name = "BackendError";
  }

  /** The error behind whatever was thrown. */
  static from(thrown: unknown): BackendError {
    if (thrown instanceof BackendError) return thrown;
    if (isCommandError(thrown)) {
      return new BackendError(thrown.code, thrown.message, thrown.prompt);
    }
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
