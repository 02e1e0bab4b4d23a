import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Trace } from "../../state/trace.svelte";
import { WindowFixture } from "../../windowFixture";

// uPlot needs a canvas, which jsdom lacks.
vi.mock("../ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;
beforeEach(async () => {
  window = await WindowFixture.open();
});
afterEach(() => window.close());

/** Views of all replies on the page, oldest first. */
const views = () =>
  window
    .all("message-reply")
    .map((reply) => (reply.querySelector("[data-testid=token-view]") ? "tokens" : "text"));
const toggles = () => window.all("toggle-tokens") as HTMLButtonElement[];

async function ask(question: string) {
  await window.type("composer", question);
  await window.click("send");
  await window.pass(20_000);
}

test("the switch in the header shows all replies as text or as tokens, including later ones", async () => {
  await ask("And another one");
  expect(views()).toEqual(["tokens", "tokens"]);
  await window.click("reply-view-text");
  expect(views()).toEqual(["text", "text"]);
  await ask("And a third");
  expect(views()).toEqual(["text", "text", "text"]);
  await window.click("reply-view-tokens");
  expect(views()).toEqual(["tokens", "tokens", "tokens"]);
});

test("a reply's own toggle changes only that reply", async () => {
  toggles()[0]?.click();
  await window.pass();
  expect(views()).toEqual(["text"]);
  expect(window.present("reply-view").dataset["value"]).toBe("tokens");
  await ask("And another one");
  expect(views()).toEqual(["text", "tokens"]);
  // The header's switch applies to all replies again.
  await window.click("reply-view-text");
  await window.click("reply-view-tokens");
  expect(views()).toEqual(["tokens", "tokens"]);
});

test("a reply without rounds cannot be shown as tokens, and the page explains why", async () => {
  const reply = window.app.newestReply ?? expect.fail("no reply");
  window.app.traces.keep(reply.id, Trace.of([]));
  await window.pass();
  expect(toggles()[0]?.disabled).toBe(true);
  expect(toggles()[0]?.dataset["tooltip"]).toContain("no draft data");
  expect((window.present("reply-view-tokens") as HTMLInputElement).disabled).toBe(true);
  expect(window.present("reply-view").dataset["value"]).toBe("text");
  const why = window.present("reply-view").getAttribute("aria-describedby") ?? "";
  expect(document.getElementById(why)?.textContent).toContain("no draft data");
});
