/** The files that a person is about to send: read, counted, and listed until they are sent. */
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

export class Attachments {
  waiting = $state.raw<readonly Waiting[]>([]);
  /** Why files were not attached, a sentence each. */
  problems = $state.raw<readonly string[]>([]);

  readonly reading = $derived(this.waiting.some(({ file }) => file === null));
  /** Tokens of all that was counted. */
  readonly tokens = $derived(
    this.waiting.reduce((sum, { count }) => sum + (count?.tokens ?? 0), 0),
  );

  #lastId = 0;
  readonly #backend: Backend;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  /** Reads files one after the other; says of each that cannot be attached why not. */
  async add(files: Iterable<Source>) {
    this.problems = [];
    const taken = [...files];
    const room = facts.attachments - this.waiting.length;
    if (taken.length > room) this.#refuse(tooMany().message);
    const begun = taken.slice(0, Math.max(0, room)).map((file) => ({ file, id: this.#list(file) }));
    for (const { file, id } of begun) await this.#read(id, file);
  }

  /** Attaches a text that was pasted; returns its number, or null where it is said why not. */
  addText(text: string): number | null {
    this.problems = [];
    const name = t("attach.pasted");
    try {
      if (this.waiting.length >= facts.attachments) throw tooMany();
      const file = this.#unlike(within({ name, kind: "text", text }));
      const id = this.#list(file);
      void this.#count(id, file);
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
    this.waiting = this.waiting.filter((other) => other.id !== id);
  }

  /** Those that can be sent. */
  get files(): Attached[] {
    return this.waiting.flatMap(({ file }) => file ?? []);
  }

  /** Takes off the list what was sent. */
  sent(files: readonly Attached[]) {
    this.waiting = this.waiting.filter(({ file }) => file === null || !files.includes(file));
    this.problems = [];
  }

  /** Counts again, for another model. */
  recount() {
    for (const { id, file } of this.waiting) if (file) void this.#count(id, file);
  }

  dismiss() {
    this.problems = [];
  }

  #list({ name }: { name: string }): number {
    const id = (this.#lastId += 1);
    this.waiting = [...this.waiting, { id, name, file: null, count: null }];
    return id;
  }

  /** What is not attached already. */
  #unlike(file: Attached): Attached {
    const same = this.files.some(({ name, text }) => name === file.name && text === file.text);
    if (same) throw new Refusal(t("attach.again", { name: file.name }));
    return file;
  }

  async #read(id: number, source: Source) {
    try {
      await this.#count(id, this.#unlike(await readFile(source)));
    } catch (thrown) {
      this.remove(id);
      const detail = BackendError.from(thrown).message;
      const unread = t("attach.unread", { name: source.name, detail });
      this.#refuse(thrown instanceof Refusal ? thrown.message : unread);
    }
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
    this.waiting = this.waiting.map((one) => (one.id === id ? { ...one, ...change } : one));
  }

  #refuse(sentence: string) {
    this.problems = [...this.problems, sentence];
  }
}

function tooMany(): Refusal {
  return new Refusal(t("attach.tooMany", { count: facts.attachments }));
}
