/** Default settings by section. The view and the lists of models are no settings. */
import type { Settings } from "../bindings/Settings";
import { defaults } from "../bindings/defaults";
import { SECTIONS, type SectionId } from "../settings/words";

const STANDARD: Record<SectionId, (values: Settings) => Partial<Settings>> = {
  speculation: ({ sampling }) => ({
    drafts: defaults.drafts,
    speculation: defaults.speculation,
    learn_from_earlier: defaults.learn_from_earlier,
    sampling: { ...sampling, mode: defaults.sampling.mode },
  }),
  sampling: ({ sampling }) => ({
    sampling: { ...defaults.sampling, mode: sampling.mode },
    max_tokens: defaults.max_tokens,
    stop: defaults.stop,
    word_bias: defaults.word_bias,
    context_overflow: defaults.context_overflow,
    thinking: defaults.thinking,
  }),
  device: () => ({
    device: defaults.device,
    draft_device: defaults.draft_device,
    context_lengths: defaults.context_lengths,
    int8_kv_caches: defaults.int8_kv_caches,
    context_memory_mb: defaults.context_memory_mb,
    context_disk_gb: defaults.context_disk_gb,
  }),
  "system-prompt": () => ({ system_prompt: defaults.system_prompt }),
  appearance: ({ appearance: { sidebar_open, inspector_open } }) => ({
    appearance: { ...defaults.appearance, sidebar_open, inspector_open },
    notifications: defaults.notifications,
    start_at_login: defaults.start_at_login,
    tray_icon: defaults.tray_icon,
    keep_in_tray: defaults.keep_in_tray,
    quick_shortcut: defaults.quick_shortcut,
  }),
  server: () => ({ server: defaults.server }),
  // Everything a person created stays: presets, servers of models and of tools.
  presets: () => ({
    model_presets: defaults.model_presets,
    hidden_presets: defaults.hidden_presets,
  }),
  remote: () => ({}),
  tools: () => ({ tools: defaults.tools, builtin_tools: defaults.builtin_tools }),
  documents: () => ({ embedding_model: defaults.embedding_model }),
  data: () => ({ keep_traces: defaults.keep_traces, write_titles: defaults.write_titles }),
  updates: () => ({ check_for_updates: defaults.check_for_updates }),
};

/** All settings, with one section at its defaults; for null, all sections. */
export function withDefaults(values: Settings, section: SectionId | null): Settings {
  const sections = section === null ? SECTIONS.map(({ id }) => id) : [section];
  return sections.reduce((reset, id) => ({ ...reset, ...STANDARD[id](reset) }), values);
}

/** Whether two settings are equal when stored: decimals in single precision. */
export function sameSettings(a: Settings, b: Settings): boolean {
  return inSinglePrecision(a) === inSinglePrecision(b);
}

/** The values as JSON, with sorted keys. */
function inSinglePrecision(values: Settings): string {
  return JSON.stringify(values, (_, value: unknown) => {
    if (typeof value === "number") return Math.fround(value);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(
      Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
