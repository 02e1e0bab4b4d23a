/**
 * The keys that mean something in one part of the window alone, while that has the keyboard. What they do
 * is up to the part. The keys of general controls, such as lists, are those of every program.
 */
import { pressed, type Keys } from "./keys";

export interface PlaceKey {
  name: string;
  keys: readonly Keys[];
}

type Place = Readonly<Record<string, PlaceKey>>;

const one = (name: string, ...keys: string[]): PlaceKey => ({
  name,
  keys: keys.map((key) => ({ key })),
});

export const PLACE_KEYS = {
  composer: {
    send: { name: "Send the message", keys: [{ key: "Enter" }, { key: "Enter", command: true }] },
    newLine: { name: "Start a new line", keys: [{ key: "Enter", shift: true }] },
  },
  conversations: {
    rename: one("Rename", "F2"),
    delete: one("Delete", "Delete"),
  },
  tokens: {
    previous: one("Previous token", "ArrowLeft"),
    next: one("Next token", "ArrowRight"),
    first: one("First token", "Home"),
    last: one("Last token", "End"),
    clear: one("Select none", "Escape"),
  },
  heatmap: {
    previous: one("Previous round", "ArrowLeft"),
    next: one("Next round", "ArrowRight"),
    above: one("Token above", "ArrowUp"),
    below: one("Token below", "ArrowDown"),
    first: one("First token", "Home"),
    last: one("Newest token", "End"),
    earlier: one("Scroll to earlier rounds", "PageUp"),
    later: one("Scroll to later rounds", "PageDown"),
    zoomIn: one("Zoom in", "+", "="),
    zoomOut: one("Zoom out", "-"),
    whole: one("Show the whole reply", "0"),
    only: one("Show one round alone, or all", "Enter"),
    clear: one("Select none", "Escape"),
  },
  replay: {
    toggle: one("Play or pause", " "),
    previous: one("Previous round or stage", "ArrowLeft"),
    next: one("Next round or stage", "ArrowRight"),
    start: one("Go to the beginning", "Home"),
    end: one("Go to the end", "End"),
  },
  arena: {
    start: { name: "Start", keys: [{ key: "Enter", command: true }] },
  },
  settings: {
    search: { name: "Search settings", keys: [{ key: "F", command: true }] },
  },
} as const satisfies Record<string, Place>;

export type PlaceId = keyof typeof PLACE_KEYS;

export const PLACE_NAMES: Readonly<Record<PlaceId, string>> = {
  composer: "In the message field",
  conversations: "On a conversation in the sidebar",
  tokens: "In the tokens of a reply",
  heatmap: "In the heatmap",
  replay: "During a replay",
  arena: "In the arena's prompt",
  settings: "In the settings",
};

/** Which of a place's keys were pressed. */
export function keyIn<Id extends PlaceId>(
  event: KeyboardEvent,
  place: Id,
): keyof (typeof PLACE_KEYS)[Id] | undefined {
  const keys: Place = PLACE_KEYS[place];
  const found = Object.keys(keys).find((id) => pressed(event, keys[id]?.keys ?? []));
  return found as keyof (typeof PLACE_KEYS)[Id] | undefined;
}
