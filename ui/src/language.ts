/**
 * Replaces the invalid language of the locale "C", which WebKit reports and Intl rejects. Imported
 * first, since libraries read the language when they are loaded.
 */
try {
  new Intl.Locale(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}

export {};
