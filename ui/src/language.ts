/**
 * Where a system has no language (the locale "C"), WebKit gives that name for one, which Intl refuses.
 * Libraries ask for it as they are loaded, so this comes first.
 */
try {
  new Intl.Locale(navigator.language);
} catch {
  Object.defineProperty(navigator, "language", { value: "en", configurable: true });
}

export {};
