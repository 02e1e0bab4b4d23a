/** Types of commands, which are listed in table.ts. */
import { createContext } from "svelte";
import type { App } from "../state/app.svelte";
import type { Conversation } from "../bindings/Conversation";
import type { Message } from "../bindings/Message";
import { t, type Key } from "../messages/say";
import type { Keys } from "./keys";

/** Actions that only the window's components can perform. */
export interface WindowActions {
  focusComposer: () => void;
  focusSearch: () => void;
  focusFind: () => void;
  showConversations: () => void;
  chooseTarget: () => void;
  chooseDraft: () => void;
  choosePreset: () => void;
  importTrace: () => void;
  exportTrace: (reply: Message) => void;
  copyReply: (reply: Message, as: "markdown" | "text") => void;
  copy: (text: string) => void;
  print: (conversation: Conversation) => void;
}

export const [getWindowActions, setWindowActions] = createContext<WindowActions>();

export const GROUPS = [
  "window",
  "conversations",
  "models",
  "reply",
  "library",
  "settings",
] as const;
export type Group = (typeof GROUPS)[number];

export interface Command {
  id: string;
  group: Group;
  readonly name: string;
  /** Further words for the search. */
  readonly more: string;
  keys?: readonly Keys[];
  /** Whether the command has any effect; it is not listed otherwise. */
  applies?: (app: App) => boolean;
  /**
   * Why the command is unavailable, in a sentence that says what to do; null if it is available.
   */
  obstacle?: (app: App) => string | null;
  run: (app: App, actions: WindowActions) => void;
}

/** Ids of commands whose names are messages. */
type NamedId = IdOf<Key>;
type IdOf<K extends Key> = K extends `command.${infer Id}.more`
  ? `command.${Id}` extends Key
    ? Id
    : never
  : never;

/** A command with its message as name, in the current language. */
export function named(command: Omit<Command, "name" | "more"> & { id: NamedId }): Command {
  const { id } = command;
  return {
    ...command,
    get name() {
      return t(`command.${id}`);
    },
    get more() {
      return t(`command.${id}.more`);
    },
  };
}

export function applies(command: Command, app: App): boolean {
  return command.applies?.(app) ?? true;
}

export function obstacleOf(command: Command, app: App): string | null {
  return command.obstacle?.(app) ?? null;
}
