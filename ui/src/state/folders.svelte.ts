/** Folders of conversations, and the folder in which a new conversation begins. */
import type { Conversation } from "../bindings/Conversation";
import type { ConversationFolder } from "../bindings/ConversationFolder";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import { locale } from "../messages/locale.svelte";
import { t } from "../messages/say";
import type { Toasts } from "./toasts.svelte";

/** A name field for a new folder, into which a conversation is moved, if there is one. */
export interface NewFolder {
  conversation: Conversation | null;
}

export class Folders {
  /** All folders, by name. */
  list = $state.raw<ConversationFolder[]>([]);
  /** The folder that is being created; null for none. */
  adding = $state.raw<NewFolder | null>(null);
  /** The folder that is being renamed. */
  renaming = $state<number | null>(null);

  /** Folder that was chosen for the next new conversation. */
  #newIn = $state<number | null>(null);
  readonly #backend: Backend;
  readonly #toasts: Toasts;
  readonly #reload: () => Promise<void>;
  readonly #update: (conversation: Conversation) => void;

  /** `reload` fetches all conversations and folders; `update` lists a changed conversation. */
  constructor(
    backend: Backend,
    toasts: Toasts,
    reload: () => Promise<void>,
    update: (conversation: Conversation) => void,
  ) {
    this.#backend = backend;
    this.#toasts = toasts;
    this.#reload = reload;
    this.#update = update;
  }

  async load() {
    this.#show(await this.#backend.folders());
  }

  /** The folder of the next new conversation; null for none. */
  get newIn(): ConversationFolder | null {
    return this.find(this.#newIn);
  }

  beginIn(folder: number | null) {
    this.#newIn = folder;
  }

  find(folder: number | null): ConversationFolder | null {
    return this.list.find(({ id }) => id === folder) ?? null;
  }

  /** Creates the folder being added, and moves its conversation into it. */
  async add(name: string) {
    const conversation = this.adding?.conversation ?? null;
    this.adding = null;
    if (name.trim() === "") return;
    await this.#try(async () => {
      const folder = await this.#backend.createFolder(name);
      this.#show([...this.list, folder]);
      if (conversation) this.#update(await this.#backend.moveTo(conversation.id, folder.id));
    });
  }

  async rename(folder: ConversationFolder, name: string) {
    if (name.trim() === "" || name.trim() === folder.name) return;
    await this.#try(async () => {
      const renamed = await this.#backend.renameFolder(folder.id, name);
      this.#show(this.list.map((other) => (other.id === renamed.id ? renamed : other)));
    });
  }

  /** Deletes a folder without its conversations; a toast offers to undo it. */
  async delete({ id, name }: ConversationFolder) {
    await this.#try(async () => {
      await this.#backend.deleteFolder(id);
      await this.#reload();
      this.#toasts.showUndoable(t("sidebar.folderDeleted", { name }), () => void this.#restore(id));
    });
  }

  async #restore(folder: number) {
    await this.#try(async () => {
      await this.#backend.restoreFolder(folder);
      await this.#reload();
    });
  }

  /** Moves a conversation into a folder, or out of its folder for null. */
  async move(conversation: Conversation, folder: number | null) {
    if (conversation.folder === folder) return;
    await this.#try(async () => {
      this.#update(await this.#backend.moveTo(conversation.id, folder));
    });
  }

  #show(folders: readonly ConversationFolder[]) {
    this.list = [...folders].sort((a, b) =>
      a.name.localeCompare(b.name, locale(), { numeric: true }),
    );
  }

  async #try(act: () => Promise<void>) {
    try {
      await act();
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }
}
