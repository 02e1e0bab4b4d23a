/** What the window shows besides the messages: which trace, which token of it, which panels. */
import { SvelteMap } from "svelte/reactivity";
import type { ReplyView } from "../bindings/ReplyView";
import type { ViewState } from "../bindings/ViewState";
import { viewDefaults } from "../bindings/defaults";
import type { Backend } from "../backend/backend";
import type { Place } from "../trace/round";
import { forgetLocalView, localView } from "./localView";

const SAVE_AFTER_MS = 300;

export class View {
  /** What is kept from one start to the next. */
  state = $state.raw<ViewState>(viewDefaults);
  paletteOpen = $state(false);
  /** Ids of what was chosen last in the palette, the newest first. */
  recent: readonly string[] = [];
  shortcutsOpen = $state(false);
  settingsOpen = $state(false);
  settingsSection = $state("appearance");
  libraryOpen = $state(false);
  librarySection = $state("installed");
  /** The conversation in the sidebar whose title is being changed. */
  renaming = $state<number | null>(null);
  /** The question in the conversation that is being changed. */
  editing = $state<number | null>(null);
  /** The arena in the conversation's place. */
  arenaOpen = $state(false);
  /** The reply that was asked for in the inspector; null follows what is in view. */
  inspected = $state<number | null>(null);
  /** The reply that the conversation was scrolled to; null at its end. */
  inView = $state<number | null>(null);
  hovered = $state.raw<Place | null>(null);
  selected = $state.raw<Place | null>(null);
  /** What is read: a reply, by the id of its first part, and where its block at the upper edge begins. */
  reading: { first: number; from: number } | null = null;
  /** Replies with a view of their own, by the id of their first part. */
  readonly shownAs = new SvelteMap<number, ReplyView>();

  readonly #backend: Pick<Backend, "viewState" | "saveViewState"> | null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Without a backend nothing is kept. */
  constructor(backend: Pick<Backend, "viewState" | "saveViewState"> | null = null) {
    this.#backend = backend;
  }

  /** Reads what was kept; where nothing was, what earlier versions left in the webview's own storage. */
  async load() {
    const stored = await this.#backend?.viewState().catch(() => viewDefaults);
    if (stored) {
      this.state = stored;
      return;
    }
    this.state = { ...viewDefaults, ...localView() };
    if (await this.#save()) forgetLocalView();
  }

  /** How replies are shown, but for those in {@link shownAs}. */
  get replyView(): ReplyView {
    return this.state.reply_view;
  }

  /** Whether wrong and unchecked drafts stand in the text instead of being folded into marks. */
  get showDrafts(): boolean {
    return this.state.show_drafts;
  }

  /** Whether the line that explains the marks above a reply was dismissed. */
  get keyDismissed(): boolean {
    return this.state.key_dismissed;
  }

  /** Whether long lines of code are wrapped, in all replies. */
  get wrapsCode(): boolean {
    return this.state.wraps_code;
  }

  /** Whether the heatmap is docked below the conversation. */
  get heatmapDocked(): boolean {
    return this.state.heatmap_docked;
  }

  /** Sections of the inspector; all are folded at first. */
  readonly folds = {
    isOpen: (section: string) => this.state.unfolded.includes(section),
    toggle: (section: string) => {
      const others = this.state.unfolded.filter((name) => name !== section);
      this.#keep({ unfolded: this.folds.isOpen(section) ? others : [...others, section] });
    },
  };

  /** Whether something lies over the window that has the keyboard. */
  get dialogOpen(): boolean {
    return this.paletteOpen || this.shortcutsOpen || this.settingsOpen || this.libraryOpen;
  }

  /** How a reply is shown; `first` is the id of its first part. */
  viewOf(first: number): ReplyView {
    return this.shownAs.get(first) ?? this.replyView;
  }

  /** Shows all replies, later ones too, as their text or as their tokens; none of these is selected. */
  showAllAs(view: ReplyView) {
    this.shownAs.clear();
    this.selected = null;
    this.#keep({ reply_view: view });
  }

  /** Shows one reply as its tokens, or as its text again; `first` is the id of its first part. */
  toggleTokens(first: number) {
    this.shownAs.set(first, this.viewOf(first) === "tokens" ? "text" : "tokens");
  }

  used(entry: string) {
    this.recent = [entry, ...this.recent.filter((id) => id !== entry)].slice(0, 3);
  }

  unfoldDrafts(unfolded: boolean) {
    this.#keep({ show_drafts: unfolded });
  }

  dismissKey() {
    this.#keep({ key_dismissed: true });
  }

  showKey() {
    this.#keep({ key_dismissed: false });
  }

  wrapCode(wraps: boolean) {
    this.#keep({ wraps_code: wraps });
  }

  dockHeatmap(docked: boolean) {
    this.#keep({ heatmap_docked: docked });
  }

  /** Changes it at once; several changes in a row are saved once. */
  #keep(change: Partial<ViewState>) {
    this.state = { ...this.state, ...change };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#save(), SAVE_AFTER_MS);
  }

  /** Whether it was saved. A view that was not saved lasts until the window closes. */
  async #save(): Promise<boolean> {
    if (!this.#backend) return false;
    try {
      await this.#backend.saveViewState(this.state);
      return true;
    } catch {
      return false;
    }
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
