/** Applies a theme to the page. */
import type { Theme } from "./bindings/Theme";

const DARK = "(prefers-color-scheme: dark)";

export function showTheme(theme: Theme) {
  const dark = theme === "system" ? matchMedia(DARK).matches : theme === "dark";
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

/** Calls `changed` when the system's theme changes; returns a function that stops it. */
export function onSystemTheme(changed: () => void): () => void {
  const query = matchMedia(DARK);
  query.addEventListener("change", changed);
  return () => query.removeEventListener("change", changed);
}
