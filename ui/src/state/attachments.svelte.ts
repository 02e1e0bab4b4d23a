/**
 * Files of messages that are not sent yet, by conversation: read, counted, and stored until they are sent, so that
 * they survive a restart.
 */
import { SvelteMap } from "svelte/reactivity";
import { readFile, within, type Source } from "../attachments/read";
import { Refusal } from "../attachments/refusal";
import type { Attached } from "../bindings/Attached";
import type { TokenCount } from "../bindings/TokenCount";
import { facts } from "../bindings/facts";
import { BackendError, type Backend } from "../backend/backend";
import { t } from "../messages/say";
import { errorWords } from "../messages/shell";

export interface Waiting {
  id: number;
  name: string;
  /** Null while it is read. */
  file: Attached | null;
  /** Null while it is counted. */
  count: TokenCount | null;
}

type Conversation = number | null;

export class Attachments {
  /** Files by conversation; null is a new one. */
  readonly #lists = new SvelteMap<Conversation, readonly Waiting[]>();
  /** Files of the open conversation. */
  readonly waiting = $derived.by(() => this.#lists.get(this.#current()) ?? []);
  /** Why files were not attached, a sentence each. */
  problems = $state.raw<readonly string[]>([]);

  readonly reading = $derived(this.waiting.some(({ file }) => file === null));
  /** Tokens of all that was counted. */
  readonly tokens = $derived(
    this.waiting.reduce((sum, { count }) => sum + (count?.tokens ?? 0), 0),
  );

  #lastId = 0;
  /** Ids of files in the store, by their ids on the page; null where one could not be stored. */
  readonly #stored = new Map<number, Promise<number | null>>();
  readonly #loaded = new Set<Conversation>();
  readonly #backend: Backend;
  readonly #current: () => Conversation;

  constructor(backend: Backend, current: () => Conversation) {
    this.#backend = backend;
    this.#current = current;
  }

  /** Reads the files of a conversation that an earlier page left, once. */
  async load(conversation: Conversation) {
    if (isUnstored(conversation) || this.#loaded.has(conversation)) return;
    this.#loaded.add(conversation);
    const kept = await this.#backend.unsentFiles(conversation).catch(() => []);
    const files = kept.map(({ id: stored, file }) => {
      const id = (this.#lastId += 1);
      this.#stored.set(id, Promise.resolve(stored));
      return { id, name: file.name, file, count: null };
    });
    if (files.length === 0) return;
    this.#lists.set(conversation, [...files, ...(this.#lists.get(conversation) ?? [])]);
    for (const { id, file } of files) void this.#count(id, file);
  }

  /** Reads files one after the other; says of each that cannot be attached why not. */
  async add(files: Iterable<Source>) {
    this.problems = [];
    const home = this.#current();
    const taken = [...files];
    const room = facts.attachments - this.waiting.length;
    if (taken.length > room) this.#refuse(tooMany().message);
    const begun = taken
      .slice(0, Math.max(0, room))
      .map((file) => ({ file, id: this.#list(home, file) }));
    for (const { file, id } of begun) await this.#read(home, id, file);
  }

  /** Attaches a text that was pasted; returns its number, or null where it is said why not. */
  addText(text: string): number | null {
    this.problems = [];
    const name = t("attach.pasted");
    const home = this.#current();
    try {
      if (this.waiting.length >= facts.attachments) throw tooMany();
      const file = this.#unlike(home, within({ name, kind: "text", text }));
      const id = this.#list(home, file);
      void this.#keep(home, id, file);
      return id;
    } catch (thrown) {
      this.#refuse(BackendError.from(thrown).message);
      return null;
    }
  }

  /** Says that a pasted image was not attached. */
  refuseImage() {
    this.problems = [t("attach.pastedImage")];
  }

  remove(id: number) {
    this.#filter((other) => other.id !== id);
  }

  /** Those that can be sent. */
  get files(): Attached[] {
    return this.waiting.flatMap(({ file }) => file ?? []);
  }

  /** Takes off the list what was sent. */
  sent(files: readonly Attached[]) {
    this.#filter(({ file }) => file === null || !files.includes(file));
    this.problems = [];
  }

  /** Counts again, for another model. */
  recount() {
    const all = [...this.#lists.values()].flat();
    for (const { id, file } of all) if (file) void this.#count(id, file);
  }

  dismiss() {
    this.problems = [];
  }

  #list(home: Conversation, { name }: { name: string }): number {
    const id = (this.#lastId += 1);
    const others = this.#lists.get(home) ?? [];
    this.#lists.set(home, [...others, { id, name, file: null, count: null }]);
    return id;
  }

  /** Takes off the lists, and out of the store, what does not pass. */
  #filter(stays: (one: Waiting) => boolean) {
    for (const [home, list] of this.#lists) {
      const gone = list.filter((one) => !stays(one));
      if (gone.length === 0) continue;
      this.#lists.set(home, list.filter(stays));
      void this.#forget(gone);
    }
  }

  async #forget(gone: readonly Waiting[]) {
    const stored = await Promise.all(
      gone.map(async ({ id }) => (await this.#stored.get(id)) ?? null),
    );
    for (const { id } of gone) this.#stored.delete(id);
    const ids = stored.filter((id) => id !== null);
    if (ids.length > 0) await this.#backend.removeUnsentFiles(ids).catch(() => undefined);
  }

  /** What is not attached already. */
  #unlike(home: Conversation, file: Attached): Attached {
    const same = (this.#lists.get(home) ?? []).some(
      (other) => other.file?.name === file.name && other.file.text === file.text,
    );
    if (same) throw new Refusal(t("attach.again", { name: file.name }));
    return file;
  }

  async #read(home: Conversation, id: number, source: Source) {
    try {
      await this.#keep(home, id, this.#unlike(home, await readFile(source)));
    } catch (thrown) {
      this.remove(id);
      const detail = BackendError.from(thrown).message;
      const unread = t("attach.unread", { name: source.name, detail });
      this.#refuse(thrown instanceof Refusal ? thrown.message : unread);
    }
  }

  /** Stores and counts a file, unless it was removed while it was read. */
  async #keep(home: Conversation, id: number, file: Attached) {
    if (!this.#lists.get(home)?.some((one) => one.id === id)) return;
    if (!isUnstored(home)) {
      // One that cannot be stored can be sent nevertheless.
      this.#stored.set(
        id,
        this.#backend.addUnsentFile(home, file).catch(() => null),
      );
    }
    await this.#count(id, file);
  }

  async #count(id: number, file: Attached) {
    this.#change(id, { file });
    try {
      this.#change(id, { count: await this.#backend.countAttachment(file) });
    } catch (thrown) {
      this.#refuse(errorWords(BackendError.from(thrown)));
    }
  }

  #change(id: number, change: Partial<Waiting>) {
    for (const [home, list] of this.#lists) {
      if (!list.some((one) => one.id === id)) continue;
      const changed = list.map((one) => (one.id === id ? { ...one, ...change } : one));
      this.#lists.set(home, changed);
    }
  }

  #refuse(sentence: string) {
    this.problems = [...this.problems, sentence];
  }
}

function tooMany(): Refusal {
  return new Refusal(t("attach.tooMany", { count: facts.attachments }));
}

/** Whether a conversation was opened from a file, and is not in the store. */
function isUnstored(conversation: Conversation): boolean {
  return conversation !== null && conversation < 0;
}
