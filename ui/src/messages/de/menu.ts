/** Kontextmenüs. */
import type { menu as english } from "../en/menu";

export const menu = {
  "menu.label": "Kontextmenü",
  "menu.copySelection": "Auswahl kopieren",
  "menu.copy": "Kopieren",
  "menu.copy-token": "Token kopieren",
  "menu.show-in-heatmap": "In der Heatmap zeigen",
  "menu.answer": "Beantworten",
  "menu.edit": "Bearbeiten",
  "menu.see-from": "Alles darüber vergessen",
  "menu.branch": "Neuer Chat ab hier",
  "menu.delete": "Löschen",
  "menu.rename": "Umbenennen",
  "menu.pin": "Anheften",
  "menu.unpin": "Lösen",
  "menu.open-beside": "Daneben öffnen",
  "menu.move": "In Ordner verschieben …",
  "menu.noFolder": "Kein Ordner",
  "menu.newFolder": "Neuer Ordner …",
  "menu.new-chat-here": "Neuer Chat in diesem Ordner",
  "menu.delete-folder": "Ordner löschen",
  "menu.duplicate": "Duplizieren",
  "menu.export-markdown": "Als Markdown exportieren",
  "menu.export-json": "Als JSON exportieren",
  "menu.print": "Drucken …",
} as const satisfies Record<keyof typeof english, string>;
