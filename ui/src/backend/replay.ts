/**
 * Backend in an ordinary browser, for work on the page without the shell. Plays recorded traces,
 * keeps conversations and settings in memory, and computes nothing. Options in the address:
 *
 * - `?engine=loading` and `?engine=failed` keep the engine in that state.
 * - `?speed=1` plays replies at their original pace; the default is a twentieth of it, since the
 *   starter pair is too fast to watch.
 * - `?rate=2000` streams an endless synthetic reply of that many tokens per second, after
 *   `?rounds=100000` rounds at once.
 * - `?messages=500` adds a conversation of that many messages.
 * - `?trace=` and an address open an exported trace.
 */
import type { Advice } from "../bindings/Advice";
import type { ArenaEvent } from "../bindings/ArenaEvent";
import type { ArenaRequest } from "../bindings/ArenaRequest";
import type { Attached } from "../bindings/Attached";
import type { CheckProgress } from "../bindings/CheckProgress";
import type { Conversation } from "../bindings/Conversation";
import type { DeviceOption } from "../bindings/DeviceOption";
import type { DraftOption } from "../bindings/DraftOption";
import type { Download } from "../bindings/Download";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ErrorCode } from "../bindings/ErrorCode";
import type { FileDrag } from "../bindings/FileDrag";
import type { Finish } from "../bindings/Finish";
import type { GpuApi } from "../bindings/GpuApi";
import type { Message } from "../bindings/Message";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { PresetValues } from "../bindings/PresetValues";
import type { Reply } from "../bindings/Reply";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Round } from "../bindings/Round";
import type { SearchHit } from "../bindings/SearchHit";
import type { Sent } from "../bindings/Sent";
import type { ServerRequest } from "../bindings/ServerRequest";
import type { Settings } from "../bindings/Settings";
import type { Speedup } from "../bindings/Speedup";
import type { TokenCount } from "../bindings/TokenCount";
import type { ImportedTrace } from "../bindings/ImportedTrace";
import type { Unsent } from "../bindings/Unsent";
import type { UnsentEdit } from "../bindings/UnsentEdit";
import type { UnsentFile } from "../bindings/UnsentFile";
import type { ViewState } from "../bindings/ViewState";
import type { Why } from "../bindings/Why";
import { defaults, viewDefaults } from "../bindings/defaults";
import { facts } from "../bindings/facts";
import { Synthesis } from "../trace/synthetic";
import { summaryOf } from "../trace/summary";
import { textOf } from "../trace/text";
import { BackendError, type Backend } from "./backend";
import { restOf, type Recording } from "./recording";
import { recordingFor } from "./recordings";
import { ReplayArena } from "./replayArena";
import { checkReply } from "./replayCheck";
import type { Desk } from "./replayDesk";
import { ReplayDrops } from "./replayDrops";
import { ReplayLibrary } from "./replayLibrary";
import { ReplayMessages } from "./replayMessages";
import { ReplaySetup } from "./replaySetup";
import { CPU, STARTER, TARGETS, fileDetail, memoryOf } from "./replayModels";
import { sampleSpeedups, sampleSum, withSpeedups } from "./sampleSpeedups";

const STARTER_DRAFT: DraftOption = {
  id: "starter-draft",
  label: "Starter draft 1.1M · Q8_0",
  detail: fileDetail("llama", 1_312_000, 1024),
  merit: { kind: "known_pair" },
  problem: null,
};

const DRAFTS: DraftOption[] = [
  STARTER_DRAFT,
  {
    id: "/home/me/.local/share/dev.foretoken/models/storyteller-30m.gguf",
    label: "Storyteller 30.2M · F16",
    detail: fileDetail("llama", 60_620_000, 2048),
    merit: null,
    problem: null,
  },
  {
    id: facts.draftNgram,
    label: facts.ngramName,
    detail: null,
    merit: { kind: "needs_no_model" },
    problem: null,
  },
  {
    id: facts.draftNone,
    label: "",
    detail: null,
    merit: null,
    problem: null,
  },
  {
    id: "/models/tinyllama-1.1b.gguf",
    label: "TinyLlama 1.1B · Q4_K_M",
    detail: fileDetail("llama", 669_000_000, 2048),
    merit: null,
    problem: {
      kind: "other_vocabulary",
      reason: "the vocabularies differ at token 259: '  ' in the target, ' t' in the draft",
    },
  },
  {
    id: "/home/me/.cache/huggingface/hub/models--unsloth--Qwen3-0.6B-GGUF/snapshots/abc/Qwen3-0.6B-Q8_0.gguf",
    label: "Qwen3 0.6B, 751.6 M, Q8_0",
    detail: fileDetail("qwen3", 639_200_000, 40_960),
    merit: null,
    problem: {
      kind: "larger_than_target",
      reason:
        "it is larger than the target, 639.2 MB against 8.8 MB: a guess would cost more than the token it may save",
    },
  },
];

const WATCHABLE_SPEED = 0.05;
const DAY_MS = 86_400_000;
const HIT_CONTEXT = 36;
const LONG_TITLE = "A long conversation";
/** Tokens per second of stored synthetic replies. */
const STORED_RATE = 40;
const BYTES_PER_DRAFTED = 14;
const BYTES_PER_ROUND = 40;
/** Prefill speed in tokens per second. */
const READING_RATE = 100;
const PENALTIES = {
  repetition_penalty: 1.03,
  repeat_last_n: 128,
  dry_multiplier: 0.8,
  dry_base: 1.75,
  dry_allowed_length: 4,
  dry_penalty_last_n: 2048,
};

export class Replay implements Backend {
  #view = viewDefaults;
  readonly #unsent = new Map<number | null, string>();
  // The starter pair wrote the recordings.
  #settings: Settings = { ...structuredClone(defaults), target: "starter" };
  #conversations = new Map<number, Conversation>();
  #deleted = new Map<number, Conversation>();
  readonly #messages = new ReplayMessages();
  readonly #setup = new ReplaySetup();
  #traces = new Map<number, Round[]>();
  #targets = [...TARGETS];
  #watchers: ((status: EngineStatus) => void)[] = [];
  #phase: EngineStatus["phase"] = "loading";
  #stopped = false;
  #nextId = 1;

  readonly #held: string | null;
  readonly #trace: string | null;
  readonly #speed: number;
  /** Tokens per second of a synthetic reply; 0 plays recordings. */
  readonly #rate: number;
  readonly #roundsAtOnce: number;
  readonly #library: ReplayLibrary;
  readonly #drops = new ReplayDrops();
  readonly #files = new Map<number, Attached>();
  readonly #arena: ReplayArena;
  readonly #answer: string | null;

  readonly #desk: Desk = {
    begin: (tokens) => {
      this.#refuse(tokens);
      this.#stopped = false;
      this.#enter("replying");
    },
    end: () => this.#enter("ready"),
    stopped: () => this.#stopped,
    settings: () => this.#settings,
    status: () => this.#status(),
    play: (ms) => until(performance.now() + ms / this.#speed),
  };

  constructor(options: URLSearchParams, settleMs = 350) {
    this.#library = new ReplayLibrary(options, (model) => {
      this.#targets = [...this.#targets, model];
      this.#announce();
    });
    this.#held = options.get("engine");
    this.#trace = options.get("trace");
    this.#speed = Number(options.get("speed")) || WATCHABLE_SPEED;
    this.#rate = Number(options.get("rate")) || 0;
    this.#roundsAtOnce = Number(options.get("rounds")) || 0;
    this.#answer = options.get("check");
    this.#arena = new ReplayArena(options, this.#desk);
    this.#recall("Tell me a story about a fox who finds a lantern.", 2, true);
    this.#recall("What is speculative decoding?", 20 * 60_000);
    this.#recall("Count from one to twelve.", DAY_MS);
    this.#recall("Why is my draft slow?", 4 * DAY_MS);
    this.#recallLong(Number(options.get("messages")) || 0);
    if (this.#held !== "loading") {
      setTimeout(() => this.#enter(this.#held === "failed" ? "failed" : "ready"), settleMs);
    }
  }

  appInfo = () =>
    Promise.resolve({
      version: "replay",
      data_folder: "in memory, gone with this page",
      models_folder: "nowhere",
    });

  openFolder = () =>
    Promise.reject(new BackendError("not_found", "A page in a browser has no folders."));

  takeNotices = () => Promise.resolve([]);

  settings = () => Promise.resolve(structuredClone(this.#settings));

  viewState = () => Promise.resolve(this.#view);

  saveViewState = (state: ViewState) => {
    this.#view = state;
    return Promise.resolve();
  };

  unsent = () =>
    Promise.resolve([...this.#unsent].map(([conversation, text]) => ({ conversation, text })));

  saveUnsent = ({ conversation, text }: Unsent) => {
    if (text === "") this.#unsent.delete(conversation);
    else this.#unsent.set(conversation, text);
    return Promise.resolve();
  };

  unsentFiles = (): Promise<UnsentFile[]> => Promise.resolve([]);
  addUnsentFile = () => Promise.resolve((this.#nextId += 1));
  removeUnsentFiles = () => Promise.resolve();
  unsentEdits = (): Promise<UnsentEdit[]> => Promise.resolve([]);
  saveUnsentEdit = () => Promise.resolve();
  removeUnsentEdit = () => Promise.resolve();
  keepImportedTrace = (): Promise<number | null> => Promise.resolve(null);
  importedTraces = (): Promise<ImportedTrace[]> => Promise.resolve([]);
  importedTrace = () => Promise.resolve(new ArrayBuffer(0));
  forgetImportedTrace = () => Promise.resolve();

  // A browser's window cannot be closed from here.
  quit = () => Promise.resolve();
  toggleFullscreen = () => Promise.resolve();

  /** A reloaded page has a new backend without a reply under way. */
  followReply = () => Promise.resolve(null);

  saveSettings = (settings: Settings) => {
    const problem = this.#targets.find(({ id }) => id === settings.target)?.problem;
    if (problem) return Promise.reject(new BackendError("bad_setting", problem.reason));
    this.#settings = structuredClone(settings);
    this.#announce();
    return this.settings();
  };

  builtInPresets = () => {
    const target = this.#targets.find(({ id }) => id === this.#settings.target);
    return Promise.resolve(this.#setup.builtIn(this.#settings, target));
  };

  openSetup = (conversation: number | null) =>
    Promise.resolve(this.#setup.open(conversation, this.#settings));

  saveSetup = (conversation: number | null, preset: string | null, values: PresetValues | null) =>
    Promise.resolve(this.#setup.save(conversation, values && { preset, values }, this.#settings));

  serverStatus = () => {
    const { enabled } = this.#settings.server;
    const problem = enabled ? "A page in a browser cannot listen on a port." : null;
    return Promise.resolve({ url: null, problem });
  };

  serverRequests = () => Promise.resolve<ServerRequest[]>([]);

  addServer = (name: string, address: string) => {
    const others = this.#settings.remote_servers.filter((server) => server.name !== name);
    return this.saveSettings({
      ...this.#settings,
      remote_servers: [...others, { name, address, models: [] }],
    });
  };

  testServer = (): Promise<Settings> =>
    Promise.reject(new BackendError("remote", "A page in a browser cannot ask a server."));

  removeServer = (name: string) => {
    const left = this.#settings.remote_servers.filter((server) => server.name !== name);
    return this.saveSettings({ ...this.#settings, remote_servers: left });
  };

  watchEngine = (onStatus: (status: EngineStatus) => void) => {
    this.#watchers.push(onStatus);
    onStatus(this.#status());
    return Promise.resolve();
  };

  lookForDevices = () => Promise.resolve();

  addModel = (path: string) => {
    if (!path.endsWith(".gguf")) {
      const message = `${path} is not a model Foretoken can read: expected a .gguf file or a safetensors folder, found neither. Choose another path.`;
      return Promise.reject(new BackendError("bad_model", message));
    }
    const label = path.split("/").at(-1) ?? path;
    const reason = "the file is not on this computer: a browser cannot read it";
    const problem = { kind: "cannot_be_read", reason } as const;
    const entry = { ...STARTER, id: path, label, detail: null, problem };
    const size_bytes = 137.4e6;
    const unread = { size_bytes, ...memoryOf(size_bytes), parameters: 0, context: 0 };
    const model: ModelEntry = { ...entry, ...unread, kind: "added", name: path };
    this.#targets = [...this.#targets.filter(({ id }) => id !== path), model];
    this.#announce();
    return Promise.resolve(model);
  };

  removeModel = (id: string) => {
    this.#targets = this.#targets.filter((target) => target.id !== id);
    this.#announce();
    return Promise.resolve();
  };

  deleteModel = (id: string) => this.removeModel(id);

  chooseModelFile = () => Promise.resolve("/models/example.gguf");

  chooseModelFolder = () => Promise.resolve("/models/no-model-in-here");

  watchFileDrags = (onDrag: (drag: FileDrag) => void) => this.#drops.watch(onDrag);
  droppedFile = (path: string) => this.#drops.file(path);
  catalogue = () => this.#library.catalogue();
  recommendations = () => this.#library.recommendations();
  searchHub = (words: string) => this.#library.searchHub(words);
  cancelHubRequests = () => this.#library.cancelHubRequests();
  findRepository = (name: string) => this.#library.findRepository(name);
  watchDownloads = (onChange: (downloads: Download[]) => void) =>
    this.#library.watchDownloads(onChange);
  startDownload = (repository: string, file: string | null) =>
    this.#library.startDownload(repository, file);
  pauseDownload = (id: string) => this.#library.pauseDownload(id);
  resumeDownload = (id: string) => this.#library.resumeDownload(id);
  cancelDownload = (id: string) => this.#library.cancelDownload(id);
  dismissDownload = (id: string) => this.#library.dismissDownload(id);
  hubToken = () => this.#library.hubToken();
  setHubToken = (token: string | null) => this.#library.setHubToken(token);

  advise = (_conversation: number | null, onAdvice: (advice: Advice) => void) =>
    this.#library.advise(this.#status().drafts, onAdvice);
  cancelLoading = () => {
    this.#enter("ready");
    return Promise.resolve();
  };

  stopAdvice = () => this.#library.stopAdvice();

  conversations = () =>
    Promise.resolve(
      [...this.#conversations.values()].sort(
        (a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at,
      ),
    );

  messages = (conversation: number) =>
    Promise.resolve(withSpeedups(this.#messages.shown(conversation)));

  trace = (message: number) => Promise.resolve(this.#traces.get(message) ?? []);

  speedups = (message: number) => {
    const earlier = this.#speedupUntil(this.#messages.find(message)?.parent ?? null);
    const own = sampleSpeedups(this.#traces.get(message) ?? []);
    return Promise.resolve(own.map((speedup) => sampleSum([earlier, speedup], 1)));
  };

  traceSpeedups = (rounds: Round[]) => Promise.resolve(sampleSpeedups(rounds));

  pairSpeedups = () => {
    const replies = this.#messages.all().filter(({ summary }) => summary?.speedup);
    const speedup = sampleSum(
      replies.map(({ summary }) => summary?.speedup ?? null),
      replies.length,
    );
    if (!speedup) return Promise.resolve([]);
    return Promise.resolve([{ target: STARTER.label, draft: STARTER_DRAFT.label, speedup }]);
  };

  rename = (conversation: number, title: string) => this.#change(conversation, { title });

  pin = (conversation: number, pinned: boolean) => this.#change(conversation, { pinned });

  delete = (conversation: number) => {
    const found = this.#conversations.get(conversation);
    if (found) this.#deleted.set(conversation, found);
    this.#conversations.delete(conversation);
    return Promise.resolve();
  };

  restore = (conversation: number) => {
    const found = this.#deleted.get(conversation);
    if (!found) return Promise.reject(notFound(conversation));
    this.#conversations.set(conversation, found);
    return Promise.resolve(found);
  };

  writeTitle = () => Promise.resolve(null);

  duplicate = async (conversation: number, upTo: number | null, title: string) => {
    const found = this.#conversations.get(conversation);
    if (!found) throw notFound(conversation);
    const path = upTo === null ? null : this.#messages.upTo(upTo).map(({ id }) => id);
    const copy = { ...found, id: this.#nextId++, title, pinned: false, updated_at: Date.now() };
    this.#conversations.set(copy.id, copy);
    const ids = new Map<number | null, number>();
    for (const message of this.#messages.all()) {
      if (message.conversation !== conversation || path?.includes(message.id) === false) continue;
      const id = this.#nextId++;
      ids.set(message.id, id);
      this.#traces.set(id, this.#traces.get(message.id) ?? []);
      const parent = ids.get(message.parent) ?? null;
      this.#messages.add({ ...message, id, parent, conversation: copy.id });
    }
    return await Promise.resolve(copy);
  };

  exportConversations = () => Promise.reject(noFiles());
  chooseConversationFiles = () => Promise.resolve(["/exports/conversations.json"]);
  importConversations = () => Promise.reject(noFiles());
  stopImport = () => Promise.resolve();

  search = (query: string) => {
    const wanted = query.trim().toLowerCase();
    const hits = this.#messages.all().flatMap((message): SearchHit[] => {
      const at = message.text.toLowerCase().indexOf(wanted);
      const conversation = this.#conversations.get(message.conversation);
      if (wanted === "" || at < 0 || !conversation) return [];
      const from = Math.max(0, at - HIT_CONTEXT);
      const end = at + wanted.length;
      const { text } = message;
      const before = (from > 0 ? "…" : "") + text.slice(from, at);
      const after = text.slice(end, end + HIT_CONTEXT);
      const excerpt = `${before}\u0002${text.slice(at, end)}\u0003${after}`;
      return [{ conversation, message: message.id, excerpt }];
    });
    return Promise.resolve(hits);
  };

  attachment = (id: number) => {
    const file = this.#files.get(id);
    return file ? Promise.resolve(file) : Promise.reject(notFound(id));
  };

  countAttachment = ({ text }: Attached) => Promise.resolve(estimated(text));

  contextUse = (conversation: number | null) => {
    const shown = conversation === null ? [] : this.#messages.shown(conversation);
    const ids = shown.flatMap(({ attachments }) => attachments.map(({ id }) => id));
    const files = ids.map((id) => this.#files.get(id)?.text ?? "").join("");
    const system_prompt = estimated(this.#settings.system_prompt);
    const used = { tokens: this.#used(conversation), exact: true };
    return Promise.resolve({ used, system_prompt, attachments: estimated(files) });
  };

  /** Number of tokens in the context of a conversation. */
  #used(conversation: number | null): number {
    const start = this.#conversations.get(conversation ?? 0)?.seen_from ?? 0;
    const shown = conversation === null ? [] : this.#messages.shown(conversation);
    const summary = shown.findLast(({ id }) => id >= start)?.summary;
    return (summary?.prompt_tokens ?? 0) + (summary?.tokens ?? 0);
  }

  send = async (
    conversation: number | null,
    sent: Sent,
    onEvent: (event: ReplyEvent) => void,
  ): Promise<Reply> => {
    this.#refuseSent(sent, conversation);
    const home = this.#home(conversation, sent.text || (sent.attached[0]?.name ?? ""));
    const user = this.#ask(home.id, sent, this.#messages.leaf(home.id));
    return await this.#play(home, user, user.id, onEvent);
  };

  sendInstead = async (
    message: number,
    sent: Sent,
    onEvent: (event: ReplyEvent) => void,
  ): Promise<Reply> => {
    this.#refuseSent(sent);
    const { home, found } = this.#found(message, "user");
    const user = this.#ask(home.id, sent, found.parent);
    return await this.#play(home, user, user.id, onEvent);
  };

  regenerate = async (message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply> => {
    this.#refuse(0);
    const role = this.#messages.find(message)?.role ?? "assistant";
    const { home, found } = this.#found(message, role);
    return await this.#play(home, null, role === "user" ? message : found.parent, onEvent);
  };

  continueReply = async (message: number, onEvent: (event: ReplyEvent) => void): Promise<Reply> => {
    this.#refuse(0);
    const { home, found } = this.#found(message, "assistant");
    if (found.text === "") throw notFound(message);
    return await this.#play(home, null, message, onEvent);
  };

  chooseBranch = (message: number) =>
    this.#changeBranch(message, (found) => this.#messages.choose(found));

  deleteMessage = (message: number) =>
    this.#changeBranch(message, (found) => this.#messages.delete(found));

  restoreMessage = async (message: number): Promise<Message[]> => {
    const restored = this.#messages.restore(message);
    if (!restored) throw notFound(message);
    return await this.messages(restored.conversation);
  };

  leaveOutOldest = async (conversation: number, next: Sent | null) => {
    const asked = (await this.messages(conversation)).filter(({ role }) => role === "user");
    const last = this.#nextId;
    return await this.#change(conversation, {
      seen_from: next === null ? (asked.at(-1)?.id ?? last) : last,
    });
  };

  setContextStart = (conversation: number, question: number | null) =>
    this.#change(conversation, { seen_from: question ?? this.#nextId });

  clearContextStart = (conversation: number) => this.#change(conversation, { seen_from: null });

  stop = () => {
    this.#stopped = true;
    return Promise.resolve();
  };

  pace = () => Promise.resolve();

  saveFile = (name: string, text: string) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    return Promise.resolve(name);
  };

  traceToOpen = () => (this.#trace === null ? Promise.resolve(null) : fetched(this.#trace));
  checkReply = (message: number, onProgress: (progress: CheckProgress) => void) =>
    checkReply(this.#traces.get(message) ?? [], this.#answer, this.#desk, onProgress);

  runArena = (request: ArenaRequest, onEvent: (event: ArenaEvent) => void) =>
    this.#arena.run(request, onEvent);
  arenas = () => this.#arena.arenas();
  deleteArena = (id: number) => this.#arena.delete(id);

  traceStorage = () => {
    const rounds = [...this.#traces.values()].flat();
    const drafted = rounds.reduce((tokens, round) => tokens + round.drafted.length, 0);
    return Promise.resolve({
      bytes: drafted * BYTES_PER_DRAFTED + rounds.length * BYTES_PER_ROUND,
      replies: this.#traces.size,
    });
  };

  deleteTraces = (olderThanDays: number | null) => {
    const before = olderThanDays === null ? Infinity : Date.now() - olderThanDays * DAY_MS;
    for (const { id, conversation } of this.#messages.all()) {
      const at = this.#conversations.get(conversation)?.updated_at ?? 0;
      if (at < before) this.#traces.delete(id);
    }
    return this.traceStorage();
  };

  /** Throws if a question cannot be answered now. */
  #refuseSent({ text, kept, attached }: Sent, conversation: number | null = null) {
    if (text.trim() === "" && kept.length + attached.length === 0) {
      throw new BackendError("empty_prompt", "the prompt is empty: write something first.");
    }
    const all = [text, ...attached.map((file) => file.text)].join("");
    const { tokens } = estimated(all);
    const before = this.#used(conversation);
    this.#refuse(tokens, before);
    if (conversation === null || before + tokens < STARTER.context) return;
    void this.#change(conversation, { seen_from: this.#nextId });
  }

  /** Throws if a prompt of about `tokens` tokens after `before` others cannot be answered now. */
  #refuse(tokens: number, before = 0) {
    this.#refuseBusy();
    if (this.#phase !== "ready") {
      throw new BackendError(
        "no_target",
        "No model is loaded: wait, or choose one in the Library.",
      );
    }
    const { context } = STARTER;
    const refuse = (code: ErrorCode, tokens: number) => {
      throw new BackendError(code, "The prompt is too long.", { tokens, context });
    };
    if (tokens >= context) refuse("message_too_long", tokens);
    if (before + tokens < context || this.#settings.context_overflow === "drop_oldest") return;
    refuse("prompt_too_long", before + tokens);
  }

  #refuseBusy() {
    if (this.#phase !== "replying") return;
    const message = "a reply, a check or an arena is running: stop it or wait until it finishes.";
    throw new BackendError("busy", message);
  }

  /** A message of this role, and its conversation. */
  #found(message: number, role: Message["role"]): { home: Conversation; found: Message } {
    const found = this.#messages.find(message);
    const home = found && this.#conversations.get(found.conversation);
    if (!home || found.role !== role) throw notFound(message);
    return { home, found };
  }

  async #changeBranch(id: number, change: (message: Message) => void): Promise<Message[]> {
    this.#refuseBusy();
    const found = this.#messages.find(id);
    if (!found) throw notFound(id);
    change(found);
    return await this.messages(found.conversation);
  }

  /** Plays a reply after the message `after`: to a question, or as a continuation of a reply. */
  async #play(
    home: Conversation,
    user: Message | null,
    after: number | null,
    onEvent: (event: ReplyEvent) => void,
  ): Promise<Reply> {
    this.#stopped = false;
    this.#enter("replying");
    const before = this.#messages.upTo(after);
    const reply = this.#write(home.id, "assistant", "", after);
    this.#setup.keep(home.id, this.#settings);
    onEvent({ type: "started", conversation: home, user, reply });
    if (this.#rate > 0) {
      const stored = await this.#synthesise(reply, onEvent);
      return { conversation: this.#touch(home), reply: stored };
    }
    const { rounds, promptTokens, finish } = this.#rest(before);
    onEvent({ type: "prompt", done: 0, total: promptTokens });
    const played: Round[] = [];
    const earlier = this.#speedupUntil(after);
    const speedups = sampleSpeedups(rounds);
    const begin = performance.now();
    for (const [index, round] of rounds.entries()) {
      if (this.#hasStopped() || this.#full(played)) break;
      await until(begin + round.at_ms / this.#speed);
      played.push(round);
      onEvent({ type: "round", round });
      const speedup = sampleSum([earlier, speedups[index] ?? null], 1);
      if (speedup) onEvent({ type: "speedup", speedup });
    }
    const whole = played.length === rounds.length;
    const end: Finish = this.#hasStopped() ? "cancelled" : whole ? finish : "length";
    const stored = this.#store(reply, played, end, promptTokens);
    this.#enter("ready");
    const instead = stored.text === "" ? this.#messages.withdraw(stored) : undefined;
    const shown = withSpeedups(this.#messages.upTo((instead ?? stored).id)).at(-1);
    return { conversation: this.#touch(home), reply: shown ?? stored };
  }

  /** Speed-up of a message and the parts that it continues. */
  #speedupUntil(message: number | null): Speedup | null {
    return withSpeedups(this.#messages.upTo(message)).at(-1)?.speedup ?? null;
  }

  /** The recording for the last question, without the part that was already played. */
  #rest(before: Message[]): Recording {
    const asked = before.findLastIndex(({ role }) => role === "user");
    const recording = recordingFor(before[asked]?.text ?? "", this.#drafts());
    const said = before.slice(asked + 1).reduce((letters, { text }) => letters + text.length, 0);
    return said === 0 ? recording : restOf(recording, said);
  }

  /** Streams an endless reply until it is stopped. */
  async #synthesise(reply: Message, onEvent: (event: ReplyEvent) => void): Promise<Message> {
    const source = new Synthesis(reply.id, this.#rate);
    const played = source.take(this.#roundsAtOnce);
    for (const round of played) onEvent({ type: "round", round });
    const begin = performance.now() - (played.at(-1)?.at_ms ?? 0);
    while (!this.#hasStopped()) {
      const round = source.next();
      // Timers are coarser than rounds: all rounds that are due come at once.
      if (begin + round.at_ms > performance.now()) await until(begin + round.at_ms);
      played.push(round);
      onEvent({ type: "round", round });
    }
    const stored = this.#store(reply, played, "cancelled", 0);
    this.#enter("ready");
    return stored;
  }

  #full(played: Round[]) {
    const limit = this.#settings.max_tokens;
    return limit > 0 && summaryOf(played, "length", 0).tokens >= limit;
  }

  /** Read through a method, since the value changes while `#play` waits. */
  #hasStopped() {
    return this.#stopped;
  }

  #store(reply: Message, rounds: Round[], finish: Finish, promptTokens: number): Message {
    const { speculation, sampling, system_prompt, thinking } = this.#settings;
    const settings = structuredClone({ speculation, sampling, system_prompt, thinking });
    const speedup = sampleSpeedups(rounds).at(-1) ?? null;
    const summary = { ...summaryOf(rounds, finish, promptTokens), settings, speedup };
    const stored: Message = { ...reply, text: textOf(rounds), finish, summary, speedup };
    if (this.#settings.keep_traces) this.#traces.set(reply.id, rounds);
    this.#messages.change(reply.id, stored);
    return stored;
  }

  /** Adds a conversation from before this page was opened. */
  #recall(question: string, agoMs: number, pinned = false) {
    const home = this.#home(null, question);
    const updated_at = Date.now() - agoMs;
    this.#conversations.set(home.id, { ...home, updated_at, pinned });
    const { id } = this.#write(home.id, "user", question, null);
    const { rounds, finish, promptTokens } = recordingFor(question, this.#drafts());
    this.#store(this.#write(home.id, "assistant", "", id), rounds, finish, promptTokens);
  }

  /** Adds a conversation of many messages: questions and synthetic replies alternately. */
  #recallLong(messages: number) {
    if (messages === 0) return;
    const home = this.#home(null, LONG_TITLE);
    for (let turn = 0; turn < messages / 2; turn += 1) {
      const before = this.#messages.leaf(home.id);
      const { id } = this.#write(home.id, "user", `What happened on night ${turn + 1}?`, before);
      const rounds = new Synthesis(turn, STORED_RATE).take(30 + ((turn * 37) % 90));
      this.#store(this.#write(home.id, "assistant", "", id), rounds, "stop", 20 + turn);
    }
  }

  #home(conversation: number | null, text: string): Conversation {
    const known = conversation === null ? undefined : this.#conversations.get(conversation);
    if (known) return this.#touch(known);
    const title = text.length > 48 ? `${text.slice(0, 47)}…` : text;
    const updated_at = Date.now();
    const home = { id: this.#nextId++, title, pinned: false, updated_at, seen_from: null };
    this.#conversations.set(home.id, home);
    return home;
  }

  #touch(home: Conversation): Conversation {
    const touched = { ...(this.#conversations.get(home.id) ?? home), updated_at: Date.now() };
    this.#conversations.set(home.id, touched);
    return touched;
  }

  #write(
    conversation: number,
    role: Message["role"],
    text: string,
    parent: number | null,
  ): Message {
    const byReply = role === "assistant";
    return this.#messages.add({
      id: this.#nextId++,
      conversation,
      role,
      text,
      created_at: Date.now(),
      finish: null,
      summary: null,
      target: byReply ? this.#target().label : null,
      draft: byReply ? this.#draft().label : null,
      problem: null,
      parent,
      attachments: [],
      unstored: null,
      speedup: null,
    });
  }

  /** Adds a question with its attachments. */
  #ask(conversation: number, { text, kept, attached }: Sent, parent: number | null): Message {
    const question = this.#write(conversation, "user", text, parent);
    const files = [...kept.flatMap((id) => this.#files.get(id) ?? []), ...attached];
    const attachments = files.map((file) => {
      const id = this.#nextId++;
      this.#files.set(id, file);
      return { id, name: file.name, kind: file.kind, bytes: file.text.length };
    });
    this.#messages.change(question.id, { attachments });
    return { ...question, attachments };
  }

  #change(conversation: number, change: Partial<Conversation>): Promise<Conversation> {
    const found = this.#conversations.get(conversation);
    if (!found) return Promise.reject(notFound(conversation));
    const changed = { ...found, ...change };
    this.#conversations.set(conversation, changed);
    return Promise.resolve(changed);
  }

  #target(): ModelEntry {
    return this.#targets.find(({ id }) => id === this.#settings.target) ?? STARTER;
  }

  #draft(): DraftOption {
    const { target, drafts } = this.#settings;
    const found = DRAFTS.find(({ id }) => id === drafts[target]);
    return found ?? STARTER_DRAFT;
  }

  #enter(phase: EngineStatus["phase"]) {
    this.#phase = phase;
    this.#announce();
  }

  #announce() {
    for (const watcher of this.#watchers) watcher(this.#status());
  }

  /** Whether replies are drafted. */
  #drafts(): boolean {
    return this.#why().state === "on";
  }

  #why(): Why {
    const { length } = this.#settings.speculation;
    if (this.#draft().id === facts.draftNone) return off({ kind: "no_draft" });
    if (length.type === "off") return off({ kind: "settings" });
    const tokens = length.type === "auto" ? null : length.tokens;
    return { ...off(null), state: "on", drafter: this.#draft().label, length: tokens };
  }

  #status(): EngineStatus {
    const loaded = this.#phase === "ready" || this.#phase === "replying";
    return {
      phase: this.#phase,
      message: MESSAGES[this.#phase],
      loading:
        this.#phase === "loading" ? { label: STARTER.label, percent: 43, draft: false } : null,
      target: loaded ? this.#target() : null,
      thinks: null,
      merges_system: false,
      targets: this.#targets,
      drafts: DRAFTS,
      draft: this.#draft().id,
      why: loaded ? this.#why() : off({ kind: "no_model" }),
      device: CPU,
      device_choice: this.#settings.device,
      draft_device: this.#draft() === STARTER_DRAFT ? CPU : null,
      device_remarks: [],
      device_notes: [],
      devices: DEVICES,
      memory: {
        target_bytes: 12_000_000,
        draft_bytes: 2_000_000,
        process_bytes: 240_000_000,
        free_bytes: 9_000_000_000,
        gpu_bytes: 0,
        gpu_free_bytes: 0,
      },
      reading_rate: READING_RATE,
      penalties: PENALTIES,
    };
  }
}

/** Estimates tokens from characters, by the ratio of English. */
function estimated(text: string): TokenCount {
  return { tokens: Math.ceil(text.length / 4), exact: false };
}

function off(reason: Why["off"]): Why {
  const nothing = { drafter: null, length: null, reason: null, expected: null };
  return { state: "off", ...nothing, off: reason, remarks: [] };
}

/** A GPU that cannot be used: a browser computes nothing. */
function absent(choice: DeviceOption["choice"], name: string, gpu: GpuApi): DeviceOption {
  const label = { api: null, name, facts: [] };
  return { choice, label, problem: { kind: "no_gpu", args: gpu } };
}

const DEVICES: DeviceOption[] = [
  { choice: "auto", label: { ...CPU, name: "Automatic" }, problem: null },
  { choice: "cpu", label: CPU, problem: null },
  absent("gpu", "GPU", "any"),
  absent("cuda", "CUDA", "cuda"),
  absent("metal", "Metal", "metal"),
];

const MESSAGES: Record<EngineStatus["phase"], EngineStatus["message"]> = {
  loading: null,
  failed: {
    kind: "error",
    code: "bad_model",
    detail:
      "/models/broken.gguf is not a model Foretoken can read: expected a GGUF file, found one that ends after 4,096 bytes. Download it again, or choose another model.",
  },
  ready: null,
  replying: null,
};

function noFiles(): BackendError {
  const message = "A page in a browser has no files of conversations: use the application.";
  return new BackendError("bad_file", message);
}

function notFound(id: number): BackendError {
  return new BackendError("not_found", `nothing has the number ${id}: it may have been deleted.`);
}

async function fetched(address: string): Promise<File> {
  const refused = (reason: string) =>
    new BackendError("not_found", `${address} could not be fetched: ${reason}. Check the address.`);
  const answer = await fetch(address).catch((thrown: unknown) => {
    throw refused(thrown instanceof Error ? thrown.message : String(thrown));
  });
  if (!answer.ok) throw refused(`the answer was ${answer.status}`);
  return new File([await answer.blob()], address.split("/").at(-1) ?? address);
}

function until(moment: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.max(0, moment - performance.now())));
}
