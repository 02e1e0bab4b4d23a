/** Fehler und Hinweise zu Trace-Dateien. */
import type { traceFile as english } from "../en/traceFile";

export const traceFile = {
  "traceFile.incomplete": "Die letzte Zeile, {line}, ist unvollständig: Alles davor wird gezeigt.",
  "traceFile.endsEarly": "Die Datei endet vor der Antwort: Alles bis dorthin wird gezeigt.",
  "traceFile.noRounds": "Die Datei hat keine Runden, also gibt es nichts abzuspielen.",
  "traceFile.missing":
    "{count, plural, one {# Runde fehlt, die erste ist Runde {first}.} other {# Runden fehlen, die erste ist Runde {first}.}}",
  "traceFile.otherText":
    "Der Text in der Datei passt nicht zu ihren Runden: Die Runden werden gezeigt.",
  "traceFile.noTimes": "Manche Runden haben keine Endzeit: Sie wird aus ihren Teilen berechnet.",
  "traceFile.unknownLines":
    "{count, plural, one {# Zeile unbekannter Art übergangen.} other {# Zeilen unbekannter Art übergangen.}}",
  "traceFile.more": "Die Datei enthält mehr als einen Trace: Der erste wird gezeigt.",
  "traceFile.newer": "Version {version} erwartet, {found} gefunden: Aktualisiere Foretoken.",
  "traceFile.notJson":
    "Das ist kein Trace: Zeilen mit JSON erwartet, {found} gefunden. Wähl einen exportierten Trace.",
  "traceFile.otherTypes":
    "Das ist kein Trace: Zeilen der Arten trace, round und done erwartet, {found} gefunden. Wähl einen exportierten Trace.",
  "traceFile.noLines": "keine Zeilen",
  "traceFile.others": "{count} anderer Art",
  "traceFile.line":
    "Zeile {line}: {wrong}. Exportiere die Antwort noch einmal, oder berichtige diese Zeile.",
  "traceFile.field":
    "Zeile {line}, Feld {field}: {wrong}. Exportiere die Antwort noch einmal, oder berichtige diese Zeile.",
  "traceFile.empty": "Sie ist leer: Zeilen mit JSON erwartet. Exportiere die Antwort noch einmal.",
  "traceFile.tooLarge":
    "Sie ist zu groß: höchstens 500 MB erwartet, {found} MB gefunden. Wähl eine kürzere Antwort.",
  "traceFile.binary":
    "Das ist kein Trace: Zeilen mit JSON erwartet, eine Datei gefunden, die kein Text ist. Wähl einen exportierten Trace.",
  "traceFile.longLine":
    "Das ist kein Trace: eine Zeile für jede Runde erwartet, eine von mehr als 16 MB gefunden. Wähl einen exportierten Trace.",
} as const satisfies Record<keyof typeof english, string>;
