/** Das Fenster: Hinweise, und Dateien darüber. */
import type { window as english } from "../en/window";

export const window = {
  "window.replyCopied": "Antwort kopiert.",
  "window.replyNotCopied": "Die Antwort konnte nicht kopiert werden.",
  "drop.add":
    "{count, plural, one {Loslassen, um diese Datei hinzuzufügen} other {Loslassen, um # Dateien hinzuzufügen}}",
  "drop.what":
    "Ein Modell: eine .gguf-Datei oder ein Ordner mit safetensors-Dateien. Unterhaltungen: .json oder .zip. Dateien bleiben, wo sie sind.",
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
  "window.importedMore": "{imported}, {known}.",
  "window.importedOnly": "{imported}.",
  "window.notImported": "„{file}“ wurde nicht importiert: {reason}",
  "window.notRead": "Die Datei konnte nicht gelesen werden ({detail}). Ist sie noch da?",
  "window.openTrace": "Um einen Trace zu öffnen, nimm „Trace importieren“ in der Seitenleiste.",
  "window.replyStopped": "Antwort gestoppt.",
  "window.replyFinished": "Antwort fertig.",
  "window.phase.loading": "lädt",
  "window.phase.ready": "bereit",
  "window.phase.failed": "misslungen",
} as const satisfies Record<keyof typeof english, string>;
