/** What the window shows besides the messages: which trace, which token of it, which panels. */
import { SvelteMap } from "svelte/reactivity";
import type { Message } from "../bindings/Message";
import type { Place } from "../trace/round";
import { Collapsed } from "./collapsed.svelte";

export type ReplyView = "tokens" | "text";

const REMEMBERED = "foretoken.reply-view";
const WRAPS = "foretoken.wraps-code";

export class View {
  readonly collapsed = new Collapsed();
  paletteOpen = $state(false);
  shortcutsOpen = $state(false);
  settingsOpen = $state(false);
  settingsSection = $state("speculation");
  libraryOpen = $state(false);
  librarySection = $state("installed");
  /** The conversation in the sidebar whose title is being changed. */
  renaming = $state<number | null>(null);
  /** The question in the conversation that is being changed. */
  editing = $state<number | null>(null);
  /** What was written of changed questions that are out of view, by their ids. */
  readonly drafts = new Map<number, Pick<Message, "text" | "attachments">>();
  /** The arena in the conversation's place. */
  arenaOpen = $state(false);
  /** The reply whose trace the inspector shows; null follows the newest. */
  inspected = $state<number | null>(null);
  hovered = $state.raw<Place | null>(null);
  selected = $state.raw<Place | null>(null);
  /** How replies that come into view are shown; changed by the last toggle. */
  replyView = $state<ReplyView>(localStorage.getItem(REMEMBERED) === "text" ? "text" : "tokens");
  /** How those on the page are shown, each for itself. */
  readonly shownAs = new SvelteMap<number, ReplyView>();

  /** Whether long lines of code are wrapped, in all replies. */
  wrapsCode = $state(localStorage.getItem(WRAPS) === "true");

  /** Whether something lies over the window that has the keyboard. */
  get dialogOpen(): boolean {
    return this.paletteOpen || this.shortcutsOpen || this.settingsOpen || this.libraryOpen;
  }

  remember(view: ReplyView) {
    this.replyView = view;
    localStorage.setItem(REMEMBERED, view);
  }

  wrapCode(wraps: boolean) {
    this.wrapsCode = wraps;
    localStorage.setItem(WRAPS, String(wraps));
  }

  /** Shows a reply as its tokens, or as its text again. */
  toggleTokens(reply: number) {
    const next = this.shownAs.get(reply) === "tokens" ? "text" : "tokens";
    this.shownAs.set(reply, next);
    this.remember(next);
    this.inspect(reply);
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
