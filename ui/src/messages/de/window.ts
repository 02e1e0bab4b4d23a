/** Das Fenster: Hinweise und gezogene Dateien. */
import type { window as english } from "../en/window";

export const window = {
  "window.replyCopied": "Antwort kopiert.",
  "window.replyNotCopied": "Die Antwort konnte nicht kopiert werden.",
  "drop.add":
    "{count, plural, one {Loslassen, um ein Modell hinzuzufügen} other {Loslassen, um # Modelle hinzuzufügen}}",
  "drop.attach":
    "{count, plural, one {Loslassen, um eine Datei anzuhängen} other {Loslassen, um # Dateien anzuhängen}}",
  "drop.attachWhat": "Text, Code, Bilder, PDF- oder Office-Dateien",
  "drop.trace":
    "{count, plural, one {Loslassen, um einen Trace zu öffnen} other {Loslassen, um # Traces zu öffnen}}",
  "drop.traceWhat": "Du kannst ihn ansehen und abspielen. Er bleibt, wo er ist.",
  "drop.conversations":
    "{count, plural, one {Loslassen, um Unterhaltungen zu importieren} other {Loslassen, um Unterhaltungen aus # Dateien zu importieren}}",
  "drop.conversationsWhat": "Sie kommen zu denen hinzu, die hier sind. Nichts wird ersetzt.",
  "dialog.model": "Modell wählen",
  "dialog.models": "GGUF-Modelle",
  "dialog.modelFolder": "Ordner mit einem Modell wählen",
  "dialog.conversations": "Unterhaltungen zum Importieren wählen",
  "dialog.allFiles": "Alle Dateien",
  "drop.what":
    "Eine .gguf-Datei oder ein Ordner mit safetensors-Dateien. Sie bleiben, wo sie sind.",
  "window.downloaded": "Download fertig",
  "window.downloadFailed": "Download fehlgeschlagen",
  "window.replyWritten":
    "Gerade wird eine Antwort geschrieben: Stopp sie oder warte, bis sie fertig ist.",
  "window.replyChecked":
    "Gerade wird eine Antwort geprüft: Stopp die Prüfung oder warte, bis sie fertig ist.",
  "window.arenaRuns": "Die Arena läuft: Stopp sie oder warte, bis sie fertig ist.",
  "window.noReplay": "Es gibt nichts abzuspielen: Von dieser Antwort ist kein Trace gespeichert.",
  "window.exported": "Gespeichert: {path}",
  "window.imported":
    "{count, plural, one {# Unterhaltung importiert} other {# Unterhaltungen importiert}}",
  "window.known": "{count, plural, one {# war schon da} other {# waren schon da}}",
  "window.allKnown":
    "{count, plural, one {Nichts importiert: Die Unterhaltung darin ist schon da.} other {Nichts importiert: Alle # Unterhaltungen sind schon da.}}",
  "window.instructed":
    "{count, plural, one {# bringt eigene Anweisungen für das Modell mit} other {# bringen eigene Anweisungen für das Modell mit}}",
  "window.conversationsLost":
    "{count, plural, one {# Unterhaltung war nicht lesbar} other {# Unterhaltungen waren nicht lesbar}}",
  "window.messagesLost":
    "{count, plural, one {# Nachricht war nicht lesbar} other {# Nachrichten waren nicht lesbar}}",
  "window.notImported": "„{file}“ wurde nicht importiert: {reason}",
  "window.notRead": "Die Datei konnte nicht gelesen werden ({detail}). Ist sie noch da?",
  "window.replyStopped": "Antwort gestoppt.",
  "window.replyFinished": "Antwort fertig.",
  "window.phase.loading": "lädt",
  "window.phase.ready": "bereit",
  "window.phase.failed": "fehlgeschlagen",
} as const satisfies Record<keyof typeof english, string>;
