/**
 * Traces opened from files. Each becomes a conversation of a question and a reply that is not
 * stored; its ids are negative, unlike stored ones.
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

/** Rounds processed before control returns to the page. */
const SLICE_ROUNDS = 4000;

/** Size limit of files kept by the shell. */
const MAX_KEPT_BYTES = 64 << 20;

export interface Imported {
  /** Id of the conversation. */
  id: number;
  /** Name of the file. */
  name: string;
  messages: Message[];
  reply: Message;
  trace: Trace;
  /** Speed-ups after each round of the trace. */
  speedups: readonly (Speedup | null)[];
  /** Notices about the file, a sentence each. */
  notices: string[];
}

/** Whether a conversation was opened from a file. */
export function isImported(conversation: number | null): boolean {
  return conversation !== null && conversation < 0;
}

export class Imports {
  /** Imported traces, the newest first. */
  list = $state.raw<Imported[]>([]);
  /** The file being read, and the share read so far. */
  reading = $state.raw<{ name: string; share: number } | null>(null);
  #lastId = 0;
  /** Ids of files kept by the shell, by conversation. */
  readonly #kept = new Map<number, number>();
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Reads files again that were imported before the page was reloaded. */
  async restore() {
    for (const { id: kept, name } of await this.#backend.importedTraces().catch(() => [])) {
      try {
        const file = new File([await this.#backend.importedTrace(kept)], name);
        this.#kept.set((await this.#read(file)).id, kept);
      } catch {
        // The file was read before, so this can only fail if the shell dropped it meanwhile.
      }
    }
  }

  find(conversation: number | null): Imported | undefined {
    return this.list.find(({ id }) => id === conversation);
  }

  /**
   * Reads a trace file.
   *
   * @throws TraceFileError, or the browser's error for an unreadable file.
   */
  async read(file: File): Promise<Imported> {
    const imported = await this.#read(file);
    void this.#keep(imported.id, file);
    return imported;
  }

  async #keep(conversation: number, file: File) {
    if (file.size > MAX_KEPT_BYTES) return;
    const { name } = file;
    const text = await file.text();
    const kept = await this.#backend.keepImportedTrace(name, text).catch(() => null);
    if (kept === null) return;
    this.#kept.set(conversation, kept);
    // The trace may have been closed meanwhile.
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

  /** Removes a trace from the list; its file stays. */
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
      excerpts: [],
      calls: [],
      calls_start: null,
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
      // A notice mentions a truncated file; how its reply ended is unknown.
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

/** The summary in the file; missing numbers are computed from the rounds. */
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
