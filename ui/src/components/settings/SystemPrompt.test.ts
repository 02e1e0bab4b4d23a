import { flushSync, mount, unmount } from "svelte";
import { expect, test, vi } from "vitest";
import { App } from "../../state/app.svelte";
import SystemPrompt from "./SystemPrompt.svelte";

let app: App;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

test("a note explains the place of the system prompt for templates without system messages", () => {
  app = new App({} as never);
  const shown = mount(SystemPrompt, { target: document.body });
  const line = () => document.querySelector('[data-testid="merged-system-prompt"]')?.textContent;
  flushSync();
  expect(line()).toBeUndefined();
  app.engine.status = { ...app.engine.status, merges_system: true };
  flushSync();
  expect(line()).toContain("this text begins your first message");
  void unmount(shown);
});
