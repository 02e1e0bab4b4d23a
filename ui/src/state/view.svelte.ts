/** What the window shows besides the messages: which trace, which token of it, which panels. */
import type { Place } from "../trace/round";
import { Collapsed } from "./collapsed.svelte";

export type ReplyView = "tokens" | "text";

const REMEMBERED = "foretoken.reply-view";

export class View {
  readonly collapsed = new Collapsed();
  settingsOpen = $state(false);
  settingsSection = $state("speculation");
  libraryOpen = $state(false);
  librarySection = $state("installed");
  /** The arena in the conversation's place. */
  arenaOpen = $state(false);
  /** The reply whose trace the inspector shows; null follows the newest. */
  inspected = $state<number | null>(null);
  hovered = $state.raw<Place | null>(null);
  selected = $state.raw<Place | null>(null);
  /** How replies that come into view are shown; changed by the last toggle. */
  replyView = $state<ReplyView>(localStorage.getItem(REMEMBERED) === "text" ? "text" : "tokens");

  remember(view: ReplyView) {
    this.replyView = view;
    localStorage.setItem(REMEMBERED, view);
  }

  openSettings(section = this.settingsSection) {
    this.settingsSection = section;
    this.settingsOpen = true;
  }

  openLibrary(section = this.librarySection) {
    this.librarySection = section;
    this.libraryOpen = true;
  }

  /** Shows a reply's trace in the inspector, with one of its tokens or none. */
  inspect(message: number | null, place: Place | null = null) {
    this.inspected = message;
    this.selected = place;
    this.hovered = null;
  }
}
