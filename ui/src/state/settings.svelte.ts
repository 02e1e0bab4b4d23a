/**
 * What the person has set. Shown at once, saved shortly after the last change; the shell checks the
 * values, and its objection is kept for the panel to show.
 */
import type { Appearance } from "../bindings/Appearance";
import type { ServerSettings } from "../bindings/ServerSettings";
import type { Settings as Values } from "../bindings/Settings";
import { defaults } from "../bindings/defaults";
import { withDefaults } from "./reset";
import type { SectionId } from "../settings/words";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/shell";

const SAVE_AFTER_MS = 300;

export class Settings {
  values = $state.raw<Values>(defaults);
  /** Before the last reset of several, which can be undone while nothing else was changed. */
  #beforeReset = $state.raw<Values | null>(null);
  /** Why the last change was not saved. */
  problem = $state<string | null>(null);
  /** How often they were saved: what follows them in the shell is then to be asked for again. */
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

  /** Changes and saves a moment later; several changes in a row are saved once. */
  change(change: Partial<Values>) {
    this.values = { ...this.values, ...change };
    this.#beforeReset = null;
    this.#changes += 1;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  /** Takes all settings of a section back to their defaults; null is every section. */
  reset(section: SectionId | null) {
    const before = this.values;
    this.change(withDefaults(before, section));
    this.#beforeReset = before;
  }

  /** Undoes the last reset; null where there is none, or something was changed since. */
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
   * Changes and saves now: for a choice that a person waits to see take effect. One that the shell
   * refuses is taken back.
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

  /** Makes `target` the target, with `draft` as its draft. */
  choosePair(target: string, draft: string): Promise<void> {
    return this.choose({ target, drafts: { ...this.values.drafts, [target]: draft } });
  }

  /** Lets `draft` draft for `target` from now on; null leaves it to what fits best. */
  chooseDraft(target: string, draft: string | null): Promise<void> {
    const others = Object.entries(this.values.drafts).filter(([id]) => id !== target);
    const own: [string, string][] = draft === null ? [] : [[target, draft]];
    return this.choose({ drafts: Object.fromEntries([...others, ...own]) });
  }

  /**
   * Takes what `add_model`, `remove_model` and `cancel_loading` changed in the shell: the list, and the
   * target, its device, the drafts and the presets where a removed model was in use or another was given up.
   */
  async refreshModels() {
    try {
      this.takeModels(await this.#backend.settings());
    } catch (thrown) {
      this.problem = errorWords(BackendError.from(thrown));
    }
  }

  /** Takes what the shell changed by itself: the lists of models and servers, which are in use, and with what preset. */
  takeModels(stored: Values) {
    const { added_models, remote_servers, target, device, drafts, model_presets } = stored;
    const taken = { added_models, remote_servers, target, device, drafts, model_presets };
    this.values = { ...this.values, ...taken };
    this.#beforeReset = null;
  }

  /** Saves what is not yet saved. Before the first load nothing is: it would erase what is stored. */
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
