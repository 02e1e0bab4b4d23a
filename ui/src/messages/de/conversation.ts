/** Die Unterhaltung: Kopf, Begrüßung, Eingabefeld. */
import type { conversation as english } from "../en/conversation";

export const conversation = {
  "conversation.compare": "Draft-Modelle vergleichen",
  "conversation.getMore": "Weitere Modelle holen",
  "conversation.loading": "Lädt …",
  "conversation.choose": "Modell wählen",
  "conversation.showInspector": "Inspektor einblenden ({keys})",
  "conversation.showInspectorLabel": "Inspektor einblenden",
  "conversation.chooseModel": "Modell wählen",
  "conversation.leaveOutTitle": "Das Modell sieht sie nicht mehr; hier bleiben sie stehen",
  "conversation.leaveOut": "Älteste Nachrichten weglassen",
  "conversation.ask": "Frag irgendetwas",
  "conversation.message": "Deine Nachricht. Enter sendet, Umschalt+Enter beginnt eine neue Zeile.",
  "conversation.contextUsed": "Belegter Kontext",
  "conversation.gauge": "{used} von {limit} Token",
  "conversation.elsewhere": "Antwortet in einer anderen Unterhaltung",
  "conversation.send": "Senden",
  "conversation.you": "Du",
  "conversation.toEnd": "Zum Ende",
  "welcome.library": "Bibliothek",
  "welcome.noModel": "Kein Modell ist geladen",
  "welcome.another": "Anderes Modell wählen",
  "welcome.moment": "Einen Moment",
  "welcome.loading": "Das Modell wird geladen",
  "welcome.motto": "Ein kleines Modell rät voraus, ein größeres entscheidet",
  "welcome.starter":
    "Der Starter ist ein winziges Modell zum Ausprobieren. Größere Modelle findest du in der {library}.",
  "welcome.smollm2":
    "SmolLM2 ist klein und schnell: Es schreibt gut, weiß aber wenig, und am besten kann es Englisch. Größere Modelle findest du in der {library}.",
  "welcome.ready": "{model} ist bereit. Alles bleibt auf diesem Computer.",
  "welcome.theModel": "Das Modell",
  "conversation.unseen": "Was darüber steht, sieht das Modell nicht mehr.",
  "conversation.seeAllTitle": "Soweit es in den Kontext des Modells passt",
  "conversation.seeAll": "Wieder zeigen",
  "conversation.importedTrace": "Importierter Trace",
  "conversation.imported": "Importiert: {name}",
  "conversation.importedNote":
    "Du kannst ihn ansehen und abspielen. Er wird nicht in Foretoken gespeichert; die Datei bleibt, wo sie ist.",
  "welcome.story": "Erzähl mir eine Geschichte von einem Fuchs, der eine Laterne findet.",
  "welcome.sky": "Warum ist der Himmel blau?",
  "welcome.palindrome": "Schreib eine Python-Funktion, die prüft, ob ein Wort ein Palindrom ist.",
} as const satisfies Record<keyof typeof english, string>;
