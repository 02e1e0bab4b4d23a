/** All state of the page, made once around a backend and handed to components by context. */
import { createContext } from "svelte";
import type { AppInfo } from "../bindings/AppInfo";
import { BackendError, type Backend } from "../backend/backend";
import { Conversations } from "./conversations.svelte";
import { Engine } from "./engine.svelte";
import { Library } from "./library.svelte";
import { Reply } from "./reply.svelte";
import { Settings } from "./settings.svelte";
import { Toasts } from "./toasts.svelte";
import type { Trace } from "./trace.svelte";
import { Traces } from "./traces.svelte";
import { View } from "./view.svelte";

export class App {
  readonly toasts = new Toasts();
  readonly view = new View();
  readonly engine: Engine;
  readonly library: Library;
  readonly settings: Settings;
  readonly conversations: Conversations;
  readonly traces: Traces;
  readonly reply: Reply;
  info = $state.raw<AppInfo | null>(null);

  readonly #backend: Backend;

  readonly newestReply = $derived.by(
    () => this.conversations.messages.findLast(({ role }) => role === "assistant") ?? null,
  );

  /** The reply whose trace the inspector shows: the one asked for, else the newest on the page. */
  readonly inspected = $derived.by(() => {
    const wanted = this.view.inspected;
    return this.conversations.messages.find(({ id }) => id === wanted) ?? this.newestReply;
  });

  constructor(backend: Backend) {
    this.#backend = backend;
    this.engine = new Engine(backend);
    this.library = new Library(backend, this.engine, (paths) => void this.addDropped(paths));
    this.settings = new Settings(backend, (message) => this.toasts.show(message));
    this.conversations = new Conversations(backend, this.toasts);
    this.traces = new Traces(backend, (message) => this.toasts.show(message));
    this.reply = new Reply(backend, this.conversations, this.traces, (conversation) => {
      // What has just been asked for is what one wants to watch.
      if (conversation === this.conversations.current) this.view.inspect(null);
    });
  }

  get inspectedTrace(): Trace | undefined {
    return this.inspected ? this.traces.of(this.inspected.id) : undefined;
  }

  /** Fetches what the window shows; the settings were read before it was. */
  async start() {
    const info = this.#backend.appInfo().then((facts) => (this.info = facts));
    await Promise.all([
      this.engine.watch(),
      this.library.watch(),
      this.conversations.load(),
      info.catch((thrown: unknown) => this.toasts.show(BackendError.from(thrown).message)),
    ]);
  }

  startNew() {
    this.view.inspect(null);
    this.conversations.startNew();
  }

  async open(conversation: number, message: number | null = null) {
    if (conversation !== this.conversations.current) this.view.inspect(null);
    await this.conversations.open(conversation, message);
    this.reply.replaceIn(conversation);
    const shown = new Set(this.conversations.messages.map(({ id }) => id));
    if (this.reply.message) shown.add(this.reply.message.id);
    this.traces.retain(shown);
  }

  /** Gives up what is being loaded; the settings are then what is loaded. */
  async cancelLoading() {
    try {
      await this.settings.save();
      await this.#backend.cancelLoading();
      await this.settings.refreshModels();
    } catch (thrown) {
      this.toasts.show(BackendError.from(thrown).message);
    }
  }

  /** Adds a model by its path; resolves with the sentence that says why not, or null. */
  async addModel(path: string): Promise<string | null> {
    return await this.#changeModels(async () => {
      this.library.newest = (await this.#backend.addModel(path)).id;
    });
  }

  /** Adds what was dropped on the window, and shows the library with it. */
  async addDropped(paths: string[]) {
    this.view.settingsOpen = false;
    this.view.openLibrary("installed");
    this.library.problem = null;
    const refusals: string[] = [];
    for (const path of paths) {
      const refusal = await this.addModel(path);
      if (refusal !== null) refusals.push(refusal);
    }
    if (refusals.length === 0) return;
    this.library.problem = { code: "bad_model", message: refusals.join(" ") };
  }

  removeModel(id: string): Promise<string | null> {
    return this.#changeModels(() => this.#backend.removeModel(id));
  }

  chooseModelFile(): Promise<string | null> {
    return this.#choose(() => this.#backend.chooseModelFile());
  }

  chooseModelFolder(): Promise<string | null> {
    return this.#choose(() => this.#backend.chooseModelFolder());
  }

  async #choose(ask: () => Promise<string | null>): Promise<string | null> {
    try {
      return await ask();
    } catch (thrown) {
      this.toasts.show(BackendError.from(thrown).message);
      return null;
    }
  }

  async #changeModels(change: () => Promise<unknown>): Promise<string | null> {
    try {
      // What is not saved yet would be saved later with the old list.
      await this.settings.save();
      await change();
      await this.settings.refreshModels();
      return null;
    } catch (thrown) {
      return BackendError.from(thrown).message;
    }
  }
}

export const [getApp, setApp] = createContext<App>();
