/**
 * Traces that were opened from files: each is a conversation of a question and a reply that can be
 * looked at and is not stored. Its numbers are below zero, where no stored one's are.
 */
import type { Message } from "../bindings/Message";
import type { Speedup } from "../bindings/Speedup";
import type { Summary } from "../bindings/Summary";
import type { Backend } from "../backend/backend";
import { openTrace } from "../trace/file/open";
import { pause } from "../trace/file/pause";
import type { TraceFile } from "../trace/file/read";
import { summaryOf } from "../trace/summary";
import { Trace } from "./trace.svelte";

/** Rounds counted before the page gets to do something else. */
const SLICE_ROUNDS = 4000;

/** The shell keeps no larger file. */
const MOST_KEPT_BYTES = 64 << 20;

export interface Imported {
  /** Number of the conversation. */
  id: number;
  /** Name of the file. */
  name: string;
  messages: Message[];
  reply: Message;
  trace: Trace;
  /** After each round of the trace. */
  speedups: readonly (Speedup | null)[];
  /** What a person should know of the file, a sentence each. */
  notices: string[];
}

/** Whether a conversation was opened from a file. */
export function isImported(conversation: number | null): boolean {
  return conversation !== null && conversation < 0;
}

export class Imports {
  /** The newest first. */
  list = $state.raw<Imported[]>([]);
  /** The file being read, and the share that was. */
  reading = $state.raw<{ name: string; share: number } | null>(null);
  #lastId = 0;
  /** Numbers of the files that the shell keeps, by conversation. */
  readonly #kept = new Map<number, number>();
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Reads the files again that were imported before the page was loaded again. */
  async restore() {
    for (const { id: kept, name } of await this.#backend.importedTraces().catch(() => [])) {
      try {
        const file = new File([await this.#backend.importedTrace(kept)], name);
        this.#kept.set((await this.#read(file)).id, kept);
      } catch {
        // It was read once: only one that was dropped meanwhile cannot be read again.
      }
    }
  }

  find(conversation: number | null): Imported | undefined {
    return this.list.find(({ id }) => id === conversation);
  }

  /** @throws TraceFileError, and what the browser says of a file that cannot be read. */
  async read(file: File): Promise<Imported> {
    const imported = await this.#read(file);
    void this.#keep(imported.id, file);
    return imported;
  }

  async #keep(conversation: number, file: File) {
    if (file.size > MOST_KEPT_BYTES) return;
    const { name } = file;
    const text = await file.text();
    const kept = await this.#backend.keepImportedTrace(name, text).catch(() => null);
    if (kept === null) return;
    this.#kept.set(conversation, kept);
    // It may have been closed meanwhile.
    if (!this.find(conversation)) this.forget(conversation);
  }

  async #read(file: File): Promise<Imported> {
    const { name } = file;
    try {
      this.reading = { name, share: 0 };
      const read = await openTrace(file, (share) => (this.reading = { name, share }));
      const imported = await this.#imported(name, read);
      this.list = [imported, ...this.list];
      return imported;
    } finally {
      this.reading = null;
    }
  }

  /** Takes one off the list; its file stays. */
  forget(conversation: number) {
    this.list = this.list.filter(({ id }) => id !== conversation);
    const kept = this.#kept.get(conversation);
    if (kept === undefined) return;
    this.#kept.delete(conversation);
    void this.#backend.forgetImportedTrace(kept).catch(() => undefined);
  }

  async #imported(name: string, file: TraceFile): Promise<Imported> {
    const id = this.#nextId();
    const trace = await traceOf(file);
    // A file whose speed-up cannot be measured can still be looked at.
    const speedups = await this.#backend.traceSpeedups(file.rounds).catch(() => []);
    const speedup = speedups.at(-1) ?? null;
    const common = {
      conversation: id,
      created_at: file.header?.created_at ?? 0,
      problem: null,
      attachments: [],
      unstored: null,
    };
    const prompt = file.header?.prompt ?? "";
    const asked = prompt === "" ? null : this.#nextId();
    const replied = this.#nextId();
    const reply: Message = {
      ...common,
      id: replied,
      parent: asked,
      siblings: [replied],
      role: "assistant",
      text: file.text,
      // Of a file that is cut off the notice speaks; how the reply ended is not known.
      finish: file.done ? file.done.finish : "stop",
      summary: summaryIn(file, trace, speedup),
      speedup,
      target: file.header?.target ?? null,
      draft: file.header?.draft ?? null,
    };
    const question: Message | null =
      asked === null
        ? null
        : {
            ...common,
            id: asked,
            parent: null,
            siblings: [asked],
            role: "user",
            text: prompt,
            finish: null,
            summary: null,
            speedup: null,
            target: null,
            draft: null,
          };
    const messages = question === null ? [reply] : [question, reply];
    const { notices } = file;
    return { id, name, messages, reply, trace, speedups, notices };
  }

  #nextId(): number {
    this.#lastId -= 1;
    return this.#lastId;
  }
}

async function traceOf({ rounds }: TraceFile): Promise<Trace> {
  const trace = new Trace();
  for (const [index, round] of rounds.entries()) {
    trace.push(round);
    if (index % SLICE_ROUNDS < SLICE_ROUNDS - 1) continue;
    trace.flush();
    await pause();
  }
  trace.flush();
  return trace;
}

/** The numbers the file says, and where it says none those that its rounds make. */
function summaryIn(
  { rounds, done }: TraceFile,
  { statistics }: Trace,
  speedup: Speedup | null,
): Summary {
  const said = Object.entries({ ...done, text: undefined }).filter(
    ([, value]) => value !== undefined,
  );
  const [finish, promptTokens] = [done?.finish ?? "stop", done?.prompt_tokens ?? 0] as const;
  const folded = summaryOf(rounds, finish, promptTokens, statistics);
  return { ...folded, ...Object.fromEntries(said), finish: folded.finish, speedup };
}
