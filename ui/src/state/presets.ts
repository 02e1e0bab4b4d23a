/**
 * Presets for lists: the person's own and the built-in ones. Also creates and deletes own presets.
 */
import type { Preset } from "../bindings/Preset";
import type { PresetValues } from "../bindings/PresetValues";
import type { Recommended } from "../bindings/Recommended";
import type { Sampling } from "../bindings/Sampling";
import { defaults } from "../bindings/defaults";
import { facts } from "../bindings/facts";
import { count } from "../messages/numbers";
import { t } from "../messages/say";
import { sentence } from "../messages/sentence";
import type { App } from "./app.svelte";

type BuiltInId = (typeof facts.presetIds)[number];

function isBuiltIn(id: string): id is BuiltInId {
  return facts.presetIds.some((built) => built === id);
}

/** The name of a preset. */
export function nameOf({ id, name }: Preset): string {
  return isBuiltIn(id) ? t(`preset.${id}`) : name;
}

/** Selectable presets: the person's own, then built-in ones that are not hidden. */
export function presetsOf({ settings, setup }: App): Preset[] {
  const { presets, hidden_presets: hidden } = settings.values;
  return [...presets, ...setup.builtIn.filter(({ id }) => !hidden.includes(id))];
}

/** "temperature 0.6, top-p 0.95": sampling values that are set and differ from the neutral ones. */
export function samplingWords(sampling: Sampling | Recommended): string {
  const words = [
    ["temperature", sampling.temperature],
    ["top_k", sampling.top_k],
    ["top_p", sampling.top_p],
    ["min_p", sampling.min_p],
    ["repetition_penalty", sampling.repetition_penalty],
  ] as const;
  const neutral = { ...defaults.sampling, temperature: null, top_p: 1 };
  return words
    .filter(([key, value]) => value !== null && value !== neutral[key])
    .map(([key, value]) => t(`preset.value.${key}`, { value: count(value ?? 0, 2) }))
    .join(", ");
}

/** The contents of a preset, in one line: "Temperature 0.2, top-p 0.9, at most 2,048 tokens". */
export function detailOf({ sampling, system_prompt, max_tokens }: PresetValues): string {
  const parts = [samplingWords(sampling)];
  if (system_prompt.trim() !== "") parts.push(t("preset.withPrompt"));
  if (max_tokens > 0) parts.push(t("preset.withLength", { count: max_tokens }));
  return sentence(parts.filter((part) => part !== "").join(", "));
}

/** The name itself, or the first of "name 2", "name 3" that is not taken. */
export function freeName(app: App, name: string): string {
  const room = facts.presetName.max - 4;
  const cut = Array.from(name.trim()).slice(0, room).join("").trim() || t("preset.newName");
  let free = cut;
  for (let number = 2; isTaken(app, free, null); number += 1) free = `${cut} ${number}`;
  return free;
}

function isTaken({ settings, setup }: App, name: string, but: string | null): boolean {
  const wanted = name.trim().toLowerCase();
  const others = [...settings.values.presets, ...setup.builtIn].filter(({ id }) => id !== but);
  return others.some((preset) => nameOf(preset).toLowerCase() === wanted);
}

/** Why a preset cannot have this name, in a sentence; null if it can. */
export function nameProblem(app: App, id: string, name: string): string | null {
  const wanted = name.trim();
  if (wanted === "") return t("preset.noName");
  if (Array.from(wanted).length > facts.presetName.max) {
    return t("preset.longName", { count: facts.presetName.max });
  }
  return isTaken(app, wanted, id) ? t("preset.takenName", { name: wanted }) : null;
}

/** Creates a preset of these values and returns it. */
export async function createPreset(app: App, name: string, values: PresetValues): Promise<Preset> {
  const id = crypto.randomUUID();
  const preset = { id, name: freeName(app, name), values: values };
  await app.settings.choose({ presets: [...app.settings.values.presets, preset] });
  return preset;
}

/** Deletes a preset; a toast offers to undo it. Conversations that use it keep its values. */
export async function deletePreset(app: App, preset: Preset) {
  const { settings, toasts } = app;
  const { presets, model_presets } = settings.values;
  const at = presets.indexOf(preset);
  const models = Object.entries(model_presets);
  const mine = models.filter(([, id]) => id === preset.id);
  await settings.choose({
    presets: presets.filter(({ id }) => id !== preset.id),
    model_presets: Object.fromEntries(models.filter(([, id]) => id !== preset.id)),
  });
  const undo = () => {
    const now = settings.values;
    void settings.choose({
      presets: now.presets.toSpliced(at, 0, preset),
      model_presets: { ...Object.fromEntries(mine), ...now.model_presets },
    });
  };
  toasts.showUndoable(t("preset.deleted", { name: preset.name }), undo);
}
