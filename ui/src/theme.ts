/** Puts the chosen theme on the page. */
import type { Theme } from "./bindings/Theme";

const DARK = "(prefers-color-scheme: dark)";

export function showTheme(theme: Theme) {
  const dark = theme === "system" ? matchMedia(DARK).matches : theme === "dark";
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
}

/** Calls back when the system changes between light and dark; returns how to stop listening. */
export function onSystemTheme(changed: () => void): () => void {
  const query = matchMedia(DARK);
  query.addEventListener("change", changed);
  return () => query.removeEventListener("change", changed);
}
