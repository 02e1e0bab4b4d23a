/** How keyboard shortcuts are recognised and written on this system. */

const apple = /Mac|iPhone|iPad/.test(navigator.userAgent);

/** Whether the system's command key is down: Ctrl, or Cmd on a Mac. */
export function commandKey(event: KeyboardEvent): boolean {
  return (apple ? event.metaKey : event.ctrlKey) && !event.altKey && !event.shiftKey;
}

/** "Ctrl N", or "⌘ N" on a Mac. */
export function shortcut(key: string): string {
  return `${apple ? "⌘" : "Ctrl"} ${key}`;
}
