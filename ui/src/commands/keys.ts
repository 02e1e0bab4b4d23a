/**
 * How keys are recognised and written on this system. Which there are: table.ts and placeKeys.ts.
 */
import { isComposed } from "../composing";
import { t } from "../messages/say";

export interface Keys {
  /** As `KeyboardEvent.key` names it; letters as capitals. */
  key: string;
  /** With the system's command key: Ctrl, or Cmd on a Mac. */
  command?: boolean;
  shift?: boolean;
}

const APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

const ARROWS: Readonly<Record<string, string>> = {
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
};

/** Keys with a name instead of a character. */
const NAMED = {
  " ": "keys.space",
  Escape: "keys.escape",
  Delete: "keys.delete",
  Enter: "keys.enter",
  Home: "keys.home",
  End: "keys.end",
  PageUp: "keys.pageUp",
  PageDown: "keys.pageDown",
} as const;

function nameOf(key: string): string {
  const named = Object.entries(NAMED).find(([known]) => known === key);
  return named ? t(named[1]) : (ARROWS[key] ?? key);
}

/** Whether an event presses one of these keys. */
export function pressed(event: KeyboardEvent, any: readonly Keys[], apple = APPLE): boolean {
  return !isComposed(event) && any.some((keys) => isPressed(event, keys, apple));
}

function isPressed(event: KeyboardEvent, keys: Keys, apple: boolean): boolean {
  const { key, command = false, shift = false } = keys;
  if (event.altKey || latinKey(event).toUpperCase() !== key.toUpperCase()) return false;
  const [own, other] = apple ? [event.metaKey, event.ctrlKey] : [event.ctrlKey, event.metaKey];
  if (own !== command || other) return false;
  return isSign(key) || event.shiftKey === shift;
}

/** Signs of shortcuts that other alphabets have letters in the place of, by where they are. */
const SIGNS: Readonly<Record<string, string>> = { Comma: ",", Slash: "/" };

/**
 * On a keyboard with another alphabet's letters, the key that stands there on one with Latin ones.
 */
function latinKey({ key, code }: KeyboardEvent): string {
  const isOther = /^(?!\p{Script=Latin})\p{L}$/u.test(key);
  if (!isOther) return key;
  return /^Key([A-Z])$/.exec(code)?.[1] ?? SIGNS[code] ?? key;
}

/** Where a sign is on a keyboard, and whether it needs Shift, differs by country. */
function isSign(key: string): boolean {
  return key.length === 1 && !/[\p{L} ]/u.test(key);
}

/** The names of keys that are pressed together, in the system's order. */
export function keyNames({ key, command, shift }: Keys, apple = APPLE): string[] {
  const name = nameOf(key);
  const withShift = shift ? [apple ? "⇧" : t("keys.shift")] : [];
  const withCommand = command ? [apple ? "⌘" : t("keys.control")] : [];
  return apple ? [...withShift, ...withCommand, name] : [...withCommand, ...withShift, name];
}

/** "Ctrl N", or "⌘ N" on a Mac. */
export function shortcut(keys: Keys): string {
  return keyNames(keys).join(" ");
}
