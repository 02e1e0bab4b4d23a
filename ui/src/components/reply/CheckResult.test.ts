import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Message } from "../../bindings/Message";
import type { ReplyCheck } from "../../bindings/ReplyCheck";
import { App } from "../../state/app.svelte";
import { summary } from "../../trace/fixtures";
import CheckResult from "./CheckResult.svelte";

let app: App;
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const message = { id: 3, target: "Starter 8.1M · Q8_0" } as Message;
const result = () => document.querySelector<HTMLElement>('[data-testid="check-result"]');

async function show(check: ReplyCheck, shownMessage = message) {
  app = new App({
    checkReply: () => Promise.resolve(check),
    trace: () => Promise.resolve([]),
  } as never);
  shown = mount(CheckResult, { target: document.body, props: { message: shownMessage } });
  await app.check.start(3);
  flushSync();
}

beforeEach(() => (document.body.innerHTML = ""));
afterEach(() => unmount(shown));

test("a reply equal to the target's own is reported as identical", async () => {
  await show({ kind: "text", tokens: 212, seed: 7, difference: null });
  expect(result()?.dataset["verdict"]).toBe("identical");
  expect(result()?.textContent).toContain("Starter 8.1M writes the same 212 tokens");
  expect(result()?.textContent).not.toContain("disk");
});

test("a context that came from the disk is mentioned, and that the check did not use it", async () => {
  const restored = { ...message, summary: summary({ restored_tokens: 4096 }) };
  await show({ kind: "text", tokens: 212, seed: 7, difference: null }, restored);
  const words =
    "4,096 tokens of the context were loaded from the disk. The check computed them again.";
  expect(result()?.textContent).toContain(words);
});

test("a reply of another version is no proof, and says so", async () => {
  await show({ kind: "other_order" });
  expect(result()?.dataset["verdict"]).toBe("refused");
  expect(result()?.textContent).toContain("Another version of Foretoken wrote this reply");
});

test("a difference shows both tokens as text, whatever is in them, with their logits", async () => {
  const evil = "<img src=x onerror=alert(1)>";
  const difference = {
    position: 40,
    with: { token: 1, text: evil, logit: -3.25 },
    without: { token: 2, text: "\n", logit: -1 },
    gap: 2.25,
    near_tie: false,
  };
  await show({ kind: "text", tokens: 50, seed: null, difference });
  expect(result()?.dataset["verdict"]).toBe("different");
  expect(document.querySelector("img")).toBeNull();
  const words = result()?.textContent ?? "";
  expect(words).toContain("<img␣src=x␣onerror=alert(1)>");
  expect(words).toContain("↵");
  expect(words).toContain("logit -3.25");
  expect(words).toContain("please report it");
  const widths = [...document.querySelectorAll<HTMLElement>(".bar i")].map((bar) =>
    parseFloat(bar.style.width),
  );
  expect(widths[0]).toBeLessThan(widths[1] ?? 0);
  expect(widths.every((width) => width > 0 && width <= 100)).toBe(true);
});

test("a text that had already ended has no token at the difference", async () => {
  const difference = {
    position: 4,
    with: { token: 1, text: " x", logit: 3 },
    without: null,
    gap: null,
    near_tie: true,
  };
  await show({ kind: "text", tokens: 5, seed: 1, difference });
  expect(result()?.textContent).toContain("had already ended");
  expect(result()?.textContent).not.toContain("Gap");
});

test("probabilities are compared if texts cannot be", async () => {
  await show({ kind: "distribution", judged: 9, different: 0, largest_difference: 0 });
  expect(result()?.dataset["verdict"]).toBe("distribution");
});
