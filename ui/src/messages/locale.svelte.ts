/**
 * The language that the page speaks, and the system's where a person chose none. Whatever reads it is
 * written again when it changes. What models and people write is not touched by it.
 */
import type { Language } from "../bindings/Language";

export const LOCALES = ["en", "de"] as const;
export type Locale = (typeof LOCALES)[number];

let shown = $state<Locale>("en");

export function locale(): Locale {
  return shown;
}

/** Speaks it from now on. */
export function showLanguage(language: Language) {
  const locale = localeOf(language);
  shown = locale;
  document.documentElement.lang = locale;
}

/** Calls back when the system's languages change; returns how to stop listening. */
export function onSystemLanguage(changed: () => void): () => void {
  window.addEventListener("languagechange", changed);
  return () => window.removeEventListener("languagechange", changed);
}

/** Of the system's languages, the person's favourite first, the first that there are messages in. */
function localeOf(language: Language): Locale {
  if (language !== "system") return language;
  const [first = "en"] = navigator.languages.flatMap((tag) => known(tag.split("-")[0] ?? "") ?? []);
  return first;
}

function known(code: string): Locale | undefined {
  return LOCALES.find((locale) => locale === code);
}
