/** Modelle und Drafts in Listen: ihre Angaben, und was für und gegen sie spricht. */
import type { models as english } from "../en/models";

export const models = {
  "model.server": "auf dem Server {server}",
  "model.noArchitecture": "keine Architektur",
  "model.context": "Kontext {tokens} Token",
  "draft.none": "Keines",
  "draft.noneDetail": "ohne Drafts, ein Token nach dem anderen",
  "draft.ngram": "N-Gramm",
  "draft.ngramDetail": "wiederholt, was in der Unterhaltung schon stand",
  "draft.mtpDetail": "der Draft-Head in der Datei dieses Modells",
  "merit.last_used": "zuletzt verwendet",
  "merit.made_for_target": "für dieses Modell trainiert",
  "merit.known_pair": "bekanntes Paar",
  "merit.tried": "getestet: {speedup}x",
  "merit.same_vocabulary": "gleiches Vokabular",
  "merit.needs_no_model": "braucht kein Modell",
  "merit.may_not_fit": "passt vielleicht nicht in den Speicher",
  "merit.no_faster": "getestet: nicht schneller",
} as const satisfies Record<keyof typeof english, string>;
