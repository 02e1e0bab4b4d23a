/** Fehler nach ihren Codes; die Einzelheiten bleiben englisch. */
import type { errors as english } from "../en/errors";

export const errors = {
  "error.busy": "Gerade beschäftigt: {detail}",
  "error.no_target": "Es ist kein Modell geladen: {detail}",
  "error.empty_prompt": "Die Nachricht ist leer: {detail}",
  "error.prompt_too_long": "Die Unterhaltung ist zu lang für den Kontext: {detail}",
  "error.message_too_long": "Die Nachricht ist zu lang für den Kontext: {detail}",
  "error.chatSize": "Diese Unterhaltung passt nicht mehr: {tokens} von {context} Token.",
  "error.messageSize":
    "Diese Nachricht ist zu lang: {tokens} von {context} Token. Kürze sie oder hänge weniger an.",
  "error.bad_model": "Das Modell lässt sich nicht verwenden: {detail}",
  "error.needs_token": "Dafür wird ein Zugriffstoken gebraucht: {detail}",
  "error.bad_setting": "Diese Einstellung ist nicht möglich: {detail}",
  "error.bad_name": "Ein Ordner braucht einen Namen, den kein anderer Ordner hat.",
  "error.bad_file": "Diese Datei lässt sich nicht importieren: {detail}",
  "error.bad_attachment": "Das lässt sich nicht anhängen: {detail}",
  "error.cancelled": "Abgebrochen: {detail}",
  "error.not_found": "Nicht gefunden: {detail}",
  "error.offline": "Keine Verbindung zu Hugging Face. Prüfe deine Internetverbindung.",
  "error.remote": "Der entfernte Server meldet: {detail}",
  "error.internal": "Fehlgeschlagen: {detail}",
  "error.reply": "Die Antwort ist fehlgeschlagen: {detail}",
  "error.unstored": "Noch nicht gespeichert: {detail}",
  "error.notice": "Hinweis zum Start: {detail}",
  "engine.shorter_context":
    "Der GPU-Speicher reichte nicht aus, deshalb hat das Zielmodell jetzt einen Kontext von höchstens {tokens} Token. Wähle für längere Texte die CPU in den Einstellungen.",
  "engine.failed":
    "Bei diesem Modell ist ein Fehler in der Engine aufgetreten. Das Protokoll nennt den Grund. Wähle ein anderes Modell, oder ändere eine Einstellung, um dasselbe noch einmal zu laden.",
  "engine.reloaded":
    "Wegen eines Fehlers in der Engine wurde das Modell neu geladen. Das Protokoll nennt den Grund.",
} as const satisfies Record<keyof typeof english, string>;
