/**
 * Recognises and formats keys on this system. Shortcuts are listed in table.ts and regionKeys.ts.
 */
import { isComposed } from "../composing";
import { t } from "../messages/say";

export interface Keys {
  /** Value of `KeyboardEvent.key`; letters as capitals. */
  key: string;
  /** Whether the command key is held: Ctrl, or Cmd on a Mac. */
  command?: boolean;
  shift?: boolean;
}

/** Whether this is a Mac. */
export const APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

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

/** Name of a key, by its value of `KeyboardEvent.key`. */
export function nameOf(key: string): string {
  const named = Object.entries(NAMED).find(([known]) => known === key);
  return named ? t(named[1]) : (ARROWS[key] ?? key);
}

/** Whether an event matches one of these keys. */
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

/** Signs of shortcuts by key code, since other alphabets have letters on these keys. */
const SIGNS: Readonly<Record<string, string>> = { Comma: ",", Slash: "/" };

/** The key at the same place of a Latin keyboard, for keyboards of other alphabets. */
function latinKey({ key, code }: KeyboardEvent): string {
  const isOther = /^(?!\p{Script=Latin})\p{L}$/u.test(key);
  if (!isOther) return key;
  return /^Key([A-Z])$/.exec(code)?.[1] ?? SIGNS[code] ?? key;
}

/** Whether a key is a sign, whose place and need for Shift differ by country. */
function isSign(key: string): boolean {
  return key.length === 1 && !/[\p{L} ]/u.test(key);
}

/** Names of keys pressed together, in the system's order. */
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
