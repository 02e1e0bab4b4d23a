/** Das Symbol im Infobereich, und das Fenster für eine kurze Frage mit seinem Tastenkürzel. */
import type { desktop as english } from "../en/desktop";

export const desktop = {
  "tray.open": "Foretoken öffnen",
  "tray.running": "Lokaler Server: {url}",
  "tray.stopped": "Lokaler Server ist aus",
  "tray.failed": "Lokaler Server konnte nicht starten",
  "tray.start": "Server starten",
  "tray.stop": "Server stoppen",
  "tray.quick": "Kurze Frage …",
  "tray.quit": "Foretoken beenden",
  "quick.next": "Weiterfragen …",
  "quick.hide": "Esc blendet dieses Fenster aus",
  "quick.continue": "In Foretoken öffnen",
  "shortcut.none": "Keine",
  "shortcut.press": "Tasten drücken …",
  "shortcut.clear": "Entfernen",
  "shortcut.needsModifier":
    "Halte dazu Strg, Alt oder die Systemtaste: Andere Programme brauchen die Taste allein.",
  "shortcut.taken":
    "Das System oder ein anderes Programm verwendet diese Kombination. Wähle eine andere.",
  "shortcut.wayland":
    "Unter Wayland kann kein Programm auf Tasten hören. Lege in den Tastatureinstellungen der Arbeitsumgebung ein Kürzel an, das {command} ausführt.",
} as const satisfies Record<keyof typeof english, string>;
