/** Set-ups of the player's conversations, with presets like the built-in ones. */
import type { ConversationSetup } from "../bindings/ConversationSetup";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Preset } from "../bindings/Preset";
import type { PresetValues } from "../bindings/PresetValues";
import type { Sampling } from "../bindings/Sampling";
import type { Settings } from "../bindings/Settings";
import { defaults } from "../bindings/defaults";

type Own = Pick<ConversationSetup, "preset" | "values">;

export class Setups {
  readonly #own = new Map<number | null, Own>();
  /** Target of each conversation's last reply. */
  readonly #targets = new Map<number, string>();
  #open: number | null = null;

  builtIn(settings: Settings, target: ModelEntry | undefined): Preset[] {
    const preset = (id: string, change: Partial<Sampling>): Preset => {
      const { seed, mode } = settings.sampling;
      const sampling = { ...defaults.sampling, ...change, seed, mode };
      return { id, name: "", values: { ...valuesOf(settings), sampling } };
    };
    const recommended = Object.entries(target?.recommended ?? {}).filter(
      ([, value]) => value !== null,
    );
    return [
      ...(recommended.length > 0 ? [preset("recommended", Object.fromEntries(recommended))] : []),
      preset("precise", { temperature: 0.2, top_p: 0.9 }),
      preset("creative", { temperature: 1, top_p: 1, min_p: 0.05 }),
      preset("code", { temperature: 0.2, top_p: 0.95 }),
    ];
  }

  open(conversation: number | null, settings: Settings): ConversationSetup {
    if (conversation !== this.#open) this.#own.delete(null);
    this.#open = conversation;
    const own = this.#own.get(conversation);
    const rest = own ?? { preset: null, values: valuesOf(settings) };
    const target = conversation === null ? null : (this.#targets.get(conversation) ?? null);
    return structuredClone({ target, draft: null, own: own !== undefined, ...rest });
  }

  save(conversation: number | null, own: Own | null, settings: Settings): ConversationSetup {
    this.open(conversation, settings);
    if (own) this.#own.set(conversation, structuredClone(own));
    else this.#own.delete(conversation);
    return this.open(conversation, settings);
  }

  /** Stores the values of a conversation's reply with it. */
  keep(conversation: number, settings: Settings) {
    const { own, preset, values } = this.open(this.#open === null ? null : conversation, settings);
    if (own) this.#own.set(conversation, { preset, values });
    this.#targets.set(conversation, settings.target);
    this.#open = conversation;
  }
}

function valuesOf(settings: Settings): PresetValues {
  const { system_prompt, sampling, speculation, max_tokens } = settings;
  return { system_prompt, sampling, speculation, max_tokens };
}
