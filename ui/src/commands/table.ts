/**
 * All commands of the window with their shortcuts, shared by the palette, the list of shortcuts and
 * the keyboard. Of several commands with the same keys, the first available one runs.
 */
import { LOCALES } from "../messages/locale.svelte";
import { t } from "../messages/say";
import type { Conversation } from "../bindings/Conversation";
import { SECTIONS } from "../settings/words";
import type { App } from "../state/app.svelte";
import { defaults } from "../bindings/defaults";
import { facts } from "../bindings/facts";
import type { Language } from "../bindings/Language";
import type { Theme } from "../bindings/Theme";
import { applies, named, obstacleOf, type Command, type WindowActions } from "./command";
import {
  duplicate,
  exportJson,
  exportMarkdown,
  move,
  pin,
  print,
  remove,
  rename,
} from "./conversationMenu";
import { pressed, type Keys } from "./keys";
import { REPLY_COMMANDS } from "./replyCommands";
import { LIBRARY_SECTIONS } from "./sections";
import type { SubjectCommand } from "./subject";

function openConversation({ conversations }: App) {
  return conversations.list.find(({ id }) => id === conversations.current) ?? null;
}

/** A conversation's command, applied to the open one. */
function forOpen(
  id:
    | "rename"
    | "pin"
    | "move"
    | "delete"
    | "duplicate"
    | "export-markdown"
    | "export-json"
    | "print",
  { obstacle, run }: SubjectCommand<Conversation>,
  keys: readonly Keys[] = [],
): Command {
  return named({
    id,
    group: "conversations",
    keys,
    obstacle: (app) => {
      const open = openConversation(app);
      return open ? (obstacle?.(app, open) ?? null) : t("command.notStored");
    },
    run: (app, actions) => {
      const open = openConversation(app);
      if (open) run(app, actions, open);
    },
  });
}

const withCommand = (key: string, shift = false): readonly Keys[] => [
  { key, command: true, shift },
];

/** Step of the zoom, in percent. */
const ZOOM_STEP = 10;

/** Commands for the zoom, which is stored as the text size. */
function zooms(): Command[] {
  const zoom = ({ settings }: App, wanted: (size: number) => number) => {
    const { min, max } = facts.textSize;
    const size = wanted(settings.values.appearance.text_size);
    settings.changeAppearance({ text_size: Math.min(max, Math.max(min, size)) });
  };
  return [
    named({
      id: "zoom-in",
      group: "window",
      keys: [...withCommand("+"), ...withCommand("=")],
      run: (app) => zoom(app, (size) => size + ZOOM_STEP),
    }),
    named({
      id: "zoom-out",
      group: "window",
      keys: withCommand("-"),
      run: (app) => zoom(app, (size) => size - ZOOM_STEP),
    }),
    named({
      id: "zoom-reset",
      group: "window",
      keys: withCommand("0"),
      run: (app) => zoom(app, () => defaults.appearance.text_size),
    }),
  ];
}

const windowCommands: readonly Command[] = [
  named({
    id: "palette",
    group: "window",
    keys: withCommand("K"),
    // Not listed in the palette itself.
    applies: ({ view }) => !view.paletteOpen,
    run: ({ view }) => (view.paletteOpen = true),
  }),
  named({
    id: "undo",
    group: "window",
    keys: withCommand("Z"),
    applies: ({ toasts }) => toasts.canUndo,
    run: ({ toasts }) => toasts.undoLast(),
  }),
  named({
    id: "shortcuts",
    group: "window",
    keys: [...withCommand("/"), { key: "?" }],
    run: ({ view }) => (view.shortcutsOpen = true),
  }),
  named({
    id: "sidebar",
    group: "window",
    keys: withCommand("B"),
    run: ({ panels }) => panels.toggle("sidebar"),
  }),
  named({
    id: "inspector",
    group: "window",
    keys: withCommand("I"),
    obstacle: ({ view }) => (view.arenaOpen ? t("command.inspector.obstacle") : null),
    run: ({ panels }) => panels.toggle("inspector"),
  }),
  ...zooms(),
  named({
    id: "fullscreen",
    group: "window",
    keys: [{ key: "F11" }],
    run: (app) => void app.toggleFullscreen(),
  }),
  named({
    id: "quit",
    group: "window",
    keys: withCommand("Q"),
    run: (app) => void app.quit(),
  }),
  named({
    id: "arena",
    group: "window",
    keys: withCommand("E"),
    run: ({ view }) => (view.arenaOpen = !view.arenaOpen),
  }),
];

const conversationCommands: readonly Command[] = [
  named({
    id: "new-chat",
    group: "conversations",
    keys: withCommand("N"),
    run: (app, actions) => {
      app.startNew();
      actions.focusComposer();
    },
  }),
  named({
    id: "beside",
    group: "conversations",
    keys: withCommand("N", true),
    applies: ({ chats }) => chats.length === 1,
    obstacle: ({ conversations: { current, list } }) =>
      current === null && list.length === 0 ? t("command.notStored") : null,
    run: (app, actions) => {
      const { current, list } = app.conversations;
      void app.openBeside(current === null ? (list[0]?.id ?? null) : null);
      actions.focusComposer();
    },
  }),
  named({
    id: "other-chat",
    group: "conversations",
    keys: [{ key: "F6" }],
    applies: ({ chats }) => chats.length > 1,
    run: (app, actions) => {
      const other = app.chats.find((chat) => chat !== app.chat);
      if (other) app.focus(other);
      actions.focusComposer();
    },
  }),
  named({
    id: "close-chat",
    group: "conversations",
    keys: withCommand("W"),
    applies: ({ chats }) => chats.length > 1,
    run: (app) => app.close(app.chat),
  }),
  named({
    id: "new-folder",
    group: "conversations",
    run: ({ conversations }, actions) => {
      actions.showConversations();
      conversations.folders.adding = { conversation: null };
    },
  }),
  named({
    id: "find",
    group: "conversations",
    keys: withCommand("F"),
    run: (app, actions) => {
      app.view.arenaOpen = false;
      // Without an open conversation, search all of them.
      if (app.conversations.current === null) actions.focusSearch();
      else actions.focusFind();
    },
  }),
  named({
    id: "search",
    group: "conversations",
    keys: withCommand("F", true),
    run: (_, actions) => actions.focusSearch(),
  }),
  named({
    id: "compose",
    group: "conversations",
    obstacle: ({ playback, imports, conversations }) => {
      if (playback.message !== null) return t("command.compose.obstacle");
      return imports.find(conversations.current) ? t("command.notStored") : null;
    },
    run: (app, actions) => {
      app.view.arenaOpen = false;
      actions.focusComposer();
    },
  }),
  named({
    id: "server-contents",
    group: "conversations",
    applies: ({ settings }) => Object.keys(settings.values.tool_servers).length > 0,
    run: ({ view }) => (view.serverContentsOpen = true),
  }),
  forOpen("rename", rename),
  forOpen("pin", pin),
  forOpen("move", move),
  forOpen("delete", remove),
  forOpen("duplicate", duplicate),
  forOpen("export-markdown", exportMarkdown),
  forOpen("export-json", exportJson),
  forOpen("print", print, withCommand("P")),
  named({
    id: "export-all",
    group: "conversations",
    run: ({ exchange }) => void exchange.export(null, "json"),
  }),
  named({
    id: "import-conversations",
    group: "conversations",
    applies: ({ exchange }) => exchange.importing === null,
    run: ({ exchange }) => void exchange.choose(),
  }),
  named({
    id: "import",
    group: "conversations",
    run: (_, actions) => actions.importTrace(),
  }),
];

const modelCommands: readonly Command[] = [
  named({
    id: "target",
    group: "models",
    keys: withCommand("T"),
    run: (_, actions) => actions.chooseTarget(),
  }),
  named({
    id: "draft",
    group: "models",
    keys: withCommand("D"),
    run: (_, actions) => actions.chooseDraft(),
  }),
  named({
    id: "preset",
    group: "models",
    obstacle: ({ playback, imports, conversations }) => {
      if (playback.message !== null) return t("command.compose.obstacle");
      return imports.find(conversations.current) ? t("command.notStored") : null;
    },
    run: (_, actions) => actions.choosePreset(),
  }),
];

const libraryCommands: readonly Command[] = [
  named({
    id: "library",
    group: "library",
    keys: withCommand("L"),
    run: ({ view }) => view.openLibrary(),
  }),
  ...LIBRARY_SECTIONS.map((section): Command => ({
    id: `library-${section.id}`,
    group: "library",
    get name() {
      return t("command.libraryOf", { section: section.name });
    },
    get more() {
      return t("command.library.more");
    },
    run: ({ view }) => view.openLibrary(section.id),
  })),
];

const THEMES: readonly Theme[] = ["light", "dark", "system"];
const LANGUAGES: readonly Language[] = ["system", ...LOCALES];

const settingsCommands: readonly Command[] = [
  named({
    id: "settings",
    group: "settings",
    keys: withCommand(","),
    run: ({ view }) => view.openSettings(),
  }),
  ...SECTIONS.map((section): Command => ({
    id: `settings-${section.id}`,
    group: "settings",
    get name() {
      return t("command.settingOf", { section: section.name });
    },
    get more() {
      return t("command.settings.more");
    },
    run: ({ view }) => view.openSettings(section.id),
  })),
  ...THEMES.map((theme): Command => ({
    id: `theme-${theme}`,
    group: "settings",
    get name() {
      return t(`command.theme.${theme}`);
    },
    get more() {
      return t("command.theme.more");
    },
    applies: ({ settings }) => settings.values.appearance.theme !== theme,
    run: ({ settings }) => settings.changeAppearance({ theme }),
  })),
  ...LANGUAGES.map((language): Command => ({
    id: `language-${language}`,
    group: "settings",
    get name() {
      return t(`command.language.${language}`);
    },
    get more() {
      return t("command.language.more");
    },
    applies: ({ settings }) => settings.values.appearance.language !== language,
    run: ({ settings }) => settings.changeAppearance({ language }),
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

/** Keys of a command, the first if it has several. */
export function keysOf(id: string): Keys {
  const keys = COMMANDS.find((command) => command.id === id)?.keys?.[0];
  if (!keys) throw new Error(`no keys for “${id}”`);
  return keys;
}

/** The available command for a key press, if any. */
export function commandFor(event: KeyboardEvent, app: App): Command | undefined {
  return COMMANDS.find((command) => pressed(event, command.keys ?? []) && applies(command, app));
}

/** Runs a command, or shows why it is unavailable. */
export function runCommand(command: Command, app: App, actions: WindowActions) {
  const obstacle = obstacleOf(command, app);
  if (obstacle === null) command.run(app, actions);
  else app.toasts.show(obstacle);
}
