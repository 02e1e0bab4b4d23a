/** All state of the page, created once around a backend and passed to components by context. */
import { createContext } from "svelte";
import type { AppInfo } from "../bindings/AppInfo";
import { BackendError, type Backend } from "../backend/backend";
import type { Conversation } from "../bindings/Conversation";
import type { Desktop } from "../bindings/Desktop";
import type { Dropped } from "../bindings/Dropped";
import type { Folder } from "../bindings/Folder";
import type { Message } from "../bindings/Message";
import type { Speedup } from "../bindings/Speedup";
import type { TrayWords } from "../bindings/TrayWords";
import type { Source } from "../attachments/read";
import { frames } from "../frames";
import { LONGEST_PREVIEW } from "../markdown/preview";
import { sealed } from "../markdown/sealed";
import { TraceFileError } from "../trace/file/problem";
import { traceFileName, writeTrace } from "../trace/file/write";
import { shortName } from "../trace/names";
import { tokenRefAt } from "../trace/tokenRef";
import { Arena } from "./arena.svelte";
import { UnsentFiles } from "./attachments.svelte";
import { Chat, type Shared } from "./chat.svelte";
import { Check } from "./check.svelte";
import { ConversationList } from "./conversationList.svelte";
import { Engine } from "./engine.svelte";
import { Exchange } from "./exchange.svelte";
import { Imports, isImported } from "./imports.svelte";
import { Library } from "./library.svelte";
import { Notices } from "./notices";
import { Panels } from "./panels.svelte";
import { Reply } from "./reply.svelte";
import { Server } from "./server.svelte";
import { ServerContents } from "./serverContents.svelte";
import { Servers } from "./servers.svelte";
import { DocumentSearch } from "./documentSearch.svelte";
import { Tools } from "./tools.svelte";
import { SettingSearch } from "./settingSearch.svelte";
import { Settings } from "./settings.svelte";
import { Storage } from "./storage.svelte";
import { Toasts } from "./toasts.svelte";
import { Traces } from "./traces.svelte";
import { Updates } from "./updates.svelte";
import { Unsent } from "./unsent.svelte";
import { View } from "./view.svelte";
import { t } from "../messages/say";
import { errorWords } from "../messages/errors";

export class App {
  readonly toasts = new Toasts();
  readonly view: View;
  readonly unsent: Unsent;
  readonly engine: Engine;
  readonly library: Library;
  readonly settings: Settings;
  readonly panels: Panels;
  readonly settingSearch = new SettingSearch();
  readonly traces: Traces;
  readonly reply: Reply;
  readonly imports: Imports;
  readonly exchange: Exchange;
  readonly check: Check;
  readonly arena: Arena;
  readonly storage: Storage;
  readonly server: Server;
  readonly servers: Servers;
  readonly tools: Tools;
  readonly documentSearch: DocumentSearch;
  readonly serverContents: ServerContents;
  readonly updates: Updates;
  info = $state.raw<AppInfo | null>(null);
  desktop = $state.raw<Desktop | null>(null);

  /** The draft chosen while a reply is written, and that reply. */
  #chosenMeanwhile = $state.raw<{ reply: number; draft: string } | null>(null);

  readonly #backend: Backend;

  readonly #shared: Shared;
  /** The chats side by side: one or two. */
  chats = $state.raw<readonly [Chat, ...Chat[]]>([] as unknown as [Chat]);
  #focused = $state.raw<Chat | null>(null);
  /** Whether the chats of the last time are open again. */
  restored = $state(false);

  constructor(backend: Backend) {
    this.#backend = backend;
    this.view = new View(backend);
    this.unsent = new Unsent(backend);
    this.engine = new Engine(backend);
    this.settings = new Settings(backend, (message) => this.toasts.show(message));
    const notices = new Notices(backend, () => this.settings.values.notifications);
    const dropped = (files: Dropped[]) => void this.addDropped(files);
    this.library = new Library(backend, this.engine, dropped, (before, after) => {
      notices.downloadsChanged(before, after);
    });
    this.panels = new Panels(this.settings);
    const list = new ConversationList(backend, this.toasts);
    this.traces = new Traces(backend, (message) => this.toasts.show(message));
    this.imports = new Imports(backend);
    const { toasts, settings, view, traces } = this;
    const files = new UnsentFiles();
    const reply = () => this.reply;
    this.#shared = { backend, toasts, settings, view, traces, list, files, reply };
    this.chats = [new Chat(this.#shared)];
    const onBegin = (conversation: number) => {
      // A new reply is more interesting than the replay of an old one.
      this.chatOf(conversation)?.playback.close();
      if (conversation === this.conversations.current) this.view.inspect(null);
    };
    const shown = {
      list,
      all: () => this.chats.map(({ conversations }) => conversations),
      focused: () => this.conversations,
    };
    this.reply = new Reply(backend, shown, this.traces, onBegin, (stored, ms) => {
      notices.replyEnded(stored, ms);
    });
    this.exchange = new Exchange(backend, list, this.toasts);
    const occupied = () => this.occupied;
    this.check = new Check(backend, occupied, (message, position) => {
      void this.showToken(message, position);
    });
    this.arena = new Arena(backend, this.settings, this.engine, this.toasts, occupied);
    this.storage = new Storage(backend);
    this.server = new Server(backend);
    this.servers = new Servers(backend, this.settings);
    this.tools = new Tools(backend, this.settings);
    this.documentSearch = new DocumentSearch(backend);
    this.updates = new Updates(backend, (version) => this.#announceUpdate(version));
    this.serverContents = new ServerContents(backend, {
      write: (text) => this.#write(text),
      attach: (name, text) => {
        this.#showComposer();
        this.attachments.addText(text, name);
      },
    });
  }

  /** Highlights a token of a reply on the page, by its index from 0. */
  async showToken(message: number, position: number) {
    await this.traces.want(message);
    const ref = tokenRefAt(this.traces.of(message)?.rounds ?? [], position);
    if (ref) this.view.inspect(message, ref);
  }

  /** Why the engine is busy, in a sentence that says what to do; null while it is idle. */
  get occupied(): string | null {
    if (this.reply.active) return t("window.replyWritten");
    if (this.check.running !== null) return t("window.replyChecked");
    return this.arena.running ? t("window.arenaRuns") : null;
  }

  /** The chat with the focus; the window's commands and the inspector follow it. */
  get chat(): Chat {
    return this.#focused ?? this.chats[0];
  }

  get conversations() {
    return this.chat.conversations;
  }

  get attachments() {
    return this.chat.attachments;
  }

  get context() {
    return this.chat.context;
  }

  get setup() {
    return this.chat.setup;
  }

  get playback() {
    return this.chat.playback;
  }

  get find() {
    return this.chat.find;
  }

  get newestReply() {
    return this.chat.newestReply;
  }

  get inspected() {
    return this.chat.inspected;
  }

  get inspectedTrace() {
    return this.chat.inspectedTrace;
  }

  traceOf(message: number) {
    return this.chat.traceOf(message);
  }

  speedupOf(message: number) {
    return this.chat.speedupOf(message);
  }

  lacksTrace(message: Message): boolean {
    return this.chat.lacksTrace(message);
  }

  focus(chat: Chat) {
    this.#focused = chat;
  }

  /** The chat that shows a conversation. */
  chatOf(conversation: number | null): Chat | null {
    return this.chats.find((chat) => chat.conversations.current === conversation) ?? null;
  }

  /** Opens a conversation beside the first one; for null, a new one. */
  async openBeside(conversation: number | null) {
    const shown = this.chatOf(conversation);
    if (shown) {
      this.focus(shown);
      return;
    }
    const [first, second] = this.chats;
    const chat = second ?? new Chat(this.#shared);
    this.chats = [first, chat];
    this.focus(chat);
    if (conversation === null) this.startNew();
    else await this.open(conversation);
  }

  /** Closes one of two chats; its conversation stays as it is. */
  close(chat: Chat) {
    const [rest] = this.chats.filter((other) => other !== chat);
    if (!rest) return;
    chat.playback.close();
    this.chats = [rest];
    this.focus(rest);
    this.view.inspect(null);
  }

  /** Opens the conversations that were beside each other when the window was closed. */
  async #restoreChats() {
    const { side_by_side: both } = this.view.state;
    const known = (id: number | null) =>
      id === null || this.#shared.list.all.some((one) => one.id === id);
    if (!both || !known(both.first) || !known(both.second) || both.first === both.second) return;
    if (both.first !== null) await this.open(both.first);
    await this.openBeside(both.second);
    this.focus(this.chats[0]);
  }

  /**
   * Returns whether a reply has neither drafts nor decisions about them. While it streams, drafting
   * must also be off, since drafts may follow.
   */
  isPlain(message: number): boolean {
    const streaming = this.reply.message?.id === message;
    if (streaming && this.engine.status.why.state !== "off") return false;
    const trace = this.traces.of(message);
    if (!trace || (trace.length === 0 && !streaming)) return false;
    return trace.statistics.drafted === 0 && trace.statistics.decision === null;
  }

  /** Fetches the window's state; the settings are loaded earlier. */
  async start() {
    // If the request fails, events only arrive at another pace.
    frames.onpace = (intervalMs) => void this.#backend.pace(intervalMs).catch(() => undefined);
    const info = this.#backend.appInfo().then((facts) => (this.info = facts));
    void this.reply.follow((conversation) => this.open(conversation));
    void this.lookAtDesktop();
    await Promise.all([
      this.engine.watch(),
      this.library.watch(),
      this.updates.watch(),
      this.#shared.list
        .load()
        .then(() => this.#restoreChats())
        .finally(() => (this.restored = true)),
      this.unsent.load(),
      this.attachments.load(null),
      info.catch((thrown: unknown) => this.#showError(thrown)),
      this.#showNotices(),
      this.imports.restore().then(() => this.#openGiven()),
    ]);
  }

  /** Says that there is a newer version, unless the settings show it. */
  #announceUpdate(version: string) {
    const { view } = this;
    if (view.settingsOpen && view.settingsSection === "updates") return;
    const run = () => {
      view.settingsSection = "updates";
      view.settingsOpen = true;
    };
    this.toasts.show(t("updates.available", { version }), { label: t("updates.show"), run });
  }

  /** Saves everything that is pending and closes the window. */
  async quit() {
    const setups = this.chats.map(({ setup }) => setup.save());
    await Promise.all([this.settings.save(), ...setups, this.unsent.save(), this.view.save()]);
    await this.#backend.quit().catch((thrown: unknown) => this.#showError(thrown));
  }

  async openFolder(folder: Folder) {
    await this.#backend.openFolder(folder).catch((thrown: unknown) => this.#showError(thrown));
  }

  /** Address of a preview of HTML; null if there is none, which a toast explains. */
  async preview(code: string): Promise<string | null> {
    if (code.length > LONGEST_PREVIEW) {
      this.toasts.show(t("reply.previewTooLong"));
      return null;
    }
    return await this.#choose(() => this.#backend.showPreview(sealed(code)));
  }

  /** Prints what the page has for paper; a toast explains why it cannot. */
  async print() {
    await this.#backend.print().catch((thrown: unknown) => this.#showError(thrown));
  }

  async toggleFullscreen() {
    await this.#backend.toggleFullscreen().catch((thrown: unknown) => this.#showError(thrown));
  }

  #showError(thrown: unknown) {
    this.toasts.show(errorWords(BackendError.from(thrown)));
  }

  /** Shows the notices from startup; the log has them as well. */
  async #showNotices() {
    const notices = await this.#backend.takeNotices().catch(() => []);
    for (const notice of notices) this.toasts.notify(notice);
  }

  /** Opens a new conversation, which begins in a folder, or in none for null. */
  startNew(folder: number | null = null) {
    const shown = this.chatOf(null);
    if (shown) this.focus(shown);
    this.conversations.folders.beginIn(folder);
    if (folder !== null) this.view.folders.open(folder);
    this.playback.close();
    this.view.arenaOpen = false;
    this.view.inspect(null);
    this.find.close();
    this.conversations.startNew();
  }

  /** Opens a conversation at a message, with the hits of `query` highlighted. */
  async open(conversation: number, message: number | null = null, query = "") {
    this.view.arenaOpen = false;
    const shown = this.chatOf(conversation);
    if (shown) this.focus(shown);
    const chat = this.chat;
    chat.find.close();
    if (conversation !== chat.conversations.current) {
      chat.playback.close();
      this.view.inspect(null);
    }
    const imported = this.imports.find(conversation);
    if (imported) {
      this.traces.keep(imported.reply.id, imported.trace);
      chat.conversations.show(conversation, imported.messages);
    } else {
      void chat.attachments.load(conversation);
      await chat.conversations.open(conversation, message);
      if (chat.conversations.current !== conversation) return;
      this.reply.replaceIn(chat.conversations);
      if (message !== null && query !== "") chat.find.show(query, message);
    }
    this.#retainShown();
  }

  /** Drops the traces and checks of replies that no chat shows. */
  #retainShown() {
    const messages = this.chats.flatMap((chat) => chat.conversations.messages);
    const shown = new Set(messages.map(({ id }) => id));
    if (this.reply.message) shown.add(this.reply.message.id);
    this.traces.retain(shown);
    this.check.retain(shown);
  }

  /**
   * Copies a conversation, up to a message or all of it. Opens the copy, unless another
   * conversation was opened meanwhile.
   */
  async duplicate(conversation: Conversation, upTo: number | null = null) {
    const { current } = this.conversations;
    const copy = await this.conversations.duplicate(conversation, upTo);
    if (copy && this.conversations.current === current) await this.open(copy.id);
  }

  /** The text of a reply's parts, including the one being written. */
  written(parts: readonly Message[]): string {
    const streamed = this.reply.message?.id;
    const texts = parts.map(({ id, text }) => {
      const trace = id === streamed ? this.traces.of(id) : undefined;
      // A reply may be streamed as text alone.
      return trace && trace.length > 0 ? trace.offsets.text : text;
    });
    return texts.join("");
  }

  /** Starts the replay of a stored reply. */
  async replay({ id }: Message) {
    if (this.reply.message?.id === id) return;
    await this.traces.want(id);
    const rounds = this.traces.of(id)?.rounds ?? [];
    if (rounds.length === 0) {
      this.toasts.show(t("window.noReplay"));
      return;
    }
    const speedups = await this.#speedupsOf(id);
    this.view.inspect(id);
    this.playback.open(id, rounds, !this.littleMotion, speedups);
  }

  /**
   * Speed-ups after each round of a reply; empty if they cannot be fetched, since a replay works
   * without.
   */
  async #speedupsOf(reply: number): Promise<readonly (Speedup | null)[]> {
    const imported = this.imports.list.find((file) => file.reply.id === reply);
    if (imported) return imported.speedups;
    return await this.#backend.speedups(reply).catch(() => []);
  }

  /** Writes a reply's trace to a file; resolves with its path, or null if that failed. */
  async exportTrace(reply: Message): Promise<string | null> {
    await this.traces.want(reply.id);
    const rounds = this.traces.of(reply.id)?.rounds;
    if (!rounds) return null;
    const { list, messages } = this.conversations;
    const title = list.find(({ id }) => id === reply.conversation)?.title ?? "";
    const before = messages.slice(0, messages.indexOf(reply));
    const prompt = before.findLast(({ role }) => role === "user")?.text ?? null;
    const program = `Foretoken ${this.info?.version ?? ""}`.trim();
    try {
      const text = await writeTrace({ reply, rounds, prompt, program });
      return await this.#backend.saveFile(traceFileName(title, reply.id), text);
    } catch (thrown) {
      this.toasts.show(errorWords(BackendError.from(thrown)));
      return null;
    }
  }

  /** Opens trace files and shows the last one; a toast explains each file that cannot be read. */
  async importTraces(files: Iterable<File>) {
    for (const file of files) {
      try {
        await this.open((await this.imports.read(file)).id);
      } catch (thrown) {
        const reason =
          thrown instanceof TraceFileError
            ? thrown.message
            : t("window.notRead", { detail: errorWords(BackendError.from(thrown)) });
        this.toasts.show(t("window.notImported", { file: file.name, reason }));
      }
    }
  }

  /** Removes an imported trace from the page; its file stays. */
  closeImported(conversation: number) {
    this.imports.forget(conversation);
    this.#leave(conversation);
  }

  /** Shows something else in place of a conversation that is gone. */
  #leave(conversation: number) {
    const chat = this.chatOf(conversation);
    if (!chat) return;
    if (this.chats.length > 1) this.close(chat);
    else this.startNew();
  }

  async delete(conversation: Conversation) {
    if (await this.conversations.delete(conversation)) this.#leave(conversation.id);
  }

  /** Name of the draft chosen while a reply is written; used from the next reply on. */
  get nextDraft(): string | null {
    const chosen = this.#chosenMeanwhile;
    return chosen?.reply === this.reply.message?.id ? (chosen?.draft ?? null) : null;
  }

  #noteNext(reply: number, draft: string) {
    const label = this.engine.label(draft);
    if (label === undefined) return;
    this.#chosenMeanwhile = { reply, draft: shortName(label) };
    this.toasts.show(t("pill.next", { draft: this.nextDraft ?? "" }));
  }

  /** Selects a draft for the loaded target; null selects the best one automatically. */
  chooseDraft(draft: string | null): Promise<void> {
    const target = this.engine.status.target?.id ?? this.settings.values.target;
    const { message } = this.reply;
    if (draft !== null && message) this.#noteNext(message.id, draft);
    return this.settings.chooseDraft(target, draft);
  }

  /** Loads a target with `draft`; null keeps the draft selected for it. */
  loadTarget(target: string, draft: string | null): Promise<void> {
    const own: Record<string, string> = draft === null ? {} : { [target]: draft };
    return this.settings.choose({ target, drafts: { ...this.settings.values.drafts, ...own } });
  }

  /** Cancels loading; the settings return to the loaded models. */
  async cancelLoading() {
    try {
      await this.settings.save();
      await this.#backend.cancelLoading();
      await this.settings.refreshModels();
    } catch (thrown) {
      this.toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  /** Adds a model by its path; resolves with the reason it cannot be added, or null. */
  async addModel(path: string): Promise<string | null> {
    return await this.#changeModels(async () => {
      this.library.newest = (await this.#backend.addModel(path)).id;
    });
  }

  /**
   * Opens files dropped on the window by their kind: models, traces, conversations, attachments.
   */
  async addDropped(dropped: readonly Dropped[]) {
    const of = (kind: Dropped["kind"]) =>
      dropped.filter((file) => file.kind === kind).map(({ path }) => path);
    // In parallel, so that slow files do not delay the others.
    await Promise.all([
      this.#readDropped(of("trace"), of("attachment")),
      this.exchange.import(of("conversations")),
      this.#addModels(of("model")),
    ]);
  }

  async #readDropped(traces: readonly string[], attachments: readonly string[]) {
    await this.importTraces(await this.#droppedFiles(traces));
    await this.attach(await this.#droppedFiles(attachments));
  }

  /**
   * Attaches files to the message being written and shows the composer, in a new chat if necessary.
   */
  async attach(files: Iterable<Source>) {
    const taken = [...files];
    if (taken.length === 0) return;
    this.#showComposer();
    await this.attachments.add(taken);
  }

  /** Adds a text to the message being written, without sending it. */
  #write(added: string) {
    this.#showComposer();
    const { current } = this.conversations;
    const text = this.unsent.of(current);
    this.unsent.set(current, text === "" ? added : `${text}\n\n${added}`);
  }

  #showComposer() {
    this.view.arenaOpen = false;
    this.playback.close();
    if (isImported(this.conversations.current)) this.startNew();
  }

  /** Whether pictures of the screen can be taken for the chosen model. */
  get takesScreenshots(): boolean {
    return this.engine.status.sees && this.desktop?.screenshots === true;
  }

  /** Attaches a screenshot that a person takes now, unless they cancel it. */
  async attachScreenshot() {
    try {
      const picture = await this.#backend.takeScreenshot();
      if (picture.byteLength === 0) return;
      await this.attach([new File([picture], t("attach.screenshotName"))]);
    } catch (thrown) {
      this.attachments.refuseScreenshot(thrown);
    }
  }

  /** Attaches the picture in the clipboard; without one, says so if one is `expected`. */
  async attachClipboardPicture(expected: boolean) {
    try {
      const picture = await this.#backend.clipboardPicture();
      await this.attach([new File([picture], t("attach.pastedPicture"))]);
    } catch {
      if (expected) this.attachments.refuseImage();
    }
  }

  /** Readable files at `paths`; a toast explains each of the others. */
  async #droppedFiles(paths: readonly string[]): Promise<File[]> {
    const files: File[] = [];
    for (const path of paths) {
      try {
        files.push(await this.#backend.droppedFile(path));
      } catch (thrown) {
        this.toasts.show(errorWords(BackendError.from(thrown)));
      }
    }
    return files;
  }

  /** Adds models and opens the library. */
  async #addModels(paths: readonly string[]) {
    if (paths.length === 0) return;
    this.view.settingsOpen = false;
    this.view.openLibrary("installed");
    this.library.problem = null;
    const refusals: string[] = [];
    for (const path of paths) {
      const refusal = await this.addModel(path);
      if (refusal !== null) refusals.push(refusal);
    }
    if (refusals.length === 0) return;
    this.library.problem = { code: "bad_model", message: refusals.join(" "), details: null };
  }

  removeModel(id: string): Promise<string | null> {
    return this.#changeModels(() => this.#backend.removeModel(id));
  }

  chooseModelFile(): Promise<string | null> {
    return this.#choose(() => this.#backend.chooseModelFile(t("dialog.model"), t("dialog.models")));
  }

  chooseModelFolder(): Promise<string | null> {
    return this.#choose(() => this.#backend.chooseModelFolder(t("dialog.modelFolder")));
  }

  /** Names the dialog for attachments in the language of the page. */
  async nameAttachDialog() {
    const words = [t("attach.attach"), t("drop.attachWhat"), t("dialog.allFiles")] as const;
    await this.#backend.nameAttachDialog(...words).catch((thrown: unknown) => {
      this.#showError(thrown);
    });
  }

  /** Names the tray icon's menu in the language of the page. */
  async nameTray() {
    const words: TrayWords = {
      open: t("tray.open"),
      running: t("tray.running", { url: "{url}" }),
      stopped: t("tray.stopped"),
      failed: t("tray.failed"),
      start: t("tray.start"),
      stop: t("tray.stop"),
      quick: t("tray.quick"),
      quit: t("tray.quit"),
    };
    await this.#backend.nameTray(words).catch((thrown: unknown) => this.#showError(thrown));
  }

  /** Hides the window for a quick question, which this page is in. */
  async hideQuick() {
    await this.#backend.hideQuick().catch((thrown: unknown) => this.#showError(thrown));
  }

  /** Opens the conversation of a quick question in the main window. */
  async continueInMain(conversation: number) {
    await this.#backend.continueInMain(conversation).catch((thrown: unknown) => {
      this.#showError(thrown);
    });
  }

  /** Opens a conversation that a quick question has begun, with a reply under way. */
  async takeOver(conversation: number) {
    await this.conversations.load();
    await this.open(conversation);
    await this.reply.follow((followed) => this.open(followed));
  }

  /** Fetches what the desktop offers; without an answer, nothing is said to be missing. */
  async lookAtDesktop() {
    this.desktop = await this.#backend.desktop().catch(() => null);
  }

  /** Whether the settings or the system ask for reduced motion. */
  get littleMotion(): boolean {
    return (
      this.settings.values.appearance.reduced_motion ||
      matchMedia("(prefers-reduced-motion: reduce)").matches
    );
  }

  /** Opens the trace that the program was started with. */
  async #openGiven() {
    try {
      const file = await this.#backend.traceToOpen();
      if (file) await this.importTraces([file]);
    } catch (thrown) {
      this.toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  async #choose(ask: () => Promise<string | null>): Promise<string | null> {
    try {
      return await ask();
    } catch (thrown) {
      this.toasts.show(errorWords(BackendError.from(thrown)));
      return null;
    }
  }

  async #changeModels(change: () => Promise<unknown>): Promise<string | null> {
    try {
      // Pending changes would otherwise be saved later, with the old list.
      await this.settings.save();
      await change();
      await this.settings.refreshModels();
      return null;
    } catch (thrown) {
      return errorWords(BackendError.from(thrown));
    }
  }
}

export const [getApp, setApp] = createContext<App>();
