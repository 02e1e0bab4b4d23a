/** What the window shows besides the messages: which trace, which token of it, which panels. */
import { SvelteMap } from "svelte/reactivity";
import type { Message } from "../bindings/Message";
import type { Place } from "../trace/round";
import { Collapsed } from "./collapsed.svelte";

export type ReplyView = "tokens" | "text";

const REMEMBERED = "foretoken.reply-view";
const WRAPS = "foretoken.wraps-code";
const SHOW_DRAFTS = "foretoken.show-drafts";
const KEY_DISMISSED = "foretoken.key-dismissed";

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
  /** How replies are shown, but for those in {@link shownAs}. */
  replyView = $state<ReplyView>(localStorage.getItem(REMEMBERED) === "text" ? "text" : "tokens");
  /** Replies with a view of their own, by the id of their first part. */
  readonly shownAs = new SvelteMap<number, ReplyView>();
  /** Whether wrong and unchecked drafts stand in the text instead of being folded into marks. */
  showDrafts = $state(localStorage.getItem(SHOW_DRAFTS) === "true");
  /** Whether the line that explains the marks above a reply was dismissed. */
  keyDismissed = $state(localStorage.getItem(KEY_DISMISSED) === "true");

  /** Whether long lines of code are wrapped, in all replies. */
  wrapsCode = $state(localStorage.getItem(WRAPS) === "true");

  /** Whether something lies over the window that has the keyboard. */
  get dialogOpen(): boolean {
    return this.paletteOpen || this.shortcutsOpen || this.settingsOpen || this.libraryOpen;
  }

  /** How a reply is shown; `first` is the id of its first part. */
  viewOf(first: number): ReplyView {
    return this.shownAs.get(first) ?? this.replyView;
  }

  /** Shows all replies, later ones too, as their text or as their tokens. */
  showAllAs(view: ReplyView) {
    this.shownAs.clear();
    this.replyView = view;
    localStorage.setItem(REMEMBERED, view);
  }

  /** Shows one reply as its tokens, or as its text again; `first` is the id of its first part. */
  toggleTokens(first: number) {
    this.shownAs.set(first, this.viewOf(first) === "tokens" ? "text" : "tokens");
  }

  unfoldDrafts(unfolded: boolean) {
    this.showDrafts = unfolded;
    localStorage.setItem(SHOW_DRAFTS, String(unfolded));
  }

  dismissKey() {
    this.keyDismissed = true;
    localStorage.setItem(KEY_DISMISSED, "true");
  }

  wrapCode(wraps: boolean) {
    this.wrapsCode = wraps;
    localStorage.setItem(WRAPS, String(wraps));
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
