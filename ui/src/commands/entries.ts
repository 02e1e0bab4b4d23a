/** What the palette lists: commands, and what is jumped to by name: conversations and settings. */
import { narrow, wordsOf, type Found } from "../search/words";
import { foundBy, sectionOf, SETTING_IDS, SETTINGS } from "../settings/words";
import type { App } from "../state/app.svelte";
import { nameOf, presetsOf } from "../state/presets";
import { applies, obstacleOf, type Command, type Desk } from "./command";
import type { Keys } from "./keys";
import { COMMANDS } from "./table";
import { t } from "../messages/say";

export interface Entry extends Found {
  id: string;
  /** What kind of thing it is, where it is no command. */
  kind: string | null;
  keys: Keys | null;
  obstacle: string | null;
  run: () => void;
}

/** More than anybody reads. */
const MOST = 100;

/** Those that have all words of the query, the best first; of equals those that can be done. */
export function entriesFor(app: App, desk: Desk, query: string): Entry[] {
  const commands = COMMANDS.filter((command) => applies(command, app)).map((command) =>
    entryOf(command, app, desk),
  );
  const jumps =
    wordsOf(query).length > 0
      ? [...presetEntries(app), ...conversationsOf(app), ...settingsOf(app)]
      : [];
  const possibleFirst = [...commands, ...jumps].sort(
    (a, b) => Number(a.obstacle !== null) - Number(b.obstacle !== null),
  );
  return narrow(possibleFirst, query, (entry) => entry).slice(0, MOST);
}

function entryOf(command: Command, app: App, desk: Desk): Entry {
  const { id, name, more, group, keys } = command;
  return {
    id,
    name,
    more: `${more} ${t(`command.group.${group}`)}`,
    kind: null,
    keys: keys?.[0] ?? null,
    obstacle: obstacleOf(command, app),
    run: () => command.run(app, desk),
  };
}

function jump(id: string, { name, more }: Found, kind: string, run: () => void): Entry {
  return { id, name, more: `${more ?? ""} ${kind}`, kind, keys: null, obstacle: null, run };
}

function conversationsOf(app: App): Entry[] {
  const titles = [
    ...app.imports.list,
    ...app.conversations.list.map(({ id, title }) => ({ id, name: title })),
  ];
  return titles.map(({ id, name }) =>
    jump(`conversation-${id}`, { name }, t("command.conversation"), () => void app.open(id)),
  );
}

function presetEntries(app: App): Entry[] {
  return presetsOf(app).map((preset) =>
    jump(`preset-${preset.id}`, { name: nameOf(preset) }, t("command.presetKind"), () => {
      void app.setup.choose(preset);
    }),
  );
}

function settingsOf(app: App): Entry[] {
  return SETTING_IDS.map((id) =>
    jump(`setting-${id}`, foundBy(id), t("command.settingOf", { section: sectionOf(id) }), () => {
      app.settingSearch.wanted = id;
      app.view.openSettings(SETTINGS[id].section);
    }),
  );
}
