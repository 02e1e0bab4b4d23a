import { expect, test } from "vitest";
import { defaults } from "../bindings/defaults";
import { formatBreakers } from "../components/settings/breakers";
import { SECTIONS, SETTING_IDS, SETTINGS, settingsWith } from "./words";

test("settings are found by their names and explanations, by words in any order", () => {
  expect([...settingsWith("penalty repetition")]).toEqual(["repetition_penalty", "repeat_last_n"]);
  expect([...settingsWith("text varied")]).toEqual(["temperature"]);
  expect([...settingsWith("zebra")]).toEqual([]);
  expect(settingsWith("draft").size).toBeGreaterThan(5);
});

test("a setting is explained in one complete sentence, or not at all", () => {
  for (const id of SETTING_IDS) {
    const { explanation, standard } = SETTINGS[id];
    // Entries such as the data folder are no settings.
    if (standard === undefined) continue;
    expect(explanation, id).toMatch(/^([^\n]{10,200}[.?])?$/);
  }
});

test("every section has settings, and no two of one section have the same name", () => {
  for (const { id } of SECTIONS) {
    const labels = SETTING_IDS.map((setting) => SETTINGS[setting])
      .filter(({ section }) => section === id)
      .map(({ label }) => label);
    expect(labels.length).toBeGreaterThan(0);
    expect(new Set(labels).size).toBe(labels.length);
  }
});

test("the defaults in words match the defaults", () => {
  const { sampling, speculation, appearance } = defaults;
  const values = {
    temperature: sampling.temperature,
    top_k: sampling.top_k,
    top_p: sampling.top_p,
    min_p: sampling.min_p,
    automatic_penalties: sampling.automatic_penalties ? "automatic" : "custom",
    repetition_penalty: sampling.repetition_penalty,
    repeat_last_n: sampling.repeat_last_n,
    dry_multiplier: sampling.dry_multiplier,
    dry_base: sampling.dry_base,
    dry_allowed_length: sampling.dry_allowed_length,
    dry_penalty_last_n: sampling.dry_penalty_last_n === -1 ? "empty" : sampling.dry_penalty_last_n,
    dry_sequence_breakers: formatBreakers(sampling.dry_sequence_breakers),
    mode: sampling.mode,
    drafter: speculation.drafter,
    draft_length: speculation.length.type,
    threshold: speculation.threshold.type,
    tree: speculation.tree.type,
    staged: speculation.staged,
    verification: speculation.verification === "block" ? "whole draft" : "token by token",
    theme: appearance.theme,
    text_size: `${appearance.text_size}%`,
    wide_chat: appearance.wide_chat ? "wide" : "normal",
    learn_from_earlier: defaults.learn_from_earlier ? "on" : "off",
    notifications: defaults.notifications ? "on" : "off",
    write_titles: defaults.write_titles ? "on" : "off",
    keep_traces: defaults.keep_traces ? "on" : "off",
    stop_loops: sampling.stop_loops ? "on" : "off",
    seed: sampling.seed ?? "empty",
    max_tokens: defaults.max_tokens === 0 ? "empty" : defaults.max_tokens,
    thinking: defaults.thinking ?? "model default",
    system_prompt: defaults.system_prompt === "" ? "empty" : defaults.system_prompt,
    send_key: appearance.send_key === "enter" ? "Enter" : "Ctrl Enter",
    motion: appearance.reduced_motion ? "reduced" : "same as the system",
    device: defaults.device === "auto" ? "automatic" : defaults.device,
    server_enabled: defaults.server.enabled ? "on" : "off",
    server_host: defaults.server.host,
    server_port: defaults.server.port,
    server_key: defaults.server.key === "" ? "empty" : defaults.server.key,
    draft_device: defaults.draft_device === "auto" ? "automatic" : defaults.draft_device,
  } as const;
  for (const [id, value] of Object.entries(values)) {
    expect(SETTINGS[id as keyof typeof values].standard, id).toBe(String(value));
  }
});
