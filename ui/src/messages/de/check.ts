/** Ergebnisse der Prüfung einer Antwort. */
import type { check as english } from "../en/check";

export const check = {
  "check.theTarget": "das Zielmodell",
  "check.temperature0": "Temperatur 0",
  "check.seed": "Seed {seed}",
  "check.identical":
    "{tokens, plural, one {Identisch: Ohne Drafts schreibt {target} dasselbe Token ({how}).} other {Identisch: Ohne Drafts schreibt {target} dieselben # Token ({how}).}}",
  "check.diverge": "Die Texte trennen sich bei Token {number}.",
  "check.bug": "Das ist ein Fehler in Foretoken: Bitte melde ihn.",
  "check.exactTie":
    "Gleichstand: Zwei Token waren gleich wahrscheinlich, und die Rundung entschied. Das ist kein Fehler.",
  "check.nearTie":
    "Fast Gleichstand: Zwei Token waren beinahe gleich wahrscheinlich, und die Rundung entschied. Das ist kein Fehler.",
  "check.otherOrder":
    "Eine andere Version von Foretoken hat diese Antwort geschrieben und anders gerundet, darum können fast gleich wahrscheinliche Token die Plätze tauschen. Erzeuge die Antwort neu, um die Drafts zu prüfen.",
  "check.why":
    "Im schnellsten Sampling-Modus schreibt jeder Lauf einen anderen Text, darum lassen sich die Texte selbst nicht vergleichen.",
  "check.nothingJudged": "Kein geratenes Token wurde geprüft, also gibt es nichts zu vergleichen.",
  "check.same":
    "{judged, plural, one {Bestätigt: ohne Drafts neu berechnet, die eine Wahrscheinlichkeit ist identisch.} other {Bestätigt: ohne Drafts neu berechnet, alle # Wahrscheinlichkeiten sind identisch.}}",
  "check.sameAlmost":
    "{judged, plural, one {Bestätigt: ohne Drafts neu berechnet, die eine Wahrscheinlichkeit stimmt überein (größter Unterschied {difference}).} other {Bestätigt: ohne Drafts neu berechnet, alle # Wahrscheinlichkeiten stimmen überein (größter Unterschied {difference}).}}",
  "check.differ":
    "{different, plural, one {Ohne Drafts neu berechnet: # von {judged} Wahrscheinlichkeiten weicht ab, um {difference}.} other {Ohne Drafts neu berechnet: # von {judged} Wahrscheinlichkeiten weichen ab, um höchstens {difference}.}}",
  "check.running": "Wird ohne Drafts neu erzeugt",
  "check.runningAt": "Wird ohne Drafts neu erzeugt: {done} von {total} Token",
  "check.progress": "Fortschritt der Prüfung",
  "check.dismiss": "Ergebnis ausblenden",
  "check.show": "Token {number} in der Antwort zeigen",
  "check.how":
    "Foretoken hat diese Antwort ohne Drafts neu erzeugt und beide Token für Token verglichen.",
  "check.restored": "Die Prüfung hat sie neu berechnet.",
  "check.thisReply": "Diese Antwort",
  "check.withoutDrafts": "{target} ohne Drafts",
  "check.tokenId": "Token {id}",
  "check.logit": "Logit {value}",
  "check.ended": "war schon zu Ende",
  "check.gap": "Abstand",
} as const satisfies Record<keyof typeof english, string>;
