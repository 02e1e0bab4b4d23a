/** Updates des Programms. */
import type { updates as english } from "../en/updates";

export const updates = {
  "updates.none":
    "Foretoken {version}. Es gibt noch keinen Update-Server, deshalb kann diese Version nicht nach Updates suchen.",
  "updates.unchecked": "Foretoken {version}",
  "updates.checking": "Suche nach Updates …",
  "updates.up_to_date": "Foretoken {version} ist auf dem neuesten Stand.",
  "updates.found": "Foretoken {version} ist verfügbar. Du hast {current}.",
  "updates.downloading": "Foretoken {version} wird heruntergeladen …",
  "updates.ready": "Foretoken {version} ist heruntergeladen, und die Signatur ist geprüft.",
  "updates.installing": "Foretoken {version} wird installiert …",
  "updates.elsewhere": "Installiere es so, wie du diese Version installiert hast.",
  "updates.notes": "Neu in {version}",
  "updates.available": "Foretoken {version} ist verfügbar",
  "updates.show": "Anzeigen",
  "updates.check": "Jetzt suchen",
  "updates.download": "Herunterladen",
  "updates.install": "Installieren und neu starten",
  "updates.problem.unreachable":
    "Der Update-Server ist nicht erreichbar. Prüfe deine Internetverbindung.",
  "updates.problem.connection_lost": "Die Verbindung zum Update-Server ist abgebrochen.",
  "updates.problem.bad_response": "Die Antwort des Update-Servers ist nicht lesbar.",
  "updates.problem.too_large":
    "Der Update-Server hat zu viele Daten gesendet, deshalb wurde die Übertragung beendet.",
  "updates.problem.no_package": "Diese Version gibt es nicht als Paket für dein System.",
  "updates.problem.bad_signature":
    "Der Download wurde verworfen: Ihm fehlt die Signatur von Foretoken für diese Version.",
  "updates.problem.not_installed":
    "Das Update ließ sich nicht installieren, diese Version bleibt. Der Grund steht im Protokoll.",
} as const satisfies Record<keyof typeof english, string>;
