/** Conversations as files: exports, and imports with their progress. */
import type { ExportForm } from "../bindings/ExportForm";
import type { Imported } from "../bindings/Imported";
import { BackendError, type Backend } from "../backend/backend";
import { t } from "../messages/say";
import { errorWords } from "../messages/errors";
import type { ConversationList } from "./conversationList.svelte";
import type { Toasts } from "./toasts.svelte";

export interface Importing {
  name: string;
  /** Share of the file that has been read. */
  share: number;
}

export class Exchange {
  /** The import under way. */
  importing = $state.raw<Importing | null>(null);
  /** Paths of the files to import next. */
  #next: string[] = [];
  readonly #backend: Backend;
  readonly #conversations: ConversationList;
  readonly #toasts: Toasts;

  constructor(backend: Backend, conversations: ConversationList, toasts: Toasts) {
    this.#backend = backend;
    this.#conversations = conversations;
    this.#toasts = toasts;
  }

  /** Exports a conversation, or all of them for null, and shows the path of the file. */
  async export(conversation: number | null, form: ExportForm, traces = false) {
    try {
      const you = t("conversation.you");
      const path = await this.#backend.exportConversations({
        conversation,
        form,
        traces,
        you,
      });
      this.#toasts.show(t("window.exported", { path }));
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  /** Opens a file dialog and imports the chosen files. */
  async choose() {
    try {
      const [title, filter] = [t("dialog.conversations"), t("sidebar.conversations")];
      await this.import(await this.#backend.chooseConversationFiles(title, filter));
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }

  /** Imports files one after the other, after those under way, and shows the result of each. */
  async import(paths: readonly string[]) {
    this.#next.push(...paths);
    if (this.importing) return;
    for (let path = this.#next.shift(); path !== undefined; path = this.#next.shift()) {
      const name = path.split(/[\\/]/).at(-1) ?? path;
      this.importing = { name, share: 0 };
      try {
        const imported = await this.#backend.importConversations(path, ({ share }) => {
          this.importing = { name, share };
        });
        this.#toasts.show(outcomeWords(imported));
        await this.#conversations.load();
      } catch (thrown) {
        const reason = errorWords(BackendError.from(thrown));
        this.#toasts.show(t("window.notImported", { file: name, reason }));
      }
    }
    this.importing = null;
  }

  /** Stops the import under way and drops those after it. */
  async stop() {
    this.#next = [];
    await this.#backend.stopImport().catch(() => undefined);
  }
}

function outcomeWords({
  added,
  known,
  instructed,
  left_out: { conversations, messages, titles },
}: Imported): string {
  const lost = conversations + messages > 0;
  if (added === 0 && !lost) return t("window.allKnown", { count: known });
  const parts = [t("window.imported", { count: added })];
  if (known > 0) parts.push(t("window.known", { count: known }));
  if (instructed > 0) parts.push(t("window.instructed", { count: instructed }));
  if (conversations > 0) parts.push(t("window.conversationsLost", { count: conversations }));
  if (messages > 0) parts.push(t("window.messagesLost", { count: messages }));
  const named = lost && titles.length > 0 ? ` (${[...new Set(titles)].join(", ")})` : "";
  return `${parts.join(", ")}${named}.`;
}
