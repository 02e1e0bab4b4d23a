/**
 * The settings. A change is shown at once and saved shortly after; the shell validates the values,
 * and its error is kept for the panel.
 */
import type { Appearance } from "../bindings/Appearance";
import type { ServerSettings } from "../bindings/ServerSettings";
import type { Settings as Values } from "../bindings/Settings";
import { defaults } from "../bindings/defaults";
import { withDefaults } from "./reset";
import type { SectionId } from "../settings/words";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";

const SAVE_AFTER_MS = 300;

export class Settings {
  values = $state.raw<Values>(defaults);
  /** The values before the first of several resets; null after any other change. */
  #beforeReset = $state.raw<Values | null>(null);
  /** Why the last change was not saved. */
  problem = $state<string | null>(null);
  /** Counter of saves; state in the shell that depends on settings is fetched again after each. */
  saved = $state(0);

  readonly #backend: Backend;
  readonly #onRefusedChoice: (message: string) => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #changes = 0;
  #loaded = false;

  constructor(backend: Backend, onRefusedChoice: (message: string) => void) {
    this.#backend = backend;
    this.#onRefusedChoice = onRefusedChoice;
  }

  async load() {
    try {
      this.values = await this.#backend.settings();
      this.#changes = 0;
      this.#loaded = true;
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    }
  }

  /** Changes values and saves a moment later; several changes in a row are saved once. */
  change(change: Partial<Values>) {
    this.values = { ...this.values, ...change };
    this.#beforeReset = null;
    this.#changes += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  /** Resets a section to its defaults; for null, all sections. */
  reset(section: SectionId | null) {
    const before = this.values;
    this.change(withDefaults(before, section));
    this.#beforeReset = before;
  }

  /** Undoes the last reset; null without one, or after a later change. */
  get undoReset(): (() => void) | null {
    const before = this.#beforeReset;
    return before && (() => this.change(before));
  }

  changeAppearance(change: Partial<Appearance>) {
    this.change({ appearance: { ...this.values.appearance, ...change } });
  }

  changeServer(change: Partial<ServerSettings>) {
    this.change({ server: { ...this.values.server, ...change } });
  }

  /**
   * Changes values and saves at once, for choices that take effect visibly. Reverts the change if
   * the shell refuses it.
   */
  async choose(change: Partial<Values>) {
    const before = this.values;
    this.change(change);
    await this.save();
    if (this.problem === null) return;
    this.#onRefusedChoice(this.problem);
    const taken = Object.keys(change) as (keyof Values)[];
    const back = Object.fromEntries(taken.map((key) => [key, before[key]]));
    this.values = { ...this.values, ...back };
  }

  /** Selects a target with a draft; null leaves the choice of the draft as it is. */
  choosePair(target: string, draft: string | null): Promise<void> {
    if (draft === null) return this.choose({ target });
    return this.choose({ target, drafts: { ...this.values.drafts, [target]: draft } });
  }

  /** Selects `draft` for `target`; null selects the best one automatically. */
  chooseDraft(target: string, draft: string | null): Promise<void> {
    const others = Object.entries(this.values.drafts).filter(([id]) => id !== target);
    const own: [string, string][] = draft === null ? [] : [[target, draft]];
    return this.choose({ drafts: Object.fromEntries([...others, ...own]) });
  }

  /**
   * Fetches the changes of `add_model`, `remove_model` and `cancel_loading`: the list of models,
   * and the selection if a removed model was in use or loading was cancelled.
   */
  async refreshModels() {
    try {
      this.takeModels(await this.#backend.settings());
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    }
  }

  /** Fetches the local server's switch, which the tray icon's menu changes. */
  async refreshServer() {
    try {
      const { enabled } = (await this.#backend.settings()).server;
      this.values = { ...this.values, server: { ...this.values.server, enabled } };
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    }
  }

  /**
   * Adopts the shell's own changes: lists of models and servers, and the selected ones with their
   * presets.
   */
  takeModels(stored: Values) {
    const { added_models, remote_servers, tool_servers, target, device } = stored;
    const { drafts, model_presets } = stored;
    const taken = {
      added_models,
      remote_servers,
      tool_servers,
      target,
      device,
      drafts,
      model_presets,
    };
    this.values = { ...this.values, ...taken };
    this.#beforeReset = null;
  }

  /**
   * Saves pending changes. Does nothing before the first load: that would erase the stored
   * settings.
   */
  async save() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#changes === 0 || !this.#loaded) return;
    const saving = this.#changes;
    try {
      const stored = await this.#backend.saveSettings(this.values);
      this.problem = null;
      this.saved += 1;
      if (saving !== this.#changes) return;
      this.values = stored;
      this.#changes = 0;
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    }
  }
}
