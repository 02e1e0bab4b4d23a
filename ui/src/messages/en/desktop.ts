/** The tray icon, and the window for a quick question with its shortcut. */
export const desktop = {
  "tray.open": "Open Foretoken",
  "tray.running": "Local server: {url}",
  "tray.stopped": "Local server is off",
  "tray.failed": "Local server could not start",
  "tray.start": "Start server",
  "tray.stop": "Stop server",
  "tray.quick": "Quick question…",
  "tray.quit": "Quit Foretoken",
  "quick.next": "Ask a follow-up…",
  "quick.hide": "Esc hides this window",
  "quick.continue": "Open in Foretoken",
  "shortcut.none": "None",
  "shortcut.press": "Press the keys…",
  "shortcut.clear": "Remove",
  "shortcut.needsModifier":
    "Hold Ctrl, Alt or the system key as well: other programs need the key alone.",
  "shortcut.taken": "The system or another program uses this combination. Choose another.",
  "shortcut.wayland":
    "Under Wayland no program can listen for keys. In the desktop’s keyboard settings, add a shortcut that runs {command}.",
} as const;
