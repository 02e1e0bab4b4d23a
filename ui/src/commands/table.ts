/**
 * Everything that can be done in the window, and by which keys: what the palette and the list of
 * shortcuts show, and what the keys do, so that they never differ. Where keys have several commands,
 * the first that applies is meant.
 */
import { SECTIONS } from "../settings/words";
import type { App } from "../state/app.svelte";
import type { Theme } from "../bindings/Theme";
import { applies, obstacleOf, type Command, type Desk } from "./command";
import { pressed, type Keys } from "./keys";
import { REPLY_COMMANDS } from "./replyCommands";
import { LIBRARY_SECTIONS } from "./sections";

const NOT_STORED = "Open one of your conversations first.";

function openConversation({ conversations }: App) {
  return conversations.list.find(({ id }) => id === conversations.current) ?? null;
}

function noOpenConversation(app: App): string | null {
  return openConversation(app) ? null : NOT_STORED;
}

const withCommand = (key: string, shift = false): readonly Keys[] => [
  { key, command: true, shift },
];

const windowCommands: readonly Command[] = [
  {
    id: "palette",
    group: "Window",
    name: "Find a command",
    more: "palette actions",
    keys: withCommand("K"),
    // Whoever reads the list of commands has found it.
    applies: ({ view }) => !view.paletteOpen,
    run: ({ view }) => (view.paletteOpen = true),
  },
  {
    id: "shortcuts",
    group: "Window",
    name: "Keyboard shortcuts",
    more: "keys help",
    keys: [...withCommand("/"), { key: "?" }],
    run: ({ view }) => (view.shortcutsOpen = true),
  },
  {
    id: "sidebar",
    group: "Window",
    name: "Show or hide the sidebar",
    more: "toggle conversations left",
    keys: withCommand("B"),
    run: ({ settings }) =>
      settings.changeAppearance({ sidebar_open: !settings.values.appearance.sidebar_open }),
  },
  {
    id: "inspector",
    group: "Window",
    name: "Show or hide the inspector",
    more: "toggle heatmap numbers right",
    keys: withCommand("I"),
    obstacle: ({ view }) =>
      view.arenaOpen ? "There is no inspector in the arena: close the arena first." : null,
    run: ({ settings }) =>
      settings.changeAppearance({ inspector_open: !settings.values.appearance.inspector_open }),
  },
  {
    id: "arena",
    group: "Window",
    name: "Open or close the arena",
    more: "toggle compare two set-ups",
    keys: withCommand("E"),
    run: ({ view }) => (view.arenaOpen = !view.arenaOpen),
  },
];

const conversationCommands: readonly Command[] = [
  {
    id: "new-chat",
    group: "Conversations",
    name: "New chat",
    more: "conversation start",
    keys: withCommand("N"),
    run: (app, desk) => {
      app.startNew();
      desk.focusComposer();
    },
  },
  {
    id: "search",
    group: "Conversations",
    name: "Search conversations",
    more: "find messages",
    keys: withCommand("F"),
    run: (_, desk) => desk.focusSearch(),
  },
  {
    id: "compose",
    group: "Conversations",
    name: "Go to the message field",
    more: "write ask composer focus",
    obstacle: ({ playback, imports, conversations }) => {
      if (playback.message !== null) return "A reply is being replayed: close the replay first.";
      return imports.find(conversations.current) ? NOT_STORED : null;
    },
    run: (app, desk) => {
      app.view.arenaOpen = false;
      desk.focusComposer();
    },
  },
  {
    id: "rename",
    group: "Conversations",
    name: "Rename this conversation",
    more: "title",
    obstacle: noOpenConversation,
    run: (app, desk) => {
      desk.showConversations();
      app.view.renaming = app.conversations.current;
    },
  },
  {
    id: "pin",
    group: "Conversations",
    name: "Pin or unpin this conversation",
    more: "keep top",
    obstacle: noOpenConversation,
    run: (app) => {
      const conversation = openConversation(app);
      if (conversation) void app.conversations.togglePin(conversation);
    },
  },
  {
    id: "delete",
    group: "Conversations",
    name: "Delete this conversation",
    more: "remove",
    obstacle: noOpenConversation,
    run: (app) => {
      const conversation = openConversation(app);
      if (conversation) void app.conversations.delete(conversation);
    },
  },
  {
    id: "import",
    group: "Conversations",
    name: "Import a trace",
    more: "open file jsonl",
    run: (_, desk) => desk.importTrace(),
  },
];

const modelCommands: readonly Command[] = [
  {
    id: "target",
    group: "Models",
    name: "Choose the target model",
    more: "switch picker",
    keys: withCommand("T"),
    run: (_, desk) => desk.chooseTarget(),
  },
  {
    id: "draft",
    group: "Models",
    name: "Choose the draft model",
    more: "switch drafter picker",
    keys: withCommand("D"),
    run: (_, desk) => desk.chooseDraft(),
  },
];

const libraryCommands: readonly Command[] = [
  {
    id: "library",
    group: "Library",
    name: "Library",
    more: "open models",
    keys: withCommand("L"),
    run: ({ view }) => view.openLibrary(),
  },
  ...LIBRARY_SECTIONS.map(({ id, name }): Command => ({
    id: `library-${id}`,
    group: "Library",
    name: `Library: ${name}`,
    more: "open models",
    run: ({ view }) => view.openLibrary(id),
  })),
];

const THEMES: readonly (readonly [Theme, string])[] = [
  ["light", "Theme: light"],
  ["dark", "Theme: dark"],
  ["system", "Theme: same as the system"],
];

const settingsCommands: readonly Command[] = [
  {
    id: "settings",
    group: "Settings",
    name: "Settings",
    more: "open preferences options",
    keys: withCommand(","),
    run: ({ view }) => view.openSettings(),
  },
  ...SECTIONS.map(({ id, name }): Command => ({
    id: `settings-${id}`,
    group: "Settings",
    name: `Settings: ${name}`,
    more: "open preferences options",
    run: ({ view }) => view.openSettings(id),
  })),
  ...THEMES.map(([theme, name]): Command => ({
    id: `theme-${theme}`,
    group: "Settings",
    name,
    more: "appearance colours mode",
    applies: ({ settings }) => settings.values.appearance.theme !== theme,
    run: ({ settings }) => settings.changeAppearance({ theme }),
  })),
];

export const COMMANDS: readonly Command[] = [
  ...conversationCommands,
  ...modelCommands,
  ...REPLY_COMMANDS,
  ...windowCommands,
  ...libraryCommands,
  ...settingsCommands,
];

/** The keys of a command, the first where it has several. */
export function keysOf(id: string): Keys {
  const keys = COMMANDS.find((command) => command.id === id)?.keys?.[0];
  if (!keys) throw new Error(`no keys for “${id}”`);
  return keys;
}

/** The command that was asked for by the keyboard, if any. */
export function commandFor(event: KeyboardEvent, app: App): Command | undefined {
  return COMMANDS.find((command) => pressed(event, command.keys ?? []) && applies(command, app));
}

/** Does it, or says why it cannot be done. */
export function runCommand(command: Command, app: App, desk: Desk) {
  const obstacle = obstacleOf(command, app);
  if (obstacle === null) command.run(app, desk);
  else app.toasts.show(obstacle);
}
