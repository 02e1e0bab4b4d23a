/** Prompts and resources of tool servers, which a person picks for the message being written. */
import type { FilledArgument } from "../bindings/FilledArgument";
import type { PromptArgument } from "../bindings/PromptArgument";
import type { ServerContents as Listed } from "../bindings/ServerContents";
import type { ServerPrompt } from "../bindings/ServerPrompt";
import type { ServerResource } from "../bindings/ServerResource";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import { polled } from "./polled";

const REFRESH_MS = 500;

const NONE: Listed = { prompts: [], resources: [], is_starting: false, problems: [] };

/** A prompt or resource, with the fields that have to be filled in first. */
export interface ServerEntry {
  id: string;
  sort: "prompt" | "resource";
  server: string;
  /** Name of a prompt, or address of a resource. */
  key: string;
  name: string;
  detail: string;
  fields: readonly PromptArgument[];
}

/** Receiver of what was picked. */
interface Message {
  write: (text: string) => void;
  attach: (name: string, text: string) => void;
}

export class ServerContents {
  #listed = $state.raw<Listed>({ ...NONE, is_starting: true });
  /** Entries by server; of entries that a server lists twice, the first. */
  readonly entries = $derived.by(() => {
    const { prompts, resources } = this.#listed;
    const all = [...prompts.map(promptEntry), ...resources.map(resourceEntry)];
    const ids = new Set<string>();
    return all.filter(({ id }) => !ids.has(id) && ids.add(id));
  });
  readonly starting = $derived(this.#listed.is_starting);
  /** Why servers have failed, a sentence each. */
  readonly problems = $derived(this.#listed.problems);
  fetching = $state(false);
  /** Why the last entry could not be fetched; null if it could. */
  problem = $state<string | null>(null);

  readonly #backend: Pick<
    Backend,
    "serverContents" | "fetchPrompt" | "fetchResource" | "stopFetching"
  >;
  readonly #message: Message;
  /** Number of times that the list was closed. */
  #closed = 0;

  constructor(backend: Backend, message: Message) {
    this.#backend = backend;
    this.#message = message;
  }

  /** Starts the servers and lists their contents until the returned function is called. */
  watch(): () => void {
    let start = true;
    const ask = async () => {
      if (!start && !this.#listed.is_starting) return this.#listed;
      const starts = start;
      start = false;
      return await this.#backend.serverContents(starts).catch((thrown: unknown) => {
        this.problem = errorWords(BackendError.from(thrown));
        return NONE;
      });
    };
    this.problem = null;
    const stop = polled(ask, (listed) => (this.#listed = listed), REFRESH_MS);
    return () => {
      stop();
      this.#closed += 1;
      if (this.fetching) void this.#backend.stopFetching().catch(() => undefined);
    };
  }

  /** Puts an entry into the message; resolves with whether that worked. */
  async pick(entry: ServerEntry, values: Readonly<Record<string, string>>): Promise<boolean> {
    const { sort, server, key } = entry;
    const filled = Object.entries(values).map(([name, value]) => ({ name, value }));
    const closed = this.#closed;
    this.fetching = true;
    this.problem = null;
    try {
      const put = await this.#fetched(sort, server, key, filled);
      if (closed !== this.#closed) return false;
      put();
      return true;
    } catch (thrown) {
      const error = BackendError.from(thrown);
      if (error.code !== "cancelled") this.problem = errorWords(error);
      return false;
    } finally {
      this.fetching = false;
    }
  }

  /** Fetches an entry; resolves with a function that puts it into the message. */
  async #fetched(
    sort: ServerEntry["sort"],
    server: string,
    key: string,
    filled: FilledArgument[],
  ): Promise<() => void> {
    if (sort === "prompt") {
      const text = await this.#backend.fetchPrompt(server, key, filled);
      return () => this.#message.write(text);
    }
    const { name, text } = await this.#backend.fetchResource(server, key, filled);
    return () => this.#message.attach(name, text);
  }
}

function idOf(sort: ServerEntry["sort"], server: string, key: string): string {
  return JSON.stringify([sort, server, key]);
}

function promptEntry({ server, name, title, description, arguments: fields }: ServerPrompt) {
  const entry = { sort: "prompt" as const, server, key: name, name: title };
  return { ...entry, id: idOf("prompt", server, name), detail: description, fields };
}

function resourceEntry({ server, uri, title, description, variables }: ServerResource) {
  const fields = variables.map((name) => ({
    name,
    title: name,
    description: "",
    is_required: true,
  }));
  const entry = { sort: "resource" as const, server, key: uri, name: title === "" ? uri : title };
  return { ...entry, id: idOf("resource", server, uri), detail: description || uri, fields };
}
