/** Files of unsent messages, by conversation: read, counted, and stored to survive a restart. */
import { SvelteMap } from "svelte/reactivity";
import { searchedFiles } from "../attachments/excerpts";
import { readAs, readFile, within, type Encoded, type Source } from "../attachments/read";
import { detailOf, withDetail, type Detail } from "../attachments/picture";
import { Refusal } from "../attachments/refusal";
import type { Attached } from "../bindings/Attached";
import type { TokenCount } from "../bindings/TokenCount";
import { facts } from "../bindings/facts";
import { BackendError, type Backend } from "../backend/backend";
import { t } from "../messages/say";
import { errorWords } from "../messages/errors";

export interface PendingFile {
  id: number;
  name: string;
  /** The contents; null while the file is read. */
  file: Attached | null;
  /** The number of tokens; null while it is counted. */
  count: TokenCount | null;
  /** The bytes of a file whose encoding was assumed; not kept over a reload. */
  encoded: Encoded | null;
}

type Conversation = number | null;

/** A sentence about attached files. */
interface Remark {
  /** A problem: a file was not attached. A note: not all of a file was. */
  kind: "problem" | "note";
  words: string;
}

/** Files of all unsent messages, shared by the chats of the window. */
export class UnsentFiles {
  /** Files by conversation; null is a new one. */
  readonly lists = new SvelteMap<Conversation, readonly PendingFile[]>();
  readonly remarks = new SvelteMap<Conversation, readonly Remark[]>();
  /** Ids of files in the store, by their ids on the page; null if storing failed. */
  readonly stored = new Map<number, Promise<number | null>>();
  readonly loaded = new Set<Conversation>();
  lastId = 0;
}

export class Attachments {
  /** Files of the open conversation. */
  readonly waiting = $derived.by(() => this.#shared.lists.get(this.#current()) ?? []);
  /** Why files were not attached in the open conversation, a sentence each. */
  readonly problems = $derived.by(() => this.#remarks("problem"));
  /** Parts of files that were left out in the open conversation, a sentence each. */
  readonly notes = $derived.by(() => this.#remarks("note"));

  readonly reading = $derived(this.waiting.some(({ file }) => file === null));
  /** Files that are too long to be part of the prompt as a whole. */
  readonly searched = $derived.by(() => searchedFiles(this.waiting, this.#left()));
  /** Sum of the token counts of all others. */
  readonly tokens = $derived.by(() => {
    const whole = this.waiting.filter(({ id }) => !this.searched.has(id));
    return whole.reduce((sum, { count }) => sum + (count?.tokens ?? 0), 0);
  });

  readonly #shared: UnsentFiles;
  readonly #backend: Backend;
  readonly #current: () => Conversation;
  readonly #left: () => number | null;

  /** `left` are the tokens that further files may have; null without a limit. */
  constructor(
    backend: Backend,
    current: () => Conversation,
    left: () => number | null,
    shared = new UnsentFiles(),
  ) {
    this.#shared = shared;
    this.#backend = backend;
    this.#current = current;
    this.#left = left;
  }

  /** Loads the stored files of a conversation, once. */
  async load(conversation: Conversation) {
    if (isUnstored(conversation) || this.#shared.loaded.has(conversation)) return;
    this.#shared.loaded.add(conversation);
    const kept = await this.#backend.unsentFiles(conversation).catch(() => []);
    const files = kept.map(({ id: stored, file }) => {
      const id = (this.#shared.lastId += 1);
      this.#shared.stored.set(id, Promise.resolve(stored));
      return { id, name: file.name, file, count: null, encoded: null };
    });
    if (files.length === 0) return;
    this.#shared.lists.set(conversation, [
      ...files,
      ...(this.#shared.lists.get(conversation) ?? []),
    ]);
    for (const { id, file } of files) void this.#count(conversation, id, file);
  }

  /** Reads files one after the other; files that cannot be attached become problems. */
  async add(files: Iterable<Source>) {
    const home = this.#current();
    this.#shared.remarks.delete(home);
    const taken = [...files];
    const room = facts.attachments - this.waiting.length;
    if (taken.length > room) this.#refuse(home, tooMany().message);
    const begun = taken
      .slice(0, Math.max(0, room))
      .map((file) => ({ file, id: this.#list(home, file) }));
    for (const { file, id } of begun) await this.#read(home, id, file);
  }

  /** Attaches a text, by default a pasted one; returns its id, or null with a problem shown. */
  addText(text: string, name = t("attach.pasted")): number | null {
    const home = this.#current();
    this.#shared.remarks.delete(home);
    try {
      if (this.waiting.length >= facts.attachments) throw tooMany();
      const file = this.#unlike(home, within({ name, kind: "text", text }));
      const id = this.#list(home, file);
      void this.#keep(home, id, file);
      return id;
    } catch (thrown) {
      this.#refuse(home, BackendError.from(thrown).message);
      return null;
    }
  }

  /** Shows that a pasted image was not attached. */
  refuseImage() {
    this.dismiss();
    this.#refuse(this.#current(), t("attach.pastedImage"));
  }

  /** Shows why no screenshot was attached. */
  refuseScreenshot(thrown: unknown) {
    const error = BackendError.from(thrown);
    const words = error.code === "not_found" ? t("attach.noScreenshots") : errorWords(error);
    this.dismiss();
    this.#refuse(this.#current(), words);
  }

  remove(id: number) {
    this.#filter((other) => other.id !== id);
  }

  /** The files that can be sent. */
  get files(): Attached[] {
    return this.waiting.flatMap(({ file }) => file ?? []);
  }

  /** Removes sent files from the list. */
  sent(files: readonly Attached[]) {
    this.#filter(({ file }) => file === null || !files.includes(file));
    this.dismiss();
    // The new conversation has an id by now.
    this.#shared.remarks.delete(null);
  }

  /** Counts all files again, after a change of the model. */
  recount() {
    for (const [home, list] of this.#shared.lists) {
      for (const { id, file } of list) if (file) void this.#count(home, id, file);
    }
  }

  /** Removes the problems and notes of the open conversation. */
  dismiss() {
    this.#shared.remarks.delete(this.#current());
  }

  /** Reads a file again in the encoding that a person chose. */
  async decodeAs(id: number, encoding: string) {
    const home = this.#current();
    const one = this.#shared.lists.get(home)?.find((other) => other.id === id);
    if (!one?.encoded) return;
    try {
      const encoded = { ...one.encoded, encoding };
      const file = readAs(one.name, encoded);
      this.#change(id, { encoded, count: null });
      await this.#replace(home, id, file);
    } catch (thrown) {
      this.#refuse(home, BackendError.from(thrown).message);
    }
  }

  /** Lets the model look at a picture more or less closely. */
  async look(id: number, detail: Detail) {
    const home = this.#current();
    const one = this.#shared.lists.get(home)?.find((other) => other.id === id);
    if (!one?.file || detailOf(one.file) === detail) return;
    this.#change(id, { count: null });
    await this.#replace(home, id, withDetail(one.file, detail));
  }

  /** Keeps a file in place of one that is stored. */
  async #replace(home: Conversation, id: number, file: Attached) {
    const before = this.#shared.stored.get(id);
    await this.#keep(home, id, file);
    const stored = await before;
    if (typeof stored === "number") {
      await this.#backend.removeUnsentFiles([stored]).catch(() => undefined);
    }
  }

  #list(home: Conversation, { name }: { name: string }): number {
    const id = (this.#shared.lastId += 1);
    const others = this.#shared.lists.get(home) ?? [];
    this.#shared.lists.set(home, [...others, { id, name, file: null, count: null, encoded: null }]);
    return id;
  }

  /** Removes the files that fail `stays` from the lists and from the store. */
  #filter(stays: (one: PendingFile) => boolean) {
    for (const [home, list] of this.#shared.lists) {
      const removed = list.filter((one) => !stays(one));
      if (removed.length === 0) continue;
      this.#shared.lists.set(home, list.filter(stays));
      void this.#removeStored(removed);
    }
  }

  async #removeStored(removed: readonly PendingFile[]) {
    const stored = await Promise.all(
      removed.map(async ({ id }) => (await this.#shared.stored.get(id)) ?? null),
    );
    for (const { id } of removed) this.#shared.stored.delete(id);
    const ids = stored.filter((id) => id !== null);
    if (ids.length > 0) await this.#backend.removeUnsentFiles(ids).catch(() => undefined);
  }

  /**
   * Returns the file if it is not attached already.
   *
   * @throws Refusal
   */
  #unlike(home: Conversation, file: Attached): Attached {
    const same = (this.#shared.lists.get(home) ?? []).some(
      (other) => other.file?.name === file.name && other.file.text === file.text,
    );
    if (same) throw new Refusal(t("attach.again", { name: file.name }));
    return file;
  }

  async #read(home: Conversation, id: number, source: Source) {
    try {
      const { files, note, encoded } = await readFile(source, (document) =>
        this.#backend.readDocument(document),
      );
      const [first, ...pages] = files.slice(0, facts.attachments - this.waiting.length + 1);
      if (!first) throw tooMany();
      this.#change(id, { name: first.name, encoded });
      await this.#keep(home, id, this.#unlike(home, first));
      for (const page of pages) await this.#keep(home, this.#list(home, page), page);
      if (note !== null) this.#remark(home, "note", note);
    } catch (thrown) {
      this.remove(id);
      const detail = BackendError.from(thrown).message;
      const unread = t("attach.unread", { name: source.name, detail });
      this.#refuse(home, thrown instanceof Refusal ? thrown.message : unread);
    }
  }

  /** Stores and counts a file, unless it was removed while it was read. */
  async #keep(home: Conversation, id: number, file: Attached) {
    if (!this.#shared.lists.get(home)?.some((one) => one.id === id)) return;
    if (!isUnstored(home)) {
      // A file that cannot be stored can still be sent.
      this.#shared.stored.set(
        id,
        this.#backend.addUnsentFile(home, file).catch(() => null),
      );
    }
    await this.#count(home, id, file);
  }

  async #count(home: Conversation, id: number, file: Attached) {
    this.#change(id, { file });
    try {
      this.#change(id, { count: await this.#backend.countAttachment(file) });
    } catch (thrown) {
      // A picture that cannot be read.
      if (file.kind === "picture") this.remove(id);
      this.#refuse(home, `${file.name}: ${errorWords(BackendError.from(thrown))}`);
    }
  }

  #change(id: number, change: Partial<PendingFile>) {
    for (const [home, list] of this.#shared.lists) {
      if (!list.some((one) => one.id === id)) continue;
      const changed = list.map((one) => (one.id === id ? { ...one, ...change } : one));
      this.#shared.lists.set(home, changed);
    }
  }

  #refuse(home: Conversation, sentence: string) {
    this.#remark(home, "problem", sentence);
  }

  #remark(home: Conversation, kind: Remark["kind"], words: string) {
    const others = this.#shared.remarks.get(home) ?? [];
    this.#shared.remarks.set(home, [...others, { kind, words }]);
  }

  #remarks(wanted: Remark["kind"]): string[] {
    const all = this.#shared.remarks.get(this.#current()) ?? [];
    return all.filter(({ kind }) => kind === wanted).map(({ words }) => words);
  }
}

function tooMany(): Refusal {
  return new Refusal(t("attach.tooMany", { count: facts.attachments }));
}

/** Whether a conversation was opened from a file, and so is not in the store. */
function isUnstored(conversation: Conversation): boolean {
  return conversation !== null && conversation < 0;
}
