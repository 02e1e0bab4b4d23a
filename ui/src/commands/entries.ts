/** Entries of the palette: commands, presets, conversations and settings. */
import { narrow, wordsOf, type Found } from "../search/words";
import { foundBy, sectionOf, SETTING_IDS, SETTINGS } from "../settings/words";
import type { App } from "../state/app.svelte";
import { nameOf, presetsOf } from "../state/presets";
import {
  applies,
  GROUPS,
  obstacleOf,
  type Command,
  type WindowActions,
  type Group,
} from "./command";
import type { Keys } from "./keys";
import { COMMANDS } from "./table";
import { t } from "../messages/say";

export interface Entry extends Found {
  id: string;
  /** Group of a command, or kind of another entry. */
  sort: Group | "conversation" | "preset" | "setting";
  /** Kind of the entry in words; null for a command. */
  kind: string | null;
  /** Heading of the entry's group; null during a search. */
  heading: string | null;
  keys: Keys | null;
  obstacle: string | null;
  run: () => void;
}

/** Most entries listed. */
const MOST = 100;

/** Without a query, all commands by group; else the matches, best first. */
export function entriesFor(app: App, actions: WindowActions, query: string): Entry[] {
  const commands = COMMANDS.filter((command) => applies(command, app));
  if (wordsOf(query).length === 0) return grouped(commands, app, actions);
  const entries = [
    ...commands.map((command) => entryOf(command, app, actions)),
    ...presetEntries(app),
    ...conversationsOf(app),
    ...settingsOf(app),
  ];
  // Among equal matches, available ones come first.
  entries.sort((a, b) => Number(a.obstacle !== null) - Number(b.obstacle !== null));
  return narrow(entries, query, (entry) => entry).slice(0, MOST);
}

/** Recent commands, then available ones by group, then the rest. */
function grouped(commands: readonly Command[], app: App, actions: WindowActions): Entry[] {
  const { recent } = app.view;
  const place = (entry: Entry, { id, group }: Command): [number, string] => {
    if (entry.obstacle !== null) return [Infinity, t("palette.notNow")];
    const at = recent.indexOf(id);
    if (at >= 0) return [at - recent.length, t("palette.recent")];
    return [GROUPS.indexOf(group), t(`command.group.${group}`)];
  };
  const placed = commands.map((command) => {
    const entry = entryOf(command, app, actions);
    const [order, heading] = place(entry, command);
    return { order, entry: { ...entry, heading } };
  });
  // Compared without subtraction, which gives NaN for two infinite orders.
  placed.sort((a, b) => (a.order === b.order ? 0 : a.order < b.order ? -1 : 1));
  return placed.map(({ entry }) => entry);
}

function entryOf(command: Command, app: App, actions: WindowActions): Entry {
  const { id, name, more, group, keys } = command;
  return {
    id,
    sort: group,
    name,
    more: `${more} ${t(`command.group.${group}`)}`,
    kind: null,
    heading: null,
    keys: keys?.[0] ?? null,
    obstacle: obstacleOf(command, app),
    run: () => command.run(app, actions),
  };
}

function jump(
  sort: Entry["sort"],
  id: string | number,
  { name, more }: Found,
  kind: string,
  run: () => void,
): Entry {
  more = `${more ?? ""} ${kind}`;
  return {
    id: `${sort}-${String(id)}`,
    sort,
    name,
    more,
    kind,
    heading: null,
    keys: null,
    obstacle: null,
    run,
  };
}

function conversationsOf(app: App): Entry[] {
  const titles = [
    ...app.imports.list,
    ...app.conversations.list.map(({ id, title, folder }) => ({
      id,
      name: title,
      more: app.conversations.folders.find(folder)?.name,
    })),
  ];
  return titles.map(({ id, ...found }) =>
    jump("conversation", id, found, t("command.conversation"), () => void app.open(id)),
  );
}

function presetEntries(app: App): Entry[] {
  return presetsOf(app).map((preset) =>
    jump("preset", preset.id, { name: nameOf(preset) }, t("command.presetKind"), () => {
      void app.setup.choose(preset);
    }),
  );
}

function settingsOf(app: App): Entry[] {
  return SETTING_IDS.map((id) =>
    jump("setting", id, foundBy(id), t("command.settingOf", { section: sectionOf(id) }), () => {
      app.settingSearch.wanted = id;
      app.view.openSettings(SETTINGS[id].section);
    }),
  );
}
