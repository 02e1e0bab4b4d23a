/** The settings of a section at their defaults. What is shown, and which models there are, is no setting. */
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
    context_overflow: defaults.context_overflow,
    thinking: defaults.thinking,
  }),
  device: () => ({ device: defaults.device, draft_device: defaults.draft_device }),
  "system-prompt": () => ({ system_prompt: defaults.system_prompt }),
  appearance: ({ appearance: { sidebar_open, inspector_open } }) => ({
    appearance: { ...defaults.appearance, sidebar_open, inspector_open },
  }),
  server: () => ({ server: defaults.server }),
  // What a person made stays: presets, servers with their keys.
  presets: () => ({
    model_presets: defaults.model_presets,
    hidden_presets: defaults.hidden_presets,
  }),
  remote: () => ({}),
  data: () => ({ keep_traces: defaults.keep_traces, write_titles: defaults.write_titles }),
};

/** All settings, with those of a section at their defaults; null is every section. */
export function withDefaults(values: Settings, section: SectionId | null): Settings {
  const sections = section === null ? SECTIONS.map(({ id }) => id) : [section];
  return sections.reduce((reset, id) => ({ ...reset, ...STANDARD[id](reset) }), values);
}

/** Whether two are the same in what is stored: decimals in single precision. */
export function sameSettings(a: Settings, b: Settings): boolean {
  return inSinglePrecision(a) === inSinglePrecision(b);
}

/** As JSON, in an order that does not depend on who wrote it. */
function inSinglePrecision(values: Settings): string {
  return JSON.stringify(values, (_, value: unknown) => {
    if (typeof value === "number") return Math.fround(value);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    return Object.fromEntries(
      Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)),
    );
  });
}
