/**
 * Backend in an ordinary browser, for work on the page without the shell, and for tests. Plays
 * recorded calls of the shell's commands; what a person changes is kept in memory. Options in the
 * address:
 *
 * - `?engine=loading` and `?engine=failed` keep the engine in that state.
 * - `?speed=1` plays at the recorded pace; the default is a twentieth of it, since the starter pair
 *   is too fast to watch.
 * - `?rate=2000` streams an endless synthetic reply of that many tokens per second, after
 *   `?rounds=100000` rounds at once.
 * - `?messages=500` adds a conversation of that many messages.
 * - `?downloads=sample` begins with a download in every state.
 * - `?trace=` and an address open an exported trace.
 */
import type { Advice } from "../bindings/Advice";
import type { Arena } from "../bindings/Arena";
import type { Attached } from "../bindings/Attached";
import type { Commands } from "../bindings/commands";
import type { Conversation } from "../bindings/Conversation";
import type { Download } from "../bindings/Download";
import type { EngineStatus } from "../bindings/EngineStatus";
import type { ErrorCode } from "../bindings/ErrorCode";
import type { Finish } from "../bindings/Finish";
import type { Message } from "../bindings/Message";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Reply } from "../bindings/Reply";
import type { ReplyCheck } from "../bindings/ReplyCheck";
import type { ReplyEvent } from "../bindings/ReplyEvent";
import type { Repository } from "../bindings/Repository";
import type { Round } from "../bindings/Round";
import type { SearchHit } from "../bindings/SearchHit";
import type { Sent } from "../bindings/Sent";
import type { Settings } from "../bindings/Settings";
import type { Speedup } from "../bindings/Speedup";
import type { TokenSource } from "../bindings/TokenSource";
import type { Unsent } from "../bindings/Unsent";
import { defaults, viewDefaults } from "../bindings/defaults";
import { facts } from "../bindings/facts";
import { Synthesis } from "../trace/synthetic";
import { summaryOf } from "../trace/summary";
import { textOf } from "../trace/text";
import { BackendError, type Backend } from "./backend";
import type { Channel } from "./channel";
import { backendOver, type Call } from "./commands";
import { Downloads, offered } from "./downloads";
import { Drops } from "./drops";
import { MessageTree } from "./messageTree";
import { restOf, type RecordedCall, type Recording } from "./recording";
import { callOf, recordedStatus, replyTo } from "./recordings";
import { Setups } from "./setups";

const WATCHABLE_SPEED = 0.05;
const DAY_MS = 86_400_000;
const HIT_CONTEXT = 36;
/** Tokens per second of stored synthetic replies. */
const STORED_RATE = 40;

type Args<Name extends keyof Commands> = Commands[Name]["args"];
type Answer<Name extends keyof Commands> = Commands[Name]["returns"] extends null
  ? unknown
  : Commands[Name]["returns"];
/** Commands with state; all others have their recorded answer. */
type Handlers = {
  [Name in keyof Commands]?: (args: Args<Name>) => Answer<Name> | Promise<Answer<Name>>;
};

/** Rounds of a stored reply, with the speed-up after each. */
type Trace = Pick<Recording, "rounds" | "speedups">;

class Player {
  readonly #speed: number;
  /** Tokens per second of a synthetic reply; 0 plays recordings. */
  readonly #rate: number;
  readonly #roundsAtOnce: number;
  /** Phase in which the engine stays. */
  readonly #heldPhase: string | null;

  #view = viewDefaults;
  readonly #unsent = new Map<number | null, Unsent>();
  // The starter pair wrote the recordings.
  #settings: Settings = { ...structuredClone(defaults), target: "starter" };
  readonly #conversations = new Map<number, Conversation>();
  readonly #deleted = new Map<number, Conversation>();
  readonly #messages = new MessageTree();
  readonly #traces = new Map<number, Trace>();
  readonly #files = new Map<number, Attached>();
  readonly #setups = new Setups();
  readonly #drops = new Drops();
  readonly #downloads: Downloads;
  #arenas: Arena[] = [];
  #token: TokenSource = "none";
  readonly #recorded = recordedStatus();
  #targets = this.#recorded.targets;
  readonly #watchers: ((status: EngineStatus) => void)[] = [];
  #phase: EngineStatus["phase"] = "loading";
  #stopped = false;
  #nextId = 1;

  constructor(options: URLSearchParams, settleMs: number) {
    this.#heldPhase = options.get("engine");
    this.#speed = Number(options.get("speed")) || WATCHABLE_SPEED;
    this.#rate = Number(options.get("rate")) || 0;
    this.#roundsAtOnce = Number(options.get("rounds")) || 0;
    const sample = options.get("downloads") === "sample";
    const downloads = sample ? recorded("watch_downloads").events[0]?.event : [];
    this.#downloads = new Downloads(downloads as Download[], (download) =>
      this.#addTarget(downloaded(download)),
    );
    this.#recall("Tell me a story about a fox who finds a lantern.", 2, true);
    this.#recall("What is speculative decoding?", 20 * 60_000);
    this.#recall("Count from one to twelve.", DAY_MS);
    this.#recall("Why is my draft slow?", 4 * DAY_MS);
    this.#recallLong(Number(options.get("messages")) || 0);
    if (this.#heldPhase === "loading") return;
    const phase = this.#heldPhase === "failed" ? "failed" : "ready";
    setTimeout(() => this.#enter(phase), settleMs);
  }

  /** Calls a command: its handler, or else its recorded answer. */
  call: Call = async <Name extends keyof Commands>(name: Name, args: Args<Name>) => {
    const handler = this.#handlers[name];
    return (await (handler ? handler(args) : answered(name, args))) as Commands[Name]["returns"];
  };

  readonly #handlers: Handlers = {
    settings: () => structuredClone(this.#settings),
    save_settings: ({ settings }) => this.#save(settings),
    view_state: () => this.#view,
    save_view_state: ({ state }) => (this.#view = state),
    unsent: () => [...this.#unsent.values()],
    save_unsent: ({ unsent }) =>
      unsent.text === ""
        ? this.#unsent.delete(unsent.conversation)
        : this.#unsent.set(unsent.conversation, unsent),
    built_in_presets: () => this.#setups.builtIn(this.#settings, this.#chosenTarget()),
    open_setup: ({ conversation }) => this.#setups.open(conversation, this.#settings),
    save_setup: ({ conversation, preset, values }) =>
      this.#setups.save(conversation, values && { preset, values }, this.#settings),
    server_status: () => {
      const { enabled } = this.#settings.server;
      return {
        url: null,
        problem: enabled ? "A page in a browser cannot listen on a port." : null,
      };
    },
    add_server: ({ name, address }) => {
      const servers = this.#settings.remote_servers.filter((server) => server.name !== name);
      return this.#save({
        ...this.#settings,
        remote_servers: [...servers, { name, address, models: [] }],
      });
    },
    remove_server: ({ name }) => {
      const servers = this.#settings.remote_servers.filter((server) => server.name !== name);
      return this.#save({ ...this.#settings, remote_servers: servers });
    },

    watch_engine: ({ onChange }) => {
      this.#watchers.push((status) => onChange.onmessage(status));
      onChange.onmessage(this.#status());
    },
    cancel_loading: () => this.#enter("ready"),
    add_model: ({ path }) => {
      if (!path.endsWith(".gguf")) {
        const message = `${path} is not a model Foretoken can read: expected a .gguf file or a safetensors folder, found neither. Choose another path.`;
        throw new BackendError("bad_model", message);
      }
      const reason = "the file is not on this computer: a browser cannot read it";
      return this.#addTarget({
        ...this.#starter(),
        ...{ id: path, kind: "added", name: path, label: path.split("/").at(-1) ?? path },
        ...{ detail: null, problem: { kind: "cannot_be_read", reason } },
        ...{ size_bytes: 137.4e6, memory_bytes: 154.6e6, parameters: 0, context: 0 },
      });
    },
    remove_model: ({ id }) => this.#removeTarget(id),
    delete_model: ({ id }) => this.#removeTarget(id),
    watch_file_drags: ({ onDrag }) => this.#drops.watch((drag) => onDrag.onmessage(drag)),
    dropped_file: async ({ path }) => await (await this.#drops.file(path)).arrayBuffer(),

    search_hub: async ({ words }) => {
      const found = await answered("search_hub", { words });
      return found.filter(({ id }) => id.toLowerCase().includes(words.toLowerCase()));
    },
    find_repository: async ({ name }) => {
      const found = JSON.stringify(await answered("find_repository", { name }));
      const model = (name.split("/").at(-1) ?? name).replace(/-GGUF$/i, "");
      return JSON.parse(found.replaceAll("NAME", name).replaceAll("MODEL", model)) as Repository;
    },
    watch_downloads: ({ onChange }) => this.#downloads.watch((all) => onChange.onmessage(all)),
    start_download: ({ repository, file }) => this.#startDownload(repository, file),
    pause_download: ({ id }) => this.#downloads.pause(id),
    resume_download: ({ id }) => this.#downloads.resume(id),
    cancel_download: ({ id }) => this.#downloads.remove(id),
    dismiss_download: ({ id }) => this.#downloads.remove(id),
    hub_token: () => this.#token,
    set_hub_token: async ({ token }) => {
      await until(performance.now() + ANSWER_MS);
      if (token?.includes("wrong")) {
        throw new BackendError("needs_token", "The hub refused the token: make a new one there.");
      }
      return (this.#token = token === null ? "none" : "keyring");
    },
    advise: async ({ onAdvice }) => {
      this.#stopped = false;
      let last: Advice | undefined;
      await this.#play(recorded("advise"), 1, (event) =>
        onAdvice.onmessage((last = event as Advice)),
      );
      if (last && this.#hasStopped()) onAdvice.onmessage({ ...last, state: "waiting" });
    },
    stop_advice: () => (this.#stopped = true),

    list_conversations: () =>
      [...this.#conversations.values()].sort(
        (a, b) => Number(b.pinned) - Number(a.pinned) || b.updated_at - a.updated_at,
      ),
    messages: ({ conversation }) => this.#messages.shown(conversation),
    trace: ({ message }) => this.#traces.get(message)?.rounds ?? [],
    speedups: ({ message }) => this.#traces.get(message)?.speedups ?? [],
    trace_speedups: ({ rounds }) => rounds.map(() => null),
    pair_speedups: () => {
      const speedups = this.#messages.all().flatMap(({ speedup }) => speedup ?? []);
      const sum = (field: "plain_ms" | "saved_ms" | "elapsed_ms") =>
        speedups.reduce((total, speedup) => total + speedup[field], 0);
      const [plain_ms, saved_ms, elapsed_ms] = [
        sum("plain_ms"),
        sum("saved_ms"),
        sum("elapsed_ms"),
      ];
      const { length: replies } = speedups;
      if (replies === 0) return [];
      const speedup = { factor: plain_ms / elapsed_ms, plain_ms, saved_ms, elapsed_ms, replies };
      return [
        { target: this.#starter().label, draft: this.#recorded.drafts[0]?.label ?? "", speedup },
      ];
    },
    rename_conversation: ({ conversation, title }) => this.#change(conversation, { title }),
    pin_conversation: ({ conversation, pinned }) => this.#change(conversation, { pinned }),
    delete_conversation: ({ conversation }) => {
      const found = this.#conversations.get(conversation);
      if (found) this.#deleted.set(conversation, found);
      this.#conversations.delete(conversation);
    },
    restore_conversation: ({ conversation }) => {
      const found = this.#deleted.get(conversation) ?? notFound(conversation);
      this.#conversations.set(conversation, found);
      return found;
    },
    duplicate_conversation: ({ conversation, upTo, title }) => {
      const found = this.#conversations.get(conversation) ?? notFound(conversation);
      const path = upTo === null ? null : this.#messages.upTo(upTo).map(({ id }) => id);
      const copy = { ...found, id: this.#nextId++, title, pinned: false, updated_at: Date.now() };
      this.#conversations.set(copy.id, copy);
      const ids = new Map<number | null, number>();
      for (const message of this.#messages.all()) {
        if (message.conversation !== conversation || path?.includes(message.id) === false) continue;
        const id = this.#nextId++;
        ids.set(message.id, id);
        const trace = this.#traces.get(message.id);
        if (trace) this.#traces.set(id, trace);
        const parent = ids.get(message.parent) ?? null;
        this.#messages.add({ ...message, id, parent, conversation: copy.id });
      }
      return copy;
    },
    search_messages: ({ query }) => {
      const words = query.trim().toLowerCase();
      return this.#messages.all().flatMap(({ id, conversation, text }): SearchHit[] => {
        const at = text.toLowerCase().indexOf(words);
        const home = this.#conversations.get(conversation);
        if (words === "" || at < 0 || !home) return [];
        const [from, end] = [Math.max(0, at - HIT_CONTEXT), at + words.length];
        const before = (from > 0 ? "…" : "") + text.slice(from, at);
        const after = text.slice(end, end + HIT_CONTEXT);
        const excerpt = `${before}\u0002${text.slice(at, end)}\u0003${after}`;
        return [{ conversation: home, message: id, excerpt }];
      });
    },
    attachment: ({ id }) => this.#files.get(id) ?? notFound(id),
    count_attachment: ({ file }) => estimated(file.text),
    context_use: ({ conversation }) => {
      const shown = conversation === null ? [] : this.#messages.shown(conversation);
      const files = shown.flatMap(({ attachments }) => attachments.map(({ id }) => id));
      return {
        used: { tokens: this.#used(conversation), exact: true },
        system_prompt: estimated(this.#settings.system_prompt),
        attachments: estimated(files.map((id) => this.#files.get(id)?.text ?? "").join("")),
      };
    },

    send: ({ conversation, sent, onEvents }) => {
      this.#refuseSent(sent, conversation);
      const home = this.#home(conversation, sent.text || (sent.attached[0]?.name ?? ""));
      const user = this.#ask(home.id, sent, this.#messages.leaf(home.id));
      return this.#reply(home, user, user.id, onEvents);
    },
    send_instead: ({ message, sent, onEvents }) => {
      this.#refuseSent(sent);
      const { home, found } = this.#found(message, "user");
      const user = this.#ask(home.id, sent, found.parent);
      return this.#reply(home, user, user.id, onEvents);
    },
    regenerate: ({ message, onEvents }) => {
      this.#refuse(0);
      const { home, found } = this.#found(message);
      return this.#reply(home, null, found.role === "user" ? message : found.parent, onEvents);
    },
    continue_reply: ({ message, onEvents }) => {
      this.#refuse(0);
      const { home, found } = this.#found(message, "assistant");
      return found.text === "" ? notFound(message) : this.#reply(home, null, message, onEvents);
    },
    choose_branch: ({ message }) =>
      this.#changeBranch(message, (found) => this.#messages.choose(found)),
    delete_message: ({ message }) =>
      this.#changeBranch(message, (found) => this.#messages.delete(found)),
    restore_message: ({ message }) => {
      const restored = this.#messages.restore(message) ?? notFound(message);
      return this.#messages.shown(restored.conversation);
    },
    leave_out_oldest: ({ conversation, next }) => {
      const asked = this.#messages.shown(conversation).findLast(({ role }) => role === "user");
      const seen_from = next === null ? (asked?.id ?? this.#nextId) : this.#nextId;
      return this.#change(conversation, { seen_from });
    },
    see_from: ({ conversation, question }) =>
      this.#change(conversation, { seen_from: question ?? this.#nextId }),
    see_all: ({ conversation }) => this.#change(conversation, { seen_from: null }),
    stop: () => (this.#stopped = true),

    check_reply: async ({ message, onProgress }) => {
      if (!this.#traces.has(message)) throw new BackendError("not_found", NO_TRACE);
      return (await this.#occupied("check_reply", 0, onProgress)) as ReplyCheck;
    },
    run_arena: async ({ request, onEvents }) => {
      if (request.prompt.trim() === "") throw emptyPrompt();
      const { tokens } = estimated(request.prompt);
      const answer = (await this.#occupied("run_arena", tokens, onEvents)) as Arena;
      const { prompt, max_tokens } = request;
      const created = { id: this.#nextId++, created_at: Date.now() };
      const arena: Arena = { ...answer, ...created, prompt, max_tokens };
      this.#arenas = [arena, ...this.#arenas];
      return arena;
    },
    arenas: () => this.#arenas,
    delete_arena: ({ id }) => (this.#arenas = this.#arenas.filter((arena) => arena.id !== id)),
    trace_storage: () => this.#storage(),
    delete_traces: ({ olderThanDays }) => {
      const before = olderThanDays === null ? Infinity : Date.now() - olderThanDays * DAY_MS;
      for (const { id, conversation } of this.#messages.all()) {
        const at = this.#conversations.get(conversation)?.updated_at ?? 0;
        if (at < before) this.#traces.delete(id);
      }
      return this.#storage();
    },
    save_file: ({ name, text }) => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
      link.download = name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
      return name;
    },
  };

  #save(settings: Settings): Settings {
    const problem = this.#targets.find(({ id }) => id === settings.target)?.problem;
    if (problem) throw new BackendError("bad_setting", problem.reason);
    this.#settings = structuredClone(settings);
    this.#announce();
    return structuredClone(settings);
  }

  #storage() {
    const rounds = [...this.#traces.values()].flatMap((trace) => trace.rounds);
    const drafted = rounds.reduce((tokens, round) => tokens + round.drafted.length, 0);
    return { bytes: 14 * drafted + 40 * rounds.length, replies: this.#traces.size };
  }

  async #startDownload(repository: string, file: string | null): Promise<Download> {
    await until(performance.now() + ANSWER_MS);
    const id = file === null ? repository : `${repository}:${file}`;
    const families = answerOf("catalogue");
    const model = offered(id, families, answerOf("recommendations"));
    if (model?.gated && this.#token === "none") {
      const address = `https://huggingface.co/${repository}`;
      const message = `${repository} is gated: accept its licence at ${address} and set a token.`;
      throw new BackendError("needs_token", message);
    }
    return this.#downloads.start(repository, file, model?.size_bytes);
  }

  #addTarget(model: ModelEntry): ModelEntry {
    this.#targets = [...this.#targets.filter(({ id }) => id !== model.id), model];
    this.#announce();
    return model;
  }

  #removeTarget(model: string) {
    this.#targets = this.#targets.filter(({ id }) => id !== model);
    this.#announce();
  }

  /**
   * Plays recorded events from the first one on, `factor` times as slowly; returns early after a
   * stop.
   */
  async #play({ events }: RecordedCall, factor: number, onEvent: (event: unknown) => void) {
    const begin = performance.now() - (events[0]?.at_ms ?? 0) * factor;
    for (const { at_ms, event } of events) {
      await until(begin + at_ms * factor);
      if (this.#hasStopped()) return;
      onEvent(event);
    }
  }

  /** Plays a recorded call that occupies the engine; returns its answer. */
  async #occupied<Event>(name: keyof Commands, tokens: number, channel: Channel<Event[]>) {
    this.#refuse(tokens);
    this.#stopped = false;
    this.#enter("replying");
    const call = recorded(name);
    await this.#play(call, 1 / this.#speed, (event) => channel.onmessage([event as Event]));
    this.#enter("ready");
    if (this.#hasStopped()) throw new BackendError("cancelled", "this was stopped.");
    return call.answer;
  }

  /** Number of tokens in the context of a conversation. */
  #used(conversation: number | null): number {
    const start = this.#conversations.get(conversation ?? 0)?.seen_from ?? 0;
    const shown = conversation === null ? [] : this.#messages.shown(conversation);
    const summary = shown.findLast(({ id }) => id >= start)?.summary;
    return (summary?.prompt_tokens ?? 0) + (summary?.tokens ?? 0);
  }

  /** Throws if a question cannot be answered now. */
  #refuseSent({ text, kept, attached }: Sent, conversation: number | null = null) {
    if (text.trim() === "" && kept.length + attached.length === 0) {
      throw emptyPrompt();
    }
    const all = [text, ...attached.map((file) => file.text)].join("");
    const { tokens } = estimated(all);
    const before = this.#used(conversation);
    this.#refuse(tokens, before);
    if (conversation === null || before + tokens < this.#starter().context) return;
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
    const { context } = this.#starter();
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

  /** A message of this role, or of any, and its conversation. */
  #found(id: number, role?: Message["role"]): { home: Conversation; found: Message } {
    const found = this.#messages.find(id) ?? notFound(id);
    const home = this.#conversations.get(found.conversation) ?? notFound(id);
    if (role && found.role !== role) notFound(id);
    return { home, found };
  }

  #changeBranch(id: number, change: (message: Message) => void): Message[] {
    this.#refuseBusy();
    const found = this.#messages.find(id) ?? notFound(id);
    change(found);
    return this.#messages.shown(found.conversation);
  }

  /** Plays a reply after the message `after`: to a question, or as a continuation of a reply. */
  async #reply(
    home: Conversation,
    user: Message | null,
    after: number | null,
    channel: Channel<ReplyEvent[]>,
  ): Promise<Reply> {
    const send = (event: ReplyEvent) => channel.onmessage([event]);
    this.#stopped = false;
    this.#enter("replying");
    const recording = this.#rest(this.#messages.upTo(after));
    const reply = this.#write(home.id, "assistant", "", after);
    this.#setups.keep(home.id, this.#settings);
    send({ type: "started", conversation: home, user, reply });
    const stored = await (this.#rate > 0
      ? this.#synthesise(reply, send)
      : this.#playReply(reply, recording, send));
    this.#enter("ready");
    const instead = stored.text === "" ? this.#messages.withdraw(stored) : undefined;
    return { conversation: this.#touch(home), reply: instead ?? stored };
  }

  /** The recording for the last question, without the part that was already played. */
  #rest(before: Message[]): Recording {
    const asked = before.findLastIndex(({ role }) => role === "user");
    const recording = replyTo(before[asked]?.text ?? "", this.#why().state === "on");
    const length = before.slice(asked + 1).reduce((letters, { text }) => letters + text.length, 0);
    return restOf(recording, length);
  }

  async #playReply(
    reply: Message,
    { rounds, speedups, promptTokens, finish }: Recording,
    send: (event: ReplyEvent) => void,
  ): Promise<Message> {
    send({ type: "prompt", done: 0, total: promptTokens });
    const played: Round[] = [];
    const begin = performance.now();
    for (const [index, round] of rounds.entries()) {
      if (this.#hasStopped() || this.#isFull(played)) break;
      await until(begin + round.at_ms / this.#speed);
      played.push(round);
      send({ type: "round", round });
      const speedup = speedups[index];
      if (speedup) send({ type: "speedup", speedup });
    }
    const whole = played.length === rounds.length;
    const end = this.#hasStopped() ? "cancelled" : whole ? finish : "length";
    return this.#store(reply, { rounds: played, speedups }, end, promptTokens);
  }

  /** Streams an endless reply until it is stopped. */
  async #synthesise(reply: Message, send: (event: ReplyEvent) => void): Promise<Message> {
    const source = new Synthesis(reply.id, this.#rate);
    const played = source.take(this.#roundsAtOnce);
    for (const round of played) send({ type: "round", round });
    const begin = performance.now() - (played.at(-1)?.at_ms ?? 0);
    while (!this.#hasStopped()) {
      const round = source.next();
      // Timers are coarser than rounds: all rounds that are due come at once.
      if (begin + round.at_ms > performance.now()) await until(begin + round.at_ms);
      played.push(round);
      send({ type: "round", round });
    }
    return this.#store(reply, { rounds: played, speedups: [] }, "cancelled", 0);
  }

  #isFull(played: Round[]) {
    const limit = this.#settings.max_tokens;
    return limit > 0 && summaryOf(played, "length", 0).tokens >= limit;
  }

  /** Read through a method, since the value changes while another one waits. */
  #hasStopped() {
    return this.#stopped;
  }

  #store(reply: Message, trace: Trace, finish: Finish | null, promptTokens: number): Message {
    const { rounds, speedups } = trace;
    const { speculation, sampling, system_prompt, thinking, keep_traces } = this.#settings;
    const settings = structuredClone({ speculation, sampling, system_prompt, thinking });
    const speedup: Speedup | null = speedups[rounds.length - 1] ?? null;
    const summary = { ...summaryOf(rounds, finish ?? "stop", promptTokens), settings, speedup };
    const stored: Message = { ...reply, text: textOf(rounds), finish, summary, speedup };
    if (keep_traces) this.#traces.set(reply.id, { rounds, speedups });
    this.#messages.change(reply.id, stored);
    return stored;
  }

  /** Adds a conversation from before this page was opened. */
  #recall(question: string, agoMs: number, pinned = false) {
    const home = this.#home(null, question);
    this.#conversations.set(home.id, { ...home, updated_at: Date.now() - agoMs, pinned });
    const { id } = this.#write(home.id, "user", question, null);
    const recording = replyTo(question, true);
    const reply = this.#write(home.id, "assistant", "", id);
    this.#store(reply, recording, recording.finish, recording.promptTokens);
  }

  /** Adds a conversation of many messages: questions and synthetic replies alternately. */
  #recallLong(messages: number) {
    if (messages === 0) return;
    const home = this.#home(null, "A long conversation");
    for (let at = 0; at < messages / 2; at += 1) {
      const before = this.#messages.leaf(home.id);
      const { id } = this.#write(home.id, "user", `What happened on night ${at + 1}?`, before);
      const rounds = new Synthesis(at, STORED_RATE).take(30 + ((at * 37) % 90));
      const reply = this.#write(home.id, "assistant", "", id);
      this.#store(reply, { rounds, speedups: [] }, "stop", 20 + at);
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
      target: byReply ? (this.#chosenTarget() ?? this.#starter()).label : null,
      draft: byReply ? (this.#draft()?.label ?? "") : null,
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

  #change(conversation: number, change: Partial<Conversation>): Conversation {
    const found = this.#conversations.get(conversation) ?? notFound(conversation);
    const changed = { ...found, ...change };
    this.#conversations.set(conversation, changed);
    return changed;
  }

  #starter(): ModelEntry {
    const [starter] = this.#recorded.targets;
    return starter ?? notFound(0);
  }

  #chosenTarget(): ModelEntry | undefined {
    return this.#targets.find(({ id }) => id === this.#settings.target);
  }

  #draft() {
    const { target, drafts } = this.#settings;
    const options = this.#recorded.drafts;
    return options.find(({ id }) => id === drafts[target]) ?? options[0];
  }

  #enter(phase: EngineStatus["phase"]) {
    this.#phase = phase;
    this.#announce();
  }

  #announce() {
    for (const watcher of this.#watchers) watcher(this.#status());
  }

  #why(): EngineStatus["why"] {
    const { length } = this.#settings.speculation;
    if (this.#draft()?.id === facts.draftNone) return off({ kind: "no_draft" });
    if (length.type === "off") return off({ kind: "settings" });
    const tokens = length.type === "auto" ? null : length.tokens;
    return { ...off(null), state: "on", drafter: this.#draft()?.label ?? null, length: tokens };
  }

  #status(): EngineStatus {
    const isLoaded = this.#phase === "ready" || this.#phase === "replying";
    const isLoading = this.#phase === "loading";
    return {
      ...this.#recorded,
      phase: this.#phase,
      message: this.#phase === "failed" ? FAILURE : null,
      loading: isLoading ? { label: this.#starter().label, percent: 43, draft: false } : null,
      target: isLoaded ? (this.#chosenTarget() ?? this.#starter()) : null,
      targets: this.#targets,
      draft: this.#draft()?.id ?? facts.draftNone,
      why: isLoaded ? this.#why() : off({ kind: "no_model" }),
      device_choice: this.#settings.device,
    };
  }
}

/** The backend of an ordinary browser; the engine is ready after `settleMs`. */
export function player(options: URLSearchParams, settleMs = 350): Backend {
  const { call } = new Player(options, settleMs);
  const trace = options.get("trace");
  return {
    ...backendOver(call, (onmessage) => ({ onmessage })),
    traceToOpen: () => (trace === null ? Promise.resolve(null) : fetched(trace)),
  };
}

/** Time until a hub answers. */
const ANSWER_MS = 350;

const NO_TRACE =
  "the trace of this reply was not kept, and without it there is nothing to compare with. Settings > Data keeps the traces of later replies.";

const FAILURE: EngineStatus["message"] = {
  kind: "error",
  code: "bad_model",
  detail:
    "/models/broken.gguf is not a model Foretoken can read: expected a GGUF file, found one that ends after 4,096 bytes. Download it again, or choose another model.",
};

function recorded(command: string, args?: object): RecordedCall {
  return callOf(command, args) ?? { command, events: [], at_ms: 0, answer: null };
}

function answerOf<Name extends keyof Commands>(command: Name): Commands[Name]["returns"] {
  return structuredClone(recorded(command).answer) as Commands[Name]["returns"];
}

/** The recorded answer of a command after its time, or its error. */
async function answered<Name extends keyof Commands>(
  command: Name,
  args: object,
): Promise<Commands[Name]["returns"]> {
  const { at_ms, answer, error } = recorded(command, args);
  if (at_ms > 0) await until(performance.now() + at_ms);
  if (error) throw BackendError.from(error);
  return structuredClone(answer) as Commands[Name]["returns"];
}

/** The model of a finished download. */
function downloaded({ id, file, repository, total_bytes }: Download): ModelEntry {
  const model = recordedStatus().targets.find(({ kind }) => kind === "downloaded");
  return {
    ...(model ?? notFound(0)),
    id: `/home/me/.cache/huggingface/hub/${id}`,
    label: file?.split("/").at(-1)?.replace(".gguf", "") ?? repository,
    name: id,
    ...{
      size_bytes: total_bytes,
      memory_bytes: 1.125 * total_bytes,
      parameters: total_bytes * 1.6,
    },
  };
}

/** Estimates tokens from characters, by the ratio of English. */
function estimated(text: string) {
  return { tokens: Math.ceil(text.length / 4), exact: false };
}

function off(reason: EngineStatus["why"]["off"]): EngineStatus["why"] {
  const nothing = { drafter: null, length: null, reason: null, expected: null };
  return { state: "off", ...nothing, off: reason, remarks: [] };
}

function emptyPrompt(): BackendError {
  return new BackendError("empty_prompt", "the prompt is empty: write something first.");
}

function notFound(id: number): never {
  throw new BackendError("not_found", `nothing has the number ${id}: it may have been deleted.`);
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
