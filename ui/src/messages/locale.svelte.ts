/**
 * The language of the page; by default the system's. Reactive: a change updates every text. Texts
 * of models and people stay as they are.
 */
import type { Language } from "../bindings/Language";

export const LOCALES = ["en", "de"] as const;
export type Locale = (typeof LOCALES)[number];

let shown = $state<Locale>("en");

export function locale(): Locale {
  return shown;
}

/** Changes the language of the page. */
export function showLanguage(language: Language) {
  const locale = localeOf(language);
  shown = locale;
  document.documentElement.lang = locale;
}

/** Calls `changed` when the system's languages change; returns a function that stops it. */
export function onSystemLanguage(changed: () => void): () => void {
  window.addEventListener("languagechange", changed);
  return () => window.removeEventListener("languagechange", changed);
}

/** The locale of a setting; for "system", the first of the system's languages with messages. */
function localeOf(language: Language): Locale {
  if (language !== "system") return language;
  const [first = "en"] = navigator.languages.flatMap((tag) => known(tag.split("-")[0] ?? "") ?? []);
  return first;
}

function known(code: string): Locale | undefined {
  return LOCALES.find((locale) => locale === code);
}
