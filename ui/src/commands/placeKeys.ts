/**
 * Keys of single parts of the window, active while the part has the focus and handled there. Keys
 * of general controls such as lists are not included, as they are the same in every program.
 */
import { t, type Key } from "../messages/say";
import type { SendKey } from "../bindings/SendKey";
import { pressed, type Keys } from "./keys";

/** A list with at least one element. */
type Some<Value> = readonly [Value, ...Value[]];

export interface PlaceKey {
  readonly name: string;
  keys: Some<Keys>;
}

type NameKey = Extract<Key, `placeKeys.${string}.${string}`>;
type Place = Readonly<Record<string, PlaceKey>>;

/** A named key, with its name in the current language. */
const called = (name: NameKey, ...keys: Some<Keys>): PlaceKey => ({
  get name() {
    return t(name);
  },
  keys,
});
const one = (name: NameKey, first: string, ...others: string[]) =>
  called(name, { key: first }, ...others.map((key) => ({ key })));

export const PLACE_KEYS = {
  composer: {
    send: called("placeKeys.composer.send", { key: "Enter" }, { key: "Enter", command: true }),
    newLine: called("placeKeys.composer.newLine", { key: "Enter", shift: true }),
  },
  edit: {
    send: called("placeKeys.edit.send", { key: "Enter" }, { key: "Enter", command: true }),
    newLine: called("placeKeys.edit.newLine", { key: "Enter", shift: true }),
    cancel: one("placeKeys.edit.cancel", "Escape"),
  },
  conversations: {
    rename: one("placeKeys.conversations.rename", "F2"),
    delete: one("placeKeys.conversations.delete", "Delete"),
  },
  tokens: {
    previous: one("placeKeys.tokens.previous", "ArrowLeft"),
    next: one("placeKeys.tokens.next", "ArrowRight"),
    first: one("placeKeys.tokens.first", "Home"),
    last: one("placeKeys.tokens.last", "End"),
    clear: one("placeKeys.tokens.clear", "Escape"),
  },
  heatmap: {
    previous: one("placeKeys.heatmap.previous", "ArrowLeft"),
    next: one("placeKeys.heatmap.next", "ArrowRight"),
    above: one("placeKeys.heatmap.above", "ArrowUp"),
    below: one("placeKeys.heatmap.below", "ArrowDown"),
    first: one("placeKeys.heatmap.first", "Home"),
    last: one("placeKeys.heatmap.last", "End"),
    earlier: one("placeKeys.heatmap.earlier", "PageUp"),
    later: one("placeKeys.heatmap.later", "PageDown"),
    zoomIn: one("placeKeys.heatmap.zoomIn", "+", "="),
    zoomOut: one("placeKeys.heatmap.zoomOut", "-"),
    whole: one("placeKeys.heatmap.whole", "0"),
    only: one("placeKeys.heatmap.only", "Enter"),
    clear: one("placeKeys.heatmap.clear", "Escape"),
  },
  replay: {
    toggle: one("placeKeys.replay.toggle", " "),
    previous: one("placeKeys.replay.previous", "ArrowLeft"),
    next: one("placeKeys.replay.next", "ArrowRight"),
    start: one("placeKeys.replay.start", "Home"),
    end: one("placeKeys.replay.end", "End"),
  },
  arena: {
    start: called("placeKeys.arena.start", { key: "Enter", command: true }),
  },
  find: {
    next: one("placeKeys.find.next", "Enter", "ArrowDown"),
    previous: called("placeKeys.find.previous", { key: "Enter", shift: true }, { key: "ArrowUp" }),
    close: one("placeKeys.find.close", "Escape"),
  },
  settings: {
    search: called("placeKeys.settings.search", { key: "F", command: true }),
  },
} as const satisfies Record<string, Place>;

export type PlaceId = keyof typeof PLACE_KEYS;

const COMMAND_ENTER: readonly [Keys] = [{ key: "Enter", command: true }];
const ENTER: readonly [Keys, Keys] = [{ key: "Enter" }, { key: "Enter", shift: true }];

type Places = {
  readonly [Id in PlaceId]: Readonly<Record<keyof (typeof PLACE_KEYS)[Id], PlaceKey>>;
};

/** Keys of all places; `sendKey` is the key that sends a message. */
export function placeKeys(sendKey: SendKey): Places {
  if (sendKey === "enter") return PLACE_KEYS;
  return {
    ...PLACE_KEYS,
    composer: {
      send: called("placeKeys.composer.send", ...COMMAND_ENTER),
      newLine: called("placeKeys.composer.newLine", ...ENTER),
    },
    edit: {
      send: called("placeKeys.edit.send", ...COMMAND_ENTER),
      newLine: called("placeKeys.edit.newLine", ...ENTER),
      cancel: PLACE_KEYS.edit.cancel,
    },
  };
}

/** The pressed key of a place, if any. */
export function keyIn<Id extends PlaceId>(
  event: KeyboardEvent,
  place: Id,
  sendKey: SendKey = "enter",
): keyof (typeof PLACE_KEYS)[Id] | undefined {
  const keys: Place = placeKeys(sendKey)[place];
  const found = Object.keys(keys).find((id) => pressed(event, keys[id]?.keys ?? []));
  return found as keyof (typeof PLACE_KEYS)[Id] | undefined;
}
