/** The view state of earlier versions in the webview's storage: read once, then removed. */
import type { ViewState } from "../bindings/ViewState";

const PREFIX = "foretoken.";

/** The stored fields that can be read. */
export function localView(): Partial<ViewState> {
  const flag = (name: string) => localStorage.getItem(PREFIX + name) === "true";
  return {
    reply_view: localStorage.getItem(`${PREFIX}reply-view`) === "text" ? "text" : "tokens",
    show_drafts: flag("show-drafts"),
    key_dismissed: flag("key-dismissed"),
    wraps_code: flag("wraps-code"),
  };
}

/** Removes the view state, and the theme and the language stored with it. */
export function forgetLocalView() {
  const names = Object.keys(localStorage).filter((name) => name.startsWith(PREFIX));
  for (const name of names) localStorage.removeItem(name);
}
