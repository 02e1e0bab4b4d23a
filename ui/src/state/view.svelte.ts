/** The view: the selected trace and token, open panels and dialogs, and how replies are shown. */
import { SvelteMap } from "svelte/reactivity";
import type { ReplyView } from "../bindings/ReplyView";
import type { SideBySide } from "../bindings/SideBySide";
import type { ViewState } from "../bindings/ViewState";
import { viewDefaults } from "../bindings/defaults";
import type { Backend } from "../backend/backend";
import type { TokenRef } from "../trace/round";
import { forgetLocalView, localView } from "./localView";

const SAVE_AFTER_MS = 300;

/** Shares of the first of two chats, in percent: by default, and the least of each. */
const HALF = 50;
const LEAST = 25;

export class View {
  /** View state kept over a restart. */
  state = $state.raw<ViewState>(viewDefaults);
  paletteOpen = $state(false);
  /** Ids of the last choices in the palette, the newest first. */
  recent: readonly string[] = [];
  shortcutsOpen = $state(false);
  /** Whether the prompts and resources of tool servers are shown. */
  serverContentsOpen = $state(false);
  settingsOpen = $state(false);
  settingsSection = $state("appearance");
  libraryOpen = $state(false);
  librarySection = $state("installed");
  /** The conversation being renamed in the sidebar. */
  renaming = $state<number | null>(null);
  /** The conversation being moved to a folder in the sidebar. */
  moving = $state<number | null>(null);
  /** The question being edited in the conversation. */
  editing = $state<number | null>(null);
  /** Whether the arena is shown instead of the conversation. */
  arenaOpen = $state(false);
  /** The reply selected for the inspector; null follows the one in view. */
  inspected = $state<number | null>(null);
  hovered = $state.raw<TokenRef | null>(null);
  selected = $state.raw<TokenRef | null>(null);
  /**
   * Reading position: the id of a reply's first part, and the offset of the block at the upper
   * edge.
   */
  reading: { first: number; from: number } | null = null;
  /** Views of single replies, by the id of their first part. */
  readonly shownAs = new SvelteMap<number, ReplyView>();

  readonly #backend: Pick<Backend, "viewState" | "saveViewState"> | null;
  #timer: ReturnType<typeof setTimeout> | undefined;

  /** Without a backend, nothing is stored. */
  constructor(backend: Pick<Backend, "viewState" | "saveViewState"> | null = null) {
    this.#backend = backend;
  }

  /** Loads the view state; migrates the one of earlier versions from the webview's storage. */
  async load() {
    const stored = await this.#backend?.viewState().catch(() => viewDefaults);
    if (stored) {
      this.state = stored;
      return;
    }
    this.state = { ...viewDefaults, ...localView() };
    if (await this.#save()) forgetLocalView();
  }

  /** The view of replies that are not in {@link shownAs}. */
  get replyView(): ReplyView {
    return this.state.reply_view;
  }

  /** Whether rejected and unverified drafts are shown in the text instead of folded into marks. */
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

  /** Width of the first of two chats, in percent of both. */
  get splitPercent(): number {
    return this.state.split_percent || HALF;
  }

  split(percent: number) {
    this.#keep({ split_percent: Math.round(Math.min(100 - LEAST, Math.max(LEAST, percent))) });
  }

  /** Keeps which conversations are beside each other over a restart; null for one alone. */
  keepSideBySide(both: SideBySide | null) {
    const { side_by_side: before } = this.state;
    if (before?.first === both?.first && before?.second === both?.second) return;
    this.#keep({ side_by_side: both });
  }

  /** Sections of the inspector; all are folded at first. */
  readonly folds = {
    isOpen: (section: string) => this.state.unfolded.includes(section),
    toggle: (section: string) => {
      const others = this.state.unfolded.filter((name) => name !== section);
      this.#keep({ unfolded: this.folds.isOpen(section) ? others : [...others, section] });
    },
  };

  /** Folders of conversations; all are unfolded at first. */
  readonly folders = {
    isOpen: (folder: number) => !this.state.folded_folders.includes(folder),
    open: (folder: number) => {
      if (!this.folders.isOpen(folder)) this.folders.toggle(folder);
    },
    toggle: (folder: number) => {
      const others = this.state.folded_folders.filter((id) => id !== folder);
      this.#keep({ folded_folders: this.folders.isOpen(folder) ? [...others, folder] : others });
    },
  };

  /** Whether a dialog is open and has the keyboard. */
  get dialogOpen(): boolean {
    const { paletteOpen, shortcutsOpen, serverContentsOpen, settingsOpen, libraryOpen } = this;
    return paletteOpen || shortcutsOpen || serverContentsOpen || settingsOpen || libraryOpen;
  }

  /** The view of a reply; `first` is the id of its first part. */
  viewOf(first: number): ReplyView {
    return this.shownAs.get(first) ?? this.replyView;
  }

  /** Shows all replies, including later ones, as text or as tokens, and clears the selection. */
  showAllAs(view: ReplyView) {
    this.shownAs.clear();
    this.selected = null;
    this.#keep({ reply_view: view });
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

  /** Changes the view at once; several changes in a row are saved once. */
  #keep(change: Partial<ViewState>) {
    this.state = { ...this.state, ...change };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  /** Saves a pending change. */
  async save() {
    if (this.#timer === undefined) return;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    await this.#save();
  }

  /**
   * Saves the view; resolves with whether that succeeded. An unsaved view lasts until the window
   * closes.
   */
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

  /** Selects a reply for the inspector, with one of its tokens or none. */
  inspect(message: number | null, ref: TokenRef | null = null) {
    this.inspected = message;
    this.selected = ref;
    this.hovered = null;
  }
}
