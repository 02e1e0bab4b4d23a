/**
 * Keys of single parts of the window, active while the part has the focus and handled there. Keys
 * of general controls such as lists are not included, as they are the same in every program.
 */
import { t, type Key } from "../messages/say";
import type { SendKey } from "../bindings/SendKey";
import { pressed, type Keys } from "./keys";

/** A list with at least one element. */
type NonEmpty<Value> = readonly [Value, ...Value[]];

export interface RegionKey {
  readonly name: string;
  keys: NonEmpty<Keys>;
}

type NameKey = Extract<Key, `regionKeys.${string}.${string}`>;
type Region = Readonly<Record<string, RegionKey>>;

/** A named key, with its name in the current language. */
const regionKey = (name: NameKey, ...keys: NonEmpty<Keys>): RegionKey => ({
  get name() {
    return t(name);
  },
  keys,
});
const plainKeys = (name: NameKey, first: string, ...others: string[]) =>
  regionKey(name, { key: first }, ...others.map((key) => ({ key })));

export const REGION_KEYS = {
  composer: {
    send: regionKey("regionKeys.composer.send", { key: "Enter" }, { key: "Enter", command: true }),
    newLine: regionKey("regionKeys.composer.newLine", { key: "Enter", shift: true }),
  },
  edit: {
    send: regionKey("regionKeys.edit.send", { key: "Enter" }, { key: "Enter", command: true }),
    newLine: regionKey("regionKeys.edit.newLine", { key: "Enter", shift: true }),
    cancel: plainKeys("regionKeys.edit.cancel", "Escape"),
  },
  conversations: {
    rename: plainKeys("regionKeys.conversations.rename", "F2"),
    move: plainKeys("regionKeys.conversations.move", "M"),
    delete: plainKeys("regionKeys.conversations.delete", "Delete"),
  },
  tokens: {
    previous: plainKeys("regionKeys.tokens.previous", "ArrowLeft"),
    next: plainKeys("regionKeys.tokens.next", "ArrowRight"),
    first: plainKeys("regionKeys.tokens.first", "Home"),
    last: plainKeys("regionKeys.tokens.last", "End"),
    clear: plainKeys("regionKeys.tokens.clear", "Escape"),
  },
  heatmap: {
    previous: plainKeys("regionKeys.heatmap.previous", "ArrowLeft"),
    next: plainKeys("regionKeys.heatmap.next", "ArrowRight"),
    above: plainKeys("regionKeys.heatmap.above", "ArrowUp"),
    below: plainKeys("regionKeys.heatmap.below", "ArrowDown"),
    first: plainKeys("regionKeys.heatmap.first", "Home"),
    last: plainKeys("regionKeys.heatmap.last", "End"),
    earlier: plainKeys("regionKeys.heatmap.earlier", "PageUp"),
    later: plainKeys("regionKeys.heatmap.later", "PageDown"),
    zoomIn: plainKeys("regionKeys.heatmap.zoomIn", "+", "="),
    zoomOut: plainKeys("regionKeys.heatmap.zoomOut", "-"),
    whole: plainKeys("regionKeys.heatmap.whole", "0"),
    only: plainKeys("regionKeys.heatmap.only", "Enter"),
    clear: plainKeys("regionKeys.heatmap.clear", "Escape"),
  },
  replay: {
    toggle: plainKeys("regionKeys.replay.toggle", " "),
    previous: plainKeys("regionKeys.replay.previous", "ArrowLeft"),
    next: plainKeys("regionKeys.replay.next", "ArrowRight"),
    start: plainKeys("regionKeys.replay.start", "Home"),
    end: plainKeys("regionKeys.replay.end", "End"),
  },
  arena: {
    start: regionKey("regionKeys.arena.start", { key: "Enter", command: true }),
  },
  find: {
    next: plainKeys("regionKeys.find.next", "Enter", "ArrowDown"),
    previous: regionKey(
      "regionKeys.find.previous",
      { key: "Enter", shift: true },
      { key: "ArrowUp" },
    ),
    close: plainKeys("regionKeys.find.close", "Escape"),
  },
  settings: {
    search: regionKey("regionKeys.settings.search", { key: "F", command: true }),
  },
} as const satisfies Record<string, Region>;

export type RegionId = keyof typeof REGION_KEYS;

const COMMAND_ENTER: readonly [Keys] = [{ key: "Enter", command: true }];
const ENTER: readonly [Keys, Keys] = [{ key: "Enter" }, { key: "Enter", shift: true }];

type RegionKeys = {
  readonly [Id in RegionId]: Readonly<Record<keyof (typeof REGION_KEYS)[Id], RegionKey>>;
};

/** Keys of all regions; `sendKey` is the key that sends a message. */
export function regionKeys(sendKey: SendKey): RegionKeys {
  if (sendKey === "enter") return REGION_KEYS;
  return {
    ...REGION_KEYS,
    composer: {
      send: regionKey("regionKeys.composer.send", ...COMMAND_ENTER),
      newLine: regionKey("regionKeys.composer.newLine", ...ENTER),
    },
    edit: {
      send: regionKey("regionKeys.edit.send", ...COMMAND_ENTER),
      newLine: regionKey("regionKeys.edit.newLine", ...ENTER),
      cancel: REGION_KEYS.edit.cancel,
    },
  };
}

/** The pressed key of a region, if any. */
export function keyIn<Id extends RegionId>(
  event: KeyboardEvent,
  region: Id,
  sendKey: SendKey = "enter",
): keyof (typeof REGION_KEYS)[Id] | undefined {
  const keys: Region = regionKeys(sendKey)[region];
  const found = Object.keys(keys).find((id) => pressed(event, keys[id]?.keys ?? []));
  return found as keyof (typeof REGION_KEYS)[Id] | undefined;
}
