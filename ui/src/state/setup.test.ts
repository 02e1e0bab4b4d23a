import { beforeEach, expect, test, vi } from "vitest";
import type { ConversationSetup } from "../bindings/ConversationSetup";
import type { PresetValues } from "../bindings/PresetValues";
import { defaults } from "../bindings/defaults";
import type { Backend } from "../backend/backend";
import { Settings } from "./settings.svelte";
import { Setup } from "./setup.svelte";
import { Toasts } from "./toasts.svelte";

const { sampling, speculation } = defaults;
const values = (system_prompt: string): PresetValues => ({
  system_prompt,
  sampling,
  speculation,
  max_tokens: 0,
  stop: [],
  word_bias: [],
  tools: "off",
});

/** Stored set-ups by conversation. */
let stored: Map<number | null, ConversationSetup>;
/** Promises that delay the backend's answers. */
let held: Map<string, Promise<void>>;
let setup: Setup;

async function answer<T>(of: string, give: () => T): Promise<T> {
  await held.get(of);
  return give();
}

/** Delays an answer; returns the function that releases it. */
function hold(of: string): () => void {
  let letGo: () => void = () => undefined;
  held.set(of, new Promise((resolve) => (letGo = resolve)));
  return letGo;
}

beforeEach(() => {
  vi.useRealTimers();
  stored = new Map();
  held = new Map();
  const nothing: ConversationSetup = {
    own: false,
    preset: null,
    values: values(""),
    target: null,
    draft: null,
  };
  const backend = {
    openSetup: (conversation: number | null) =>
      answer(`open ${conversation}`, () => stored.get(conversation) ?? nothing),
    builtInPresets: () => Promise.resolve([]),
    saveSetup: (conversation: number | null, preset: string | null, saved: PresetValues | null) => {
      const of = saved ? { ...nothing, own: true, preset, values: saved } : nothing;
      stored.set(conversation, of);
      return answer(`save ${conversation}`, () => of);
    },
  } as unknown as Backend;
  setup = new Setup(backend, new Settings(backend, () => undefined), new Toasts());
});

const prompts = () => [...stored].map(([id, { values }]) => [id, values.system_prompt]);

test("a change just before another conversation is opened is saved for the previous one", async () => {
  await setup.load(1);
  stored.set(2, { own: true, preset: null, values: values("two"), target: null, draft: null });
  setup.change({ system_prompt: "one" });
  await setup.load(2);
  expect(prompts()).toEqual([
    [2, "two"],
    [1, "one"],
  ]);
  expect(setup.current?.values.system_prompt).toBe("two");
});

test("a choice made while a set-up is fetched applies to that conversation", async () => {
  await setup.load(1);
  const letGo = hold("open 2");
  const loading = setup.load(2);
  await setup.choose({ id: "brief", name: "Brief", values: values("brief") });
  expect(prompts()).toEqual([[2, "brief"]]);
  letGo();
  await loading;
  expect(setup.current).toMatchObject({ preset: "brief" });
});

test("until a set-up is fetched, that of the previous conversation is not shown", async () => {
  stored.set(1, { own: true, preset: null, values: values("one"), target: null, draft: null });
  await setup.load(1);
  const letGo = hold("open 2");
  const loading = setup.load(2);
  expect(setup.current).toBeNull();
  expect(setup.values.system_prompt).toBe(defaults.system_prompt);
  letGo();
  await loading;
  expect(setup.current).toMatchObject({ own: false });
});

test("a late answer changes nothing in another conversation", async () => {
  await setup.load(1);
  const letGo = hold("save 1");
  const choosing = setup.choose({ id: "brief", name: "Brief", values: values("brief") });
  await setup.load(2);
  letGo();
  await choosing;
  expect(setup.current).toMatchObject({ own: false });
});
