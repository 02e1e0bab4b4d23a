/** Angehängte Dateien und die Belegung des Kontexts. */
import type { attachments as english } from "../en/attachments";

export const attachments = {
  "attach.attach": "Dateien anhängen",
  "attach.files": "Angehängte Dateien",
  "attach.show": "Inhalt zeigen",
  "attach.hide": "Inhalt ausblenden",
  "attach.remove": "{name} entfernen",
  "attach.removeTitle": "Entfernen",
  "attach.more": "{count, plural, one {# weitere Zeile zeigen} other {# weitere Zeilen zeigen}}",
  "attach.moreText": "Mehr zeigen",
  "attach.reading": "wird gelesen …",
  "attach.counting": "Token werden gezählt …",
  "attach.tokens": "{count, plural, one {# Token} other {# Token}}",
  "attach.aboutTokens": "{count, plural, one {etwa # Token} other {etwa # Token}}",
  "attach.share": "{share} des Kontexts",
  "attach.seconds": "etwa {time} s zum Lesen",
  "attach.minutes": "etwa {time} min zum Lesen",
  "attach.searched": "wird für jede Frage durchsucht",
  "attach.page": "Seite {page}",
  "attach.excerpts": "{count, plural, one {# Auszug} other {# Auszüge}} aus den Dateien",
  "attach.excerptsTitle":
    "Stellen langer Dateien, die zu dieser Frage passen. Das Modell liest sie mit ihr.",
  "attach.whole": "Im Dokument zeigen",
  "attach.sources": "Quellen",
  "attach.encoding": "Kodierung",
  "attach.script.western": "Westeuropäisch",
  "attach.script.central": "Mitteleuropäisch",
  "attach.script.cyrillic": "Kyrillisch",
  "attach.script.greek": "Griechisch",
  "attach.script.turkish": "Türkisch",
  "attach.script.hebrew": "Hebräisch",
  "attach.script.arabic": "Arabisch",
  "attach.script.baltic": "Baltisch",
  "attach.script.chinese": "Chinesisch",
  "attach.script.japanese": "Japanisch",
  "attach.script.korean": "Koreanisch",
  "attach.pasted": "Eingefügter Text.txt",
  "attach.pastedPicture": "Eingefügtes Bild.png",
  "attach.pastedNote": "Der lange Text wurde als Datei angehängt.",
  "attach.pasteHere": "In die Nachricht setzen",
  "attach.empty": "In {name} steht kein Text.",
  "attach.image":
    "Diese Art von Bild kann nicht gelesen werden: {name}. PNG, JPEG, WebP, GIF und BMP lassen sich anhängen.",
  "attach.pictureTooLarge": "{name} ist zu groß: Höchstens 20 MB lassen sich anhängen.",
  "attach.pastedImage":
    "Dieses Bild lässt sich nicht einfügen. Speichere es und hänge die Datei an.",
  "attach.unseen":
    "{name} kann keine Bilder sehen. Wähle ein Modell mit einer Vision-Datei (mmproj).",
  "attach.binary":
    "{name} ist kein Text. Text, Code, CSV-, JSON-, PDF-, Word-, PowerPoint-, Excel-, EPUB- und HTML-Dateien und OpenDocument-Tabellen lassen sich anhängen.",
  "attach.oldOffice":
    "{name} hat das Format alter Office-Versionen. Speichere die Datei als .docx, .pptx oder .xlsx und häng die an.",
  "attach.documentTooLong":
    "{name} hat mehr Text, Zeilen oder Zellen, als sich anhängen lassen. Häng einen Teil davon an.",
  "attach.tooLarge":
    "{name} ist zu groß: {size} MB, und höchstens {most} MB lassen sich anhängen. Häng einen Teil davon an.",
  "attach.tooMany":
    "Höchstens {count, plural, one {# Datei lässt} other {# Dateien lassen}} sich an eine Nachricht hängen: Die übrigen wurden weggelassen.",
  "attach.again": "{name} ist schon angehängt.",
  "attach.unread": "{name} konnte nicht gelesen werden ({detail}). Ist die Datei noch da?",
  "attach.scanned":
    "In {name} steht kein Text: Die Seiten sind Bilder, und Text in Bildern wird hier nicht erkannt.",
  "attach.encrypted":
    "{name} ist mit einem Passwort geschützt. Speichere eine Kopie ohne Passwort und häng die an.",
  "attach.damaged": "{name} lässt sich nicht lesen: Die Datei ist vielleicht beschädigt.",
  "attach.unpacksTooLarge": "{name} wird entpackt zu groß; die Datei wurde nicht angehängt.",
  "attach.slow": "{name} zu lesen hat zu lange gedauert; die Datei wurde nicht angehängt.",
  "attach.tooLong":
    "Dateien und Unterhaltung passen zusammen nicht mehr: etwa {needed} von {limit} Token.",
  "attach.aloneTooLong": "Die Dateien sind zu lang: etwa {needed} von {limit} Token.",
  "context.system": "System-Prompt",
  "context.attachments": "Dateien",
  "context.history": "Unterhaltung",
  "context.waiting": "Zu senden",
  "context.free": "Platz für die Antwort",
  "context.ready": "bereit",
  "context.toRead": "{time} zu lesen",
  "context.full": "Der Kontext ist fast voll.",
  "context.drop": "Älteste Nachrichten weglassen",
  "context.dropAndContinue": "Älteste weglassen und fortfahren",
  "context.startHere": "Alles darüber vergessen",
  "context.dropEarlier": "Frühere Nachrichten vergessen",
  "context.larger": "Modell mit mehr Kontext",
} as const satisfies Record<keyof typeof english, string>;
