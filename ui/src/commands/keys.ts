/** How keys are recognised and written on this system. Which there are: table.ts and placeKeys.ts. */

export interface Keys {
  /** As `KeyboardEvent.key` names it; letters as capitals. */
  key: string;
  /** With the system's command key: Ctrl, or Cmd on a Mac. */
  command?: boolean;
  shift?: boolean;
}

const APPLE = /Mac|iPhone|iPad/.test(navigator.userAgent);

const NAMES: Readonly<Record<string, string>> = {
  " ": "Space",
  Escape: "Esc",
  Delete: "Del",
  PageUp: "Page up",
  PageDown: "Page down",
  ArrowLeft: "←",
  ArrowRight: "→",
  ArrowUp: "↑",
  ArrowDown: "↓",
};

/** Whether one of these is what was pressed. */
export function pressed(event: KeyboardEvent, any: readonly Keys[], apple = APPLE): boolean {
  return any.some((keys) => isPressed(event, keys, apple));
}

function isPressed(event: KeyboardEvent, keys: Keys, apple: boolean): boolean {
  const { key, command = false, shift = false } = keys;
  if (event.altKey || event.key.toUpperCase() !== key.toUpperCase()) return false;
  const [own, other] = apple ? [event.metaKey, event.ctrlKey] : [event.ctrlKey, event.metaKey];
  if (own !== command || other) return false;
  return isSign(key) || event.shiftKey === shift;
}

/** Where a sign is on a keyboard, and whether it needs Shift, differs by country. */
function isSign(key: string): boolean {
  return key.length === 1 && !/[\p{L} ]/u.test(key);
}

/** The names of keys that are pressed together, in the system's order. */
export function keyNames({ key, command, shift }: Keys, apple = APPLE): string[] {
  const name = NAMES[key] ?? key;
  const withShift = shift ? [apple ? "⇧" : "Shift"] : [];
  const withCommand = command ? [apple ? "⌘" : "Ctrl"] : [];
  return apple ? [...withShift, ...withCommand, name] : [...withCommand, ...withShift, name];
}

/** "Ctrl N", or "⌘ N" on a Mac. */
export function shortcut(keys: Keys): string {
  return keyNames(keys).join(" ");
}
