import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { STARTER } from "../../backend/modelFixtures";
import { App } from "../../state/app.svelte";
import Int8KvCache from "./Int8KvCache.svelte";

const context_window = {
  trained: 8192,
  token_bytes: 12_288,
  int8_token_bytes: 6_400,
  rope_scaling: null,
};
const target = { ...STARTER, context: 4096, context_window };
let app: App;
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const control = () => find("settings-int8_kv_cache") as HTMLInputElement;
const words = () => find("int8-saving")?.textContent.trim();

beforeEach(() => {
  app = new App({} as never);
  app.engine.status = { ...app.engine.status, target };
  shown = mount(Int8KvCache, { target: document.body });
  flushSync();
});
afterEach(() => unmount(shown));

test("an 8-bit KV cache shows what it saves, and is chosen for its model alone", async () => {
  app.settings.values = { ...app.settings.values, int8_kv_caches: ["/other.gguf"] };
  expect(words()).toBe("Saves 24.1\u00a0MB of 50.3\u00a0MB for 4,096 tokens.");
  expect(control().checked).toBe(false);
  control().click();
  await vi.waitFor(() => {
    expect(app.settings.values.int8_kv_caches).toEqual(["/other.gguf", target.id]);
  });
  flushSync();
  expect(control().checked).toBe(true);
  control().click();
  await vi.waitFor(() => {
    expect(app.settings.values.int8_kv_caches).toEqual(["/other.gguf"]);
  });
});

test("a model that cannot have one says so", () => {
  const impossible = { ...context_window, int8_token_bytes: null };
  app.engine.status = {
    ...app.engine.status,
    target: { ...target, context_window: impossible },
  };
  flushSync();
  expect(control().disabled).toBe(true);
  expect(words()).toBe("This model's KV cache can't be in 8 bits.");
});

test("without a model on this computer it cannot be switched on", () => {
  app.engine.status = { ...app.engine.status, target: null };
  flushSync();
  expect(control().disabled).toBe(true);
  expect(find("int8-saving")).toBeNull();
});
