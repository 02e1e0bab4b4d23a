import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STARTER } from "../../backend/modelFixtures";
import { App } from "../../state/app.svelte";
import ContextLength from "./ContextLength.svelte";

const context_window = {
  trained: 8192,
  token_bytes: 12_288,
  int8_token_bytes: 6_400,
  rope_scaling: { kind: "yarn", factor: 4, original: 2048 } as const,
};
const target = { ...STARTER, context_window };
let app: App;
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const words = (testid: string) => find(testid)?.textContent.replace(/\s+/g, " ").trim();
const lengths = () => app.settings.values.context_lengths;

async function click(testid: string) {
  find(testid)?.click();
  await vi.advanceTimersByTimeAsync(1);
  flushSync();
}

beforeEach(() => {
  vi.useFakeTimers();
  Element.prototype.scrollIntoView = vi.fn();
  app = new App({} as never);
  app.engine.status = { ...app.engine.status, target, reading_rate: 340 };
  shown = mount(ContextLength, { target: document.body });
  flushSync();
});
afterEach(async () => {
  await unmount(shown);
  vi.useRealTimers();
});

test("each length shows its memory and the time to read it before it is chosen", async () => {
  expect(words("settings-context_length")).toContain("8,192 tokens");
  expect(words("context-trained")).toBe(
    "This model was trained for 8,192 tokens. Its file scales RoPE with YaRN, by 4 from 2,048 tokens.",
  );
  await click("settings-context_length");
  expect(words("context_length-option-2048")).toBe(
    "2,048 tokens 25.2 MB of memory, about 6 s to read",
  );
  expect(words("context_length-option-8192")).toBe(
    "8,192 tokens 100.7 MB of memory, about 24 s to read",
  );
  app.settings.values = { ...app.settings.values, int8_kv_caches: [target.id] };
  flushSync();
  expect(words("context_length-option-8192")).toBe(
    "8,192 tokens 52.4 MB of memory, about 24 s to read",
  );
  app.settings.values = { ...app.settings.values, int8_kv_caches: [] };
  app.engine.status = { ...app.engine.status, reading_rate: null };
  flushSync();
  expect(words("context_length-option-8192")).toBe("8,192 tokens 100.7 MB of memory");
});

test("a length is chosen for its model alone, and the trained one is the default", async () => {
  app.settings.values = { ...app.settings.values, context_lengths: { "/other.gguf": 512 } };
  await click("settings-context_length");
  await click("context_length-option-4096");
  expect(lengths()).toEqual({ "/other.gguf": 512, [target.id]: 4096 });
  expect(words("settings-context_length")).toContain("4,096 tokens");
  await click("settings-context_length");
  await click("context_length-option-8192");
  expect(lengths()).toEqual({ "/other.gguf": 512 });
});

test("without a model on this computer there is nothing to choose", () => {
  app.engine.status = { ...app.engine.status, target: { ...target, context_window: null } };
  flushSync();
  expect(words("settings-context_length")).toContain("Load a model on this computer first");
  expect(find("context-trained")).toBeNull();
});
