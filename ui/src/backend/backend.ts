/**
 * Interface between the page and the outside, with two implementations: `tauri.ts` (the shell) and
 * `player.ts` (recorded commands in an ordinary browser). The page does not depend on either.
 */
import type { Advice } from "../bindings/Advice";
import type { AppInfo } from "../bindings/AppInfo";
import type { Arena } from "../bindings/Arena";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { Attached } from "../bindings/Attached";
import type { CallDecision } from "../bindings/CallDecision";
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { CheckProgress } from "../bindings/CheckProgress";
import type { CommandError } from "../bindings/CommandError";
import type { ContextUse } from "../bindings/ContextUse";
import type { Conversation } from "../bindings/Conversation";
import type { ConversationFolder } from "../bindings/ConversationFolder";
import type { ConversationSetup } from "../bindings/ConversationSetup";
import type { Desktop } from "../bindings/Desktop";
import type { DocumentSearchStatus } from "../bindings/DocumentSearchStatus";
import type { DocumentText } from "../bindings/DocumentText";
import type { Download } from "../bindings/Download";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ErrorCode } from "../bindings/ErrorCode";
import type { Export } from "../bindings/Export";
import type { FileDrag } from "../bindings/FileDrag";
import type { FilledArgument } from "../bindings/FilledArgument";
import type { Folder } from "../bindings/Folder";
import type { FoundRepository } from "../bindings/FoundRepository";
import type { Imported } from "../bindings/Imported";
import type { ImportedTrace } from "../bindings/ImportedTrace";
import type { ImportableServers } from "../bindings/ImportableServers";
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
import type { SearchService } from "../bindings/SearchService";
import type { Sent } from "../bindings/Sent";
import type { ServerContents } from "../bindings/ServerContents";
import type { ServerRequest } from "../bindings/ServerRequest";
import type { ServerStatus } from "../bindings/ServerStatus";
import type { Settings } from "../bindings/Settings";
import type { Speedup } from "../bindings/Speedup";
import type { TokenCount } from "../bindings/TokenCount";
import type { TokenSource } from "../bindings/TokenSource";
import type { ToolRule } from "../bindings/ToolRule";
import type { ToolsStatus } from "../bindings/ToolsStatus";
import type { TraceStorage } from "../bindings/TraceStorage";
import type { TrayWords } from "../bindings/TrayWords";
import type { Unsent } from "../bindings/Unsent";
import type { UnsentEdit } from "../bindings/UnsentEdit";
import type { UnsentFile } from "../bindings/UnsentFile";
import type { UpdateStatus } from "../bindings/UpdateStatus";
import type { ViewState } from "../bindings/ViewState";

/** Every method rejects with a {@link BackendError}. */
export interface Backend {
  appInfo(): Promise<AppInfo>;
  /** Opens a folder in the system's file manager. */
  openFolder(folder: Folder): Promise<void>;
  /** Notices of this start as sentences; each is returned once. */
  takeNotices(): Promise<string[]>;
  settings(): Promise<Settings>;
  /** Resolves with the settings as stored. */
  saveSettings(settings: Settings): Promise<Settings>;
  /** The last view state; null if none was saved. */
  viewState(): Promise<ViewState | null>;
  saveViewState(state: ViewState): Promise<void>;
  /** Unsent texts. */
  unsent(): Promise<Unsent[]>;
  /** Replaces the unsent text of its conversation; an empty one is removed. */
  saveUnsent(unsent: Unsent): Promise<void>;
  /** Unsent attachments of a conversation. */
  unsentFiles(conversation: number | null): Promise<UnsentFile[]>;
  /** Resolves with the id of the stored file. */
  addUnsentFile(conversation: number | null, file: Attached): Promise<number>;
  removeUnsentFiles(ids: number[]): Promise<void>;
  /** Unsent edits of questions. */
  unsentEdits(): Promise<UnsentEdit[]>;
  saveUnsentEdit(edit: UnsentEdit): Promise<void>;
  removeUnsentEdit(message: number): Promise<void>;
  /** Keeps an imported file over a reload of the page; resolves with null if it is too large. */
  keepImportedTrace(name: string, text: string): Promise<number | null>;
  /** Kept imported files, the oldest first. */
  importedTraces(): Promise<ImportedTrace[]>;
  importedTrace(id: number): Promise<ArrayBuffer>;
  forgetImportedTrace(id: number): Promise<void>;
  /** Closes the window. */
  quit(): Promise<void>;
  toggleFullscreen(): Promise<void>;
  /** Shows a notification of the system; a click on it raises the window. */
  notify(title: string, body: string): Promise<void>;
  /** Holds a document for a preview, in place of the one before; resolves with its address. */
  showPreview(document: string): Promise<string>;
  /** Opens the system's dialog to print what the page has for paper. */
  print(): Promise<void>;
  /** Built-in presets, adapted to the settings and the chosen target. */
  builtInPresets(): Promise<Preset[]>;
  /** Set-up of a conversation, or of a new one for null. */
  setup(conversation: number | null): Promise<ConversationSetup>;
  /** Activates a conversation, or a new one for null; resolves with its set-up. Loads no model. */
  openSetup(conversation: number | null): Promise<ConversationSetup>;
  /**
   * Sets the values for a conversation's later replies; null returns to the general settings.
   * `preset` is the id of the preset with these values.
   */
  saveSetup(
    conversation: number | null,
    preset: string | null,
    values: PresetValues | null,
  ): Promise<ConversationSetup>;
  /** Status of the local server under the settings saved last. */
  serverStatus(): Promise<ServerStatus>;
  /** Requests to the local server, the latest first; empty while it is off. */
  serverRequests(): Promise<ServerRequest[]>;
  /**
   * Adds a remote server, or changes the one of this name. If `key` is null, the same address keeps
   * its key. Sends no request.
   */
  addServer(name: string, address: string, key: string | null): Promise<Settings>;
  /** Fetches a server's models; resolves with the settings that include them. */
  testServer(name: string): Promise<Settings>;
  /** Removes a server and its key. */
  removeServer(name: string): Promise<Settings>;
  /** Texts of the target's tokens that are a word; none if it is several tokens. */
  wordTokens(word: string): Promise<string[]>;
  /** Servers of tools and what they offer. */
  toolsStatus(): Promise<ToolsStatus>;
  /** Switches a server on, as its entry is now, or off. */
  switchToolServer(name: string, on: boolean): Promise<ToolsStatus>;
  /** Adds the servers of a document in the form of `mcp.json`, all of them off. */
  addToolServers(text: string): Promise<ToolsStatus>;
  removeToolServer(name: string): Promise<ToolsStatus>;
  /** Servers of other programs on this computer. */
  importableToolServers(): Promise<ImportableServers[]>;
  importToolServers(program: string): Promise<ToolsStatus>;
  /** Keeps the key of a service that searches the web, or removes it. */
  setSearchKey(service: SearchService, key: string | null): Promise<ToolsStatus>;
  setToolRule(server: string | null, digest: string, rule: ToolRule): Promise<void>;
  /**
   * Prompts and resources of running servers. `start` starts those that are switched on; more may
   * follow until none is starting.
   */
  serverContents(start: boolean): Promise<ServerContents>;
  /**
   * Fetches the text of a prompt; its arguments have values. After {@link stopFetching} it rejects
   * with the code "cancelled".
   */
  fetchPrompt(server: string, name: string, filled: FilledArgument[]): Promise<string>;
  /**
   * Fetches a resource; the variables of its address have values. After {@link stopFetching} it
   * rejects with the code "cancelled".
   */
  fetchResource(server: string, uri: string, filled: FilledArgument[]): Promise<Attached>;
  /** Stops fetching a prompt or resource. */
  stopFetching(): Promise<void>;
  /** Decides about a call that waits. */
  decideCall(call: number, decision: CallDecision): Promise<void>;
  /** Calls `onStatus` with the current status at once, then at each change. */
  watchEngine(onStatus: (status: EngineStatus) => void): Promise<void>;
  /**
   * Searches for devices, which the engine's status then lists; resolves at the end of the search.
   */
  lookForDevices(): Promise<void>;
  addModel(path: string): Promise<ModelEntry>;
  /** Removes a model that was added by its path from the list; the file stays. */
  removeModel(id: string): Promise<void>;
  /** Deletes an installed model from disk. */
  deleteModel(id: string): Promise<void>;
  /** Opens the system's file dialog; resolves with null if it was closed. */
  chooseModelFile(title: string, filter: string): Promise<string | null>;
  /** Opens the system's folder dialog; resolves with null if it was closed. */
  chooseModelFolder(title: string): Promise<string | null>;
  /** Sets the title and the names of the filters of the dialog for attachments. */
  nameAttachDialog(title: string, readable: string, all: string): Promise<void>;
  /** Fetches what the desktop offers now. */
  desktop(): Promise<Desktop>;
  /** Sets the words of the tray icon's menu. */
  nameTray(words: TrayWords): Promise<void>;
  /** Hides the window for a quick question. */
  hideQuick(): Promise<void>;
  /** Hides that window and opens a conversation in the main one. */
  continueInMain(conversation: number): Promise<void>;
  /** Calls `onDrag` when files are dragged over the window, leave it, or are dropped. */
  /** Calls with the status of updates now and after each change. */
  watchUpdates(onStatus: (status: UpdateStatus) => void): Promise<void>;
  /** Asks the update server for the latest version. */
  checkForUpdates(): Promise<void>;
  downloadUpdate(): Promise<void>;
  /** Cancels a running check or download. */
  cancelUpdate(): Promise<void>;
  /** Installs the downloaded version and starts the program again; rejects while it is busy. */
  installUpdate(): Promise<void>;
  watchFileDrags(onDrag: (drag: FileDrag) => void): Promise<void>;
  /** A file that was dropped on the window, by its path. */
  droppedFile(path: string): Promise<File>;
  /** The picture in the clipboard as a PNG file, for pastes whose picture the page cannot read. */
  clipboardPicture(): Promise<ArrayBuffer>;
  /** Lets a person take a screenshot; the file is empty if they cancelled. */
  takeScreenshot(): Promise<ArrayBuffer>;
  /** Known pairs of models, by family. */
  catalogue(): Promise<CatalogueFamily[]>;
  /** Recommended pairs for this computer, three at most. */
  recommendations(): Promise<Recommendation[]>;
  /** Searches the hub for GGUF repositories by words of their names, the most downloaded first. */
  searchHub(words: string): Promise<FoundRepository[]>;
  /** Fetches the models of the repository `owner/name` from the hub. */
  findRepository(name: string): Promise<Repository>;
  /** Cancels requests of `searchHub` and `findRepository`. */
  cancelHubRequests(): Promise<void>;
  /** Calls `onChange` with all downloads at once, then at each change. */
  watchDownloads(onChange: (downloads: Download[]) => void): Promise<void>;
  /** Starts or continues a download; null for the file selects a safetensors folder. */
  startDownload(repository: string, file: string | null): Promise<Download>;
  pauseDownload(id: string): Promise<void>;
  resumeDownload(id: string): Promise<void>;
  /** Stops a download and deletes its partial file. */
  cancelDownload(id: string): Promise<void>;
  /** Removes a finished or failed download from the list. */
  dismissDownload(id: string): Promise<void>;
  hubToken(): Promise<TokenSource>;
  /** Stores a token, or removes it for null; resolves with the token's source after that. */
  setHubToken(token: string | null): Promise<TokenSource>;
  /** Cancels loading a model; loaded models stay. */
  cancelLoading(): Promise<void>;
  /**
   * Probes every installed draft on a conversation, or on a sample for null; resolves at the end.
   */
  advise(conversation: number | null, onAdvice: (advice: Advice) => void): Promise<void>;
  stopAdvice(): Promise<void>;
  /** Conversations, pinned first, then newest. */
  conversations(): Promise<Conversation[]>;
  /** The shown branch of a conversation, oldest first. */
  messages(conversation: number): Promise<Message[]>;
  trace(message: number): Promise<Round[]>;
  /** Speed-ups after each round of a reply, including the parts that it continues. */
  speedups(message: number): Promise<(Speedup | null)[]>;
  /** Speed-ups after each round of a trace that is not stored. */
  traceSpeedups(rounds: Round[]): Promise<(Speedup | null)[]>;
  /** Speed-ups by pair over all stored replies. */
  pairSpeedups(): Promise<PairSpeedup[]>;
  rename(conversation: number, title: string): Promise<Conversation>;
  pin(conversation: number, pinned: boolean): Promise<Conversation>;
  /** Deletes a conversation; {@link restore} undoes it. */
  delete(conversation: number): Promise<void>;
  restore(conversation: number): Promise<Conversation>;
  /** Folders of conversations. */
  folders(): Promise<ConversationFolder[]>;
  createFolder(name: string): Promise<ConversationFolder>;
  renameFolder(folder: number, name: string): Promise<ConversationFolder>;
  /** Deletes a folder without its conversations; {@link restoreFolder} undoes it. */
  deleteFolder(folder: number): Promise<void>;
  restoreFolder(folder: number): Promise<ConversationFolder>;
  /** Moves a conversation into a folder, or out of its folder for null. */
  moveTo(conversation: number, folder: number | null): Promise<Conversation>;
  /**
   * Generates a title for a conversation named after its first words. Resolves with null if the
   * name stays, for example because another request came first.
   */
  writeTitle(conversation: number): Promise<Conversation | null>;
  /** Copies a conversation with its traces: all branches, or the path up to a message. */
  duplicate(conversation: number, upTo: number | null, title: string): Promise<Conversation>;
  /** Writes conversations to a file in the Downloads folder; resolves with its path. */
  exportConversations(wanted: Export): Promise<string>;
  /** Opens the system's file dialog; resolves with no paths if it was closed. */
  chooseConversationFiles(title: string, filter: string): Promise<string[]>;
  /** Stores the conversations of a file that are not in the store yet: all of them or none. */
  importConversations(
    path: string,
    onProgress: (progress: ImportProgress) => void,
  ): Promise<Imported>;
  /** Cancels the import under way, which rejects with the code "cancelled". */
  stopImport(): Promise<void>;
  search(query: string): Promise<SearchHit[]>;
  /** An attachment of a message. */
  attachment(id: number): Promise<Attached>;
  /** Text of a document's file in Base64, or why it has none. */
  readDocument(file: string): Promise<DocumentText>;
  /** Number of tokens of a file in a prompt. */
  countAttachment(file: Attached): Promise<TokenCount>;
  /** State of the search in documents that are too long for the context. */
  documentSearchStatus(): Promise<DocumentSearchStatus>;
  /**
   * Tokens in the context before the next message: in total, of the system prompt, of attachments.
   */
  contextUse(conversation: number | null): Promise<ContextUse>;
  /**
   * Sends a message in a conversation, or in a new one for null. Resolves with the stored reply.
   */
  send(
    conversation: number | null,
    sent: Sent,
    onEvent: (event: ReplyEvent) => void,
  ): Promise<Reply>;
  /** Sends an edited question as a sibling of `message`, which is kept with everything after it. */
  sendInstead(message: number, sent: Sent, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  /** Regenerates a reply as a sibling, or replies to a question. */
  regenerate(message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  /** Continues a reply that was cut, as a new message after it. */
  continueReply(message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply>;
  /**
   * Follows the reply under way from its beginning, for a reloaded page. Resolves with the stored
   * reply, or with null at once if there is none.
   */
  followReply(onEvent: (event: ReplyEvent) => void): Promise<Reply | null>;
  /** Shows the branch of a message; resolves with the shown messages. */
  chooseBranch(message: number): Promise<Message[]>;
  /** Deletes a message and everything after it; {@link restoreMessage} undoes it. */
  deleteMessage(message: number): Promise<Message[]>;
  restoreMessage(message: number): Promise<Message[]>;
  /**
   * Drops the oldest messages from the context, as few as make room for `next`, or for the last
   * reply again if it is null.
   */
  leaveOutOldest(conversation: number, next: Sent | null): Promise<Conversation>;
  /** Starts the model's context at a question, or at the next message for null. */
  setContextStart(conversation: number, question: number | null): Promise<Conversation>;
  /** Extends the model's context to the whole conversation, if it fits. */
  clearContextStart(conversation: number): Promise<Conversation>;
  /** Stops the reply, check or arena under way. */
  stop(): Promise<void>;
  /** Sets the interval between frames; more frequent events are of no use. */
  pace(intervalMs: number): Promise<void>;
  /**
   * Writes a text file to the Downloads folder under this name, or the next free one; resolves with
   * its path.
   */
  saveFile(name: string, text: string): Promise<string>;
  /** The trace file that the program was started with; null without one. */
  traceToOpen(): Promise<File | null>;
  /**
   * Decodes a stored reply again without drafts and compares. After {@link stop} it rejects with
   * the code "cancelled".
   */
  checkReply(message: number, onProgress: (progress: CheckProgress) => void): Promise<ReplyCheck>;
  /**
   * Runs two set-ups alternately and resolves with the stored result. After {@link stop} it rejects
   * with the code "cancelled" and stores nothing.
   */
  runArena(request: ArenaRequest, onEvent: (event: ArenaEvent) => void): Promise<Arena>;
  /** Stored arenas, newest first. */
  arenas(): Promise<Arena[]>;
  deleteArena(id: number): Promise<void>;
  traceStorage(): Promise<TraceStorage>;
  /** Deletes traces older than a number of days; null deletes all. */
  deleteTraces(olderThanDays: number | null): Promise<TraceStorage>;
}

/** A command that failed: `code` to branch on, `message` for a person. */
export class BackendError extends Error {
  constructor(
    readonly code: ErrorCode,
    message: string,
    /** Length of the prompt, if it is too long and was counted. */
    readonly prompt: PromptSize | null = null,
  ) {
    super(message);
    this.name = "BackendError";
  }

  /** Converts a thrown value. */
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
