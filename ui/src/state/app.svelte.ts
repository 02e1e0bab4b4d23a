/** All state of the page, created once around a backend and passed to components by context. */
import { createContext } from "svelte";
import type { AppInfo } from "../bindings/AppInfo";
import { BackendError, type Backend } from "../backend/backend";
import type { Conversation } from "../bindings/Conversation";
import type { Dropped } from "../bindings/Dropped";
import type { Folder } from "../bindings/Folder";
import type { Message } from "../bindings/Message";
import type { Speedup } from "../bindings/Speedup";
import type { Source } from "../attachments/read";
import { frames } from "../frames";
import { LONGEST_PREVIEW } from "../markdown/preview";
import { sealed } from "../markdown/sealed";
import { TraceFileError } from "../trace/file/problem";
import { traceFileName, writeTrace } from "../trace/file/write";
import { shortName } from "../trace/names";
import { tokenRefAt } from "../trace/tokenRef";
import { Arena } from "./arena.svelte";
import { Attachments } from "./attachments.svelte";
import { replyParts, turnsOf } from "./branches";
import { Check } from "./check.svelte";
import { Context } from "./context.svelte";
import { Conversations } from "./conversations.svelte";
import { Engine } from "./engine.svelte";
import { Exchange } from "./exchange.svelte";
import { Find } from "./find.svelte";
import { Imports, isImported } from "./imports.svelte";
import { Library } from "./library.svelte";
import { Notices } from "./notices";
import { Panels } from "./panels.svelte";
import { Playback } from "./playback.svelte";
import { Reply } from "./reply.svelte";
import { Server } from "./server.svelte";
import { ServerContents } from "./serverContents.svelte";
import { Servers } from "./servers.svelte";
import { DocumentSearch } from "./documentSearch.svelte";
import { Tools } from "./tools.svelte";
import { SettingSearch } from "./settingSearch.svelte";
import { Settings } from "./settings.svelte";
import { Setup } from "./setup.svelte";
import { Storage } from "./storage.svelte";
import { Toasts } from "./toasts.svelte";
import type { Trace } from "./trace.svelte";
import { Traces } from "./traces.svelte";
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
  readonly setup: Setup;
  readonly settingSearch = new SettingSearch();
  readonly conversations: Conversations;
  readonly traces: Traces;
  readonly attachments: Attachments;
  readonly context: Context;
  readonly reply: Reply;
  readonly playback = new Playback();
  readonly imports: Imports;
  readonly find = new Find();
  readonly exchange: Exchange;
  readonly check: Check;
  readonly arena: Arena;
  readonly storage: Storage;
  readonly server: Server;
  readonly servers: Servers;
  readonly tools: Tools;
  readonly documentSearch: DocumentSearch;
  readonly serverContents: ServerContents;
  info = $state.raw<AppInfo | null>(null);

  /** The draft chosen while a reply is written, and that reply. */
  #chosenMeanwhile = $state.raw<{ reply: number; draft: string } | null>(null);

  readonly #backend: Backend;

  readonly newestReply = $derived.by(
    () => this.conversations.messages.findLast(({ role }) => role === "assistant") ?? null,
  );

  /** The reply whose trace the inspector shows: the chosen one, the one in view, or the newest. */
  readonly inspected = $derived.by(() => {
    const { messages } = this.conversations;
    const find = (wanted: number | null) => messages.find(({ id }) => id === wanted);
    return find(this.view.inspected) ?? find(this.view.inView) ?? this.newestReply;
  });

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
    this.setup = new Setup(backend, this.settings, this.toasts);
    this.conversations = new Conversations(backend, this.toasts, () => this.playback.close());
    this.traces = new Traces(backend, (message) => this.toasts.show(message));
    this.imports = new Imports(backend);
    this.context = new Context(backend);
    this.attachments = new Attachments(
      backend,
      () => this.conversations.current,
      () => this.context.use.whole_files,
    );
    const onBegin = (conversation: number) => {
      // A new reply is more interesting than the replay of an old one.
      this.playback.close();
      if (conversation === this.conversations.current) this.view.inspect(null);
    };
    this.reply = new Reply(backend, this.conversations, this.traces, onBegin, (stored, ms) => {
      notices.replyEnded(stored, ms);
    });
    this.exchange = new Exchange(backend, this.conversations, this.toasts);
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

  get inspectedTrace(): Trace | undefined {
    return this.inspected ? this.traceOf(this.inspected.id) : undefined;
  }

  /** The trace of a reply as shown: during a replay, only the rounds up to the current moment. */
  traceOf(message: number): Trace | undefined {
    if (this.playback.message === message) return this.playback.trace;
    return this.traces.of(message);
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
    return last?.id === this.reply.message?.id ? this.reply.speedup : (last?.speedup ?? null);
  }

  /** First part of the first reply in the open conversation that is shown as tokens, or null. */
  readonly firstInTokens = $derived.by(() => {
    const replies = turnsOf(this.conversations.messages).filter(
      ({ message }) => message.role === "assistant" && !this.lacksTrace(message),
    );
    const firsts = replies.map(({ message, before }) => before[0]?.id ?? message.id);
    return firsts.find((first) => this.view.viewOf(first) === "tokens") ?? null;
  });

  /** Whether a reply has no recorded rounds, and so no tokens to show. */
  lacksTrace({ id, summary, text }: Message): boolean {
    const trace = this.traces.of(id);
    if (this.reply.message?.id === id) return trace?.length === 0 && text !== "";
    return trace ? trace.length === 0 : summary?.rounds === 0;
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
    await Promise.all([
      this.engine.watch(),
      this.library.watch(),
      this.conversations.load(),
      this.unsent.load(),
      this.attachments.load(null),
      info.catch((thrown: unknown) => this.#showError(thrown)),
      this.#showNotices(),
      this.imports.restore().then(() => this.#openGiven()),
    ]);
  }

  /** Saves everything that is pending and closes the window. */
  async quit() {
    await Promise.all([this.settings.save(), this.setup.save(), this.unsent.save()]);
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
    this.find.close();
    if (conversation !== this.conversations.current) {
      this.playback.close();
      this.view.inspect(null);
    }
    const imported = this.imports.find(conversation);
    if (imported) {
      this.traces.keep(imported.reply.id, imported.trace);
      this.conversations.show(conversation, imported.messages);
    } else {
      void this.attachments.load(conversation);
      await this.conversations.open(conversation, message);
      if (this.conversations.current !== conversation) return;
      this.reply.replaceIn(conversation);
      if (message !== null && query !== "") this.find.show(query, message);
    }
    const shown = new Set(this.conversations.messages.map(({ id }) => id));
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
    if (this.conversations.current === conversation) this.startNew();
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
