/** Texte der Shell: Fehler nach ihren Codes und Begriffe. */
import type { shell as english } from "../en/shell";

export const shell = {
  "error.busy": "Gerade beschäftigt: {detail}",
  "error.no_target": "Kein Modell ist geladen: {detail}",
  "error.empty_prompt": "Die Nachricht ist leer: {detail}",
  "error.prompt_too_long": "Die Unterhaltung ist zu lang für den Kontext: {detail}",
  "error.message_too_long": "Die Nachricht ist zu lang für den Kontext: {detail}",
  "error.chatSize": "Diese Unterhaltung passt nicht mehr: {tokens} von {context} Token.",
  "error.messageSize":
    "Diese Nachricht ist zu lang: {tokens} von {context} Token. Kürze sie oder hänge weniger an.",
  "error.bad_model": "Das Modell lässt sich nicht verwenden: {detail}",
  "error.needs_token": "Dafür wird ein Zugriffstoken gebraucht: {detail}",
  "error.bad_setting": "Diese Einstellung geht nicht: {detail}",
  "error.bad_file": "Diese Datei lässt sich nicht importieren: {detail}",
  "error.bad_attachment": "Das lässt sich nicht anhängen: {detail}",
  "error.cancelled": "Abgebrochen: {detail}",
  "error.not_found": "Nicht gefunden: {detail}",
  "error.offline": "Keine Verbindung zu Hugging Face. Prüf deine Internetverbindung.",
  "error.remote": "Der entfernte Server: {detail}",
  "error.internal": "Fehlgeschlagen: {detail}",
  "error.engine": "Modell oder Gerät hat ein Problem: {detail}",
  "error.reply": "Die Antwort ist fehlgeschlagen: {detail}",
  "error.unstored": "Noch nicht gespeichert: {detail}",
  "error.notice": "Hinweis zum Start: {detail}",
  "shell.automatic": "Automatisch",
  "shell.threads": "{count, plural, one {# Thread} other {# Threads}}",
  "shell.software": "Software",
  "shell.sameBits": "bitgleich mit der CPU",
  "shell.ownRounding": "rundet auf ihre eigene Art",
  "shell.oneTile": "eine Kachel für alle Zeilen",
  "shell.gpuFaster":
    "Die GPU ({gpu}) braucht {there} ms für ein Token, die CPU {here} ms: Die GPU rechnet.",
  "shell.cpuFaster":
    "Die GPU ({gpu}) braucht {there} ms für ein Token, die CPU {here} ms: Die CPU rechnet.",
  "shell.draftGpuFaster":
    "Beim Raten braucht die GPU ({gpu}) {there} ms für ein Token, die CPU {here} ms: Die GPU rechnet.",
  "shell.draftCpuFaster":
    "Beim Raten braucht die GPU ({gpu}) {there} ms für ein Token, die CPU {here} ms: Die CPU rechnet.",
  "shell.gpuGone": "Die gewählte GPU ist nicht da: {gpu}.",
  "shell.gpuGoneAutomatic":
    "Die gewählte GPU ist nicht da: {gpu}. Das Gerät wird automatisch gewählt.",
} as const satisfies Record<keyof typeof english, string>;
