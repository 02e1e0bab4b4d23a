/**
 * The values that replies use: the open conversation's own, or the general settings. Also the scope
 * of the settings panel: the conversation, the general settings or a preset.
 */
import type { ConversationSetup } from "../bindings/ConversationSetup";
import type { Preset } from "../bindings/Preset";
import type { PresetValues } from "../bindings/PresetValues";
import type { Sampling } from "../bindings/Sampling";
import type { Speculation } from "../bindings/Speculation";
import type { ToolMode } from "../bindings/ToolMode";
import { BackendError, type Backend } from "../backend/backend";
import { errorWords } from "../messages/errors";
import type { Settings } from "./settings.svelte";
import type { Toasts } from "./toasts.svelte";

const SAVE_AFTER_MS = 300;

/** Scope of the values shown and changed in the settings panel. */
export type Scope = "conversation" | "general" | { preset: string };

export class Setup {
  /** Set-up of the open conversation, or of a new one; null until it is fetched. */
  current = $state.raw<ConversationSetup | null>(null);
  /** Built-in presets, adapted to the chosen target. */
  builtIn = $state.raw<Preset[]>([]);
  /** The requested scope; see {@link shown} for the effective one. */
  scope = $state.raw<Scope>("conversation");

  /** The stored conversation of {@link current}, set before that is fetched. */
  #conversation = $state<number | null>(null);
  #timer: ReturnType<typeof setTimeout> | undefined;
  #loads = 0;
  #writes = 0;
  readonly #backend: Backend;
  readonly #settings: Settings;
  readonly #toasts: Toasts;

  /** The effective scope: `scope` if it exists, else a wider one. */
  readonly shown: Scope = $derived.by(() => {
    const { scope } = this;
    if (typeof scope === "object") return this.#presetOf(scope.preset) ? scope : "general";
    return this.#conversation === null ? "general" : scope;
  });

  /** The values of {@link shown}. */
  readonly values: PresetValues = $derived.by(() => {
    if (typeof this.shown === "object") {
      return this.#presetOf(this.shown.preset)?.values ?? this.standard;
    }
    const { shown, current } = this;
    return shown === "conversation" && current?.own ? current.values : this.standard;
  });

  constructor(backend: Backend, settings: Settings, toasts: Toasts) {
    this.#backend = backend;
    this.#settings = settings;
    this.#toasts = toasts;
  }

  /** Whether the open conversation is stored, and so can have its own values. */
  get stored(): boolean {
    return this.#conversation !== null;
  }

  /** The general values, used by conversations without their own. */
  get standard(): PresetValues {
    const { system_prompt, sampling, speculation, max_tokens, stop, word_bias, tools } =
      this.#settings.values;
    return { system_prompt, sampling, speculation, max_tokens, stop, word_bias, tools };
  }

  /**
   * Fetches the set-up of a conversation; for null, of a new one. The engine prepares for an
   * `active` one.
   */
  async load(conversation: number | null, active = true) {
    const load = (this.#loads += 1);
    if (conversation !== this.#conversation) await this.#leave(conversation);
    const writes = this.#writes;
    await this.#try(async () => {
      const [current, builtIn] = await Promise.all([
        active ? this.#backend.openSetup(conversation) : this.#backend.setup(conversation),
        this.#backend.builtInPresets(),
      ]);
      if (load !== this.#loads) return;
      this.builtIn = builtIn;
      // A change made meanwhile is newer.
      if (writes === this.#writes && this.#timer === undefined) this.current = current;
    });
  }

  change(change: Partial<PresetValues>) {
    const { shown } = this;
    const values = { ...this.values, ...change };
    if (typeof shown === "object") this.#changePreset(shown.preset, values);
    else if (shown === "general") this.#settings.change(change);
    else this.#changeConversation(values);
  }

  changeSampling(change: Partial<Sampling>) {
    this.change({ sampling: { ...this.values.sampling, ...change } });
  }

  changeSpeculation(change: Partial<Speculation>) {
    this.change({ speculation: { ...this.values.speculation, ...change } });
  }

  /** Texts of the target's tokens that are a word; none if it is several tokens. */
  wordTokens(word: string): Promise<string[]> {
    return this.#backend.wordTokens(word);
  }

  /** Increases the repetition penalties of the open conversation. */
  async penaliseMore() {
    const { current } = this;
    const values = current?.own ? current.values : this.standard;
    const { sampling } = values;
    const own = sampling.automatic_penalties ? 1 : sampling.repetition_penalty;
    const stronger: Partial<Sampling> = {
      automatic_penalties: false,
      repetition_penalty: Math.max(1.1, Math.min(own + 0.05, 1.5)),
      repeat_last_n: 256,
      dry_multiplier: Math.max(1, sampling.dry_multiplier),
      dry_allowed_length: 3,
      dry_penalty_last_n: 2048,
    };
    this.#cancelSave();
    await this.#write(null, { ...values, sampling: { ...sampling, ...stronger } });
  }

  /** Applies a preset to the open or the new conversation; null returns to the general settings. */
  async choose(preset: Preset | null) {
    this.#cancelSave();
    await this.#write(preset?.id ?? null, preset?.values ?? null);
  }

  /** Whether replies of the open conversation, or of a new one, may call tools. */
  get tools(): ToolMode {
    return (this.current?.own ? this.current.values : this.standard).tools;
  }

  /** Sets it for the open conversation, or a new one. */
  async setTools(tools: ToolMode) {
    const { current } = this;
    this.#cancelSave();
    await this.#write(null, { ...(current?.own ? current.values : this.standard), tools });
  }

  /** Saves a pending change. */
  async save() {
    if (this.#timer === undefined || !this.current) return;
    this.#cancelSave();
    await this.#write(null, this.current.values);
  }

  /** Switches to another conversation and saves pending changes of the last one. */
  async #leave(conversation: number | null) {
    const saved = this.save();
    this.#conversation = conversation;
    this.current = null;
    await saved;
  }

  #presetOf(id: string): Preset | undefined {
    return this.#settings.values.presets.find((preset) => preset.id === id);
  }

  #changePreset(id: string, values: PresetValues) {
    const presets = this.#settings.values.presets.map((preset) =>
      preset.id === id ? { ...preset, values } : preset,
    );
    this.#settings.change({ presets });
  }

  #changeConversation(values: PresetValues) {
    if (!this.current) return;
    this.current = { ...this.current, own: true, preset: null, values };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.save(), SAVE_AFTER_MS);
  }

  #cancelSave() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  async #write(preset: string | null, values: PresetValues | null) {
    const conversation = this.#conversation;
    const write = (this.#writes += 1);
    await this.#try(async () => {
      const saved = await this.#backend.saveSetup(conversation, preset, values);
      const open = conversation === this.#conversation && write === this.#writes;
      if (open && this.#timer === undefined) this.current = saved;
    });
  }

  async #try(act: () => Promise<void>) {
    try {
      await act();
    } catch (thrown) {
      this.#toasts.show(errorWords(BackendError.from(thrown)));
    }
  }
}
