/** Puts the chosen theme on the page, and remembers it so that the next start does not flash. */
import type { Theme } from "./bindings/Theme";

const REMEMBERED = "foretoken.theme";
const DARK = "(prefers-color-scheme: dark)";

export function rememberedTheme(): Theme {
  const stored = localStorage.getItem(REMEMBERED);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function showTheme(theme: Theme) {
  const dark = theme === "system" ? matchMedia(DARK).matches : theme === "dark";
  document.documentElement.dataset["theme"] = dark ? "dark" : "light";
  localStorage.setItem(REMEMBERED, theme);
}

/** Calls back when the system changes between light and dark; returns how to stop listening. */
export function onSystemTheme(changed: () => void): () => void {
  const query = matchMedia(DARK);
  query.addEventListener("change", changed);
  return () => query.removeEventListener("change", changed);
}
