import { Blob, File as NodeFile } from "node:buffer";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Backend } from "./backend/backend";
import { player } from "./backend/player";
import { App } from "./state/app.svelte";
import { drafted, extra, round, threeRounds } from "./trace/fixtures";
import { MARKUP } from "./trace/file/mutate";
import { readTrace } from "./trace/file/read";
import { WindowFixture } from "./windowFixture";
import { textOnly } from "./attachments/textOnly";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

let window: WindowFixture;
let app: App;
let saved: { name: string; text: string }[];

beforeEach(async () => {
  window = await WindowFixture.open();
  app = window.app;
  saved = [];
  window.backend.saveFile = (name, text) => {
    saved.push({ name, text });
    return Promise.resolve(`/home/me/Downloads/${name}`);
  };
});

afterEach(() => window.close());

const pass = (ms?: number) => window.pass(ms);
const find = (testid: string) => window.find(testid);
const present = (testid: string) => window.present(testid);
const click = (testid: string) => window.click(testid);
const press = (key: string, element?: Element) => window.press(key, element);
const rounds = () => Number(present("heatmap").dataset["rounds"]);
const chips = () => document.querySelectorAll('[data-testid="token-chip"]').length;
const toasts = () => app.toasts.list.map(({ text }) => text).join("\n");

async function importFile(name: string, ...lines: (object | string)[]) {
  const text = lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)));
  const file = Object.assign(new Blob([text.join("\n")]), { name }) as unknown as File;
  const read = app.importTraces([file]);
  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(20);
    expect(app.imports.reading).toBeNull();
  });
  await read;
  await pass(100);
}

const about = { type: "trace", version: 1, prompt: "Why?", target: "Starter", draft: null };
const lines = threeRounds.map((held) => ({ type: "round", ...held }));
const done = { type: "done", text: "a b c d e", finish: "stop" };

/** Chooses an entry in the menu of the newest reply. */
async function open(entry: string) {
  window.all("reply-more").at(-1)?.click();
  await pass();
  await click(entry);
}

test("a replay shows its rounds in the token view, the heatmap and the numbers, and keys step it", async () => {
  app.view.folds.toggle("details");
  const whole = rounds();
  await open("replay-open");
  await press(" ", document.body);
  app.playback.toStart();
  await pass();
  expect(rounds()).toBe(0);
  expect(find("replay-empty")).not.toBeNull();
  for (let i = 0; i < 3; i += 1) await press("ArrowRight");
  expect(rounds()).toBe(3);
  expect(present("replay-bar").textContent).toContain(`round 3 of ${whole}`);
  const three = chips();
  await press("ArrowLeft");
  expect(rounds()).toBe(2);
  expect(chips()).toBeLessThan(three);
  await press("End");
  expect(rounds()).toBe(whole);
  expect(present("stat-acceptance").textContent).toContain("%");
  await press("Home");
  expect(rounds()).toBe(0);
  await press("Escape");
  expect(find("replay-bar")).toBeNull();
  expect(rounds()).toBe(whole);
});

test("the scrubber shows any moment", async () => {
  await open("replay-open");
  await click("replay-play");
  const scrubber = present("replay-scrubber") as HTMLInputElement;
  for (const share of [0.8, 0.3, 0.5]) {
    scrubber.value = String(app.playback.clock.end * share);
    scrubber.dispatchEvent(new Event("input", { bubbles: true }));
    await pass();
    expect(rounds()).toBe(app.playback.clock.countAt(app.playback.clock.end * share));
    expect(scrubber.getAttribute("aria-valuetext")).toContain(`round ${rounds()} of`);
  }
});

test("a replay plays to its end, and the formatted text follows it", async () => {
  if (present("toggle-tokens").getAttribute("aria-pressed") === "true") {
    await click("toggle-tokens");
  }
  await open("replay-open");
  await pass(3000);
  const half = find("reply-text")?.textContent ?? "";
  await pass(20_000);
  const whole = find("reply-text")?.textContent ?? "";
  expect(half.length).toBeGreaterThan(5);
  expect(whole.startsWith(half.trim().slice(0, 5))).toBe(true);
  expect(whole.length).toBeGreaterThan(half.length + 20);
  expect(present("replay-play").dataset["playing"]).toBe("false");
});

test("the formatted text follows the scrubber backwards, also twice within a moment", async () => {
  await click("toggle-tokens");
  await open("replay-open");
  const text = () => find("reply-text")?.textContent ?? "";
  app.playback.toEnd();
  await pass(200);
  const whole = text();
  for (const count of [30, 10, 5]) {
    app.playback.seek(app.playback.clock.momentOf(count));
    await pass(20);
  }
  await pass(200);
  expect(text().length).toBeGreaterThan(5);
  expect(text().length).toBeLessThan(whole.length / 4);
});

test("a replay of a text that is in view has no button to its end; a longer one has", async () => {
  const toEnd = () => document.querySelector<HTMLElement>('[aria-label="Scroll to the end"]');
  const iconOf = (button: Element | null) => button?.querySelector("path")?.getAttribute("d");
  await open("replay-open");
  expect(toEnd()).toBeNull();
  const scroller = present("message-reply").closest("[data-scroller]") ?? expect.fail();
  Object.defineProperty(scroller, "scrollHeight", { value: 2000 });
  for (let times = 0; times < 2; times += 1) scroller.dispatchEvent(new Event("scroll"));
  await pass();
  expect(iconOf(toEnd())).toBeTruthy();
  // Another arrow down would read as another button to scroll.
  expect(iconOf(present("see-from"))).not.toBe(iconOf(toEnd()));
});

test("the composer keeps its text over a replay", async () => {
  const composer = present("composer") as HTMLTextAreaElement;
  composer.value = "half a thought";
  composer.dispatchEvent(new Event("input", { bubbles: true }));
  await open("replay-open");
  expect(composer.closest("[hidden]")).not.toBeNull();
  await click("replay-close");
  expect(composer.closest("[hidden]")).toBeNull();
  expect(composer.value).toBe("half a thought");
});

test("sending a question ends the replay", async () => {
  await open("replay-open");
  void app.reply.send(textOnly("Tell me more"), () => undefined);
  await pass(500);
  expect(find("replay-bar")).toBeNull();
  expect(find("stop")).not.toBeNull();
});

test("opening another conversation ends the replay", async () => {
  await open("replay-open");
  expect(find("replay-bar")).not.toBeNull();
  await app.open(app.conversations.list.at(-1)?.id ?? 0);
  await pass();
  expect(find("replay-bar")).toBeNull();
});

test("a reply under way cannot be replayed", async () => {
  void app.reply.send(textOnly("Tell me more"), () => undefined);
  await pass(500);
  const writing = document.querySelector('[data-state="streaming"]') ?? expect.fail("no reply");
  expect(writing.querySelector('[data-testid="replay-open"]')).toBeNull();
  if (app.reply.message) await app.replay(app.reply.message);
  expect(app.playback.message).toBeNull();
});

test("with reduced motion a replay starts paused", async () => {
  app.settings.changeAppearance({ reduced_motion: true });
  await open("replay-open");
  await pass(1000);
  expect(app.playback.position).toBe(0);
});

test("in stages the next round is shown as drafted, then as verified", async () => {
  await open("replay-open");
  await click("replay-play");
  app.playback.toStart();
  await click("replay-stages");
  await click("replay-next");
  expect(present("replay-stage").dataset["stage"]).toBe("drafted");
  expect(rounds()).toBe(0);
  await click("replay-next");
  expect(present("replay-stage").dataset["stage"]).toBe("judged");
  await click("replay-next");
  expect(find("replay-stage")).toBeNull();
  expect(rounds()).toBe(1);
});

test("one click writes the trace, and shows its path", async () => {
  await click("reply-more");
  await click("trace-export");
  const [file] = saved;
  expect(file?.name).toMatch(/^foretoken-trace-tell-me-a-story[a-z-]*-\d+\.jsonl$/);
  expect(toasts()).toContain(`/home/me/Downloads/${file?.name ?? ""}`);
  const read = readTrace(file?.text ?? "");
  expect(read.notices).toEqual([]);
  expect(read.rounds).toHaveLength(rounds());
  expect(read.header).toMatchObject({ program: "Foretoken replay" });
  expect(read.header?.prompt).toContain("Tell me a story");
});

test("the menu of a reply can be used by keyboard", async () => {
  present("reply-more").focus();
  const entries = ["replay-open", "check-reply", "show-drafts", "copy-text"];
  entries.push("new-chat-from-here", "trace-export", "delete-reply", "replay-open");
  for (const entry of entries) {
    await press("ArrowDown");
    expect(document.activeElement).toBe(find(entry));
  }
  await press("Escape");
  expect(find("trace-export")).toBeNull();
  expect(document.activeElement).toBe(find("reply-more"));
});

test("an imported trace is a conversation that can be viewed, replayed and found again", async () => {
  await importFile("fox.jsonl", about, ...lines, done);
  expect(present("imported").textContent).toContain("Imported: fox.jsonl");
  expect(present("message-user").textContent).toBe("Why?");
  expect(rounds()).toBe(3);
  await click("reply-more");
  for (const entry of ["trace-export", "delete-reply"]) expect(find(entry)).toBeNull();
  await press("Escape");
  await open("replay-open");
  app.playback.toEnd();
  await pass();
  expect(rounds()).toBe(3);
  expect(find("replay-restored")).toBeNull();
  await click("replay-close");
  await app.open(app.conversations.list[0]?.id ?? 0);
  await pass();
  expect(find("imported")).toBeNull();
  await click("imported-item");
  expect(rounds()).toBe(3);
  await click("imported-close");
  expect(find("imported-item")).toBeNull();
  expect(app.conversations.current).toBeNull();
});

test("a replay says that the context came from the disk", async () => {
  await importFile("fox.jsonl", about, ...lines, { ...done, restored_tokens: 1 });
  await open("replay-open");
  const words = "1 token of the context was loaded from the disk.";
  expect(present("replay-restored").textContent).toBe(words);
});

test("imported traces return after a reload, except closed ones", async () => {
  const kept = new Map<number, { name: string; text: string }>();
  const keepsFiles = (backend: Backend) =>
    Object.assign(backend, {
      keepImportedTrace: (name: string, text: string) => {
        kept.set(kept.size + 1, { name, text });
        return Promise.resolve(kept.size);
      },
      importedTraces: () => Promise.resolve([...kept].map(([id, { name }]) => ({ id, name }))),
      importedTrace: (id: number) =>
        Promise.resolve(new TextEncoder().encode(kept.get(id)?.text).buffer),
      forgetImportedTrace: (id: number) => Promise.resolve(void kept.delete(id)),
    });
  keepsFiles(window.backend);
  for (const name of ["old.jsonl", "fox.jsonl", "owl.jsonl"]) {
    await importFile(name, about, ...lines, done);
  }
  app.closeImported(app.imports.list[2]?.id ?? 0);
  await vi.waitFor(() => expect([...kept.keys()]).toEqual([2, 3]));

  // jsdom's files lack methods.
  vi.stubGlobal("File", NodeFile);
  const again = new App(keepsFiles(player(new URLSearchParams())));
  const restored = again.imports.restore();
  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(20);
    expect(again.imports.list.map(({ name }) => name)).toEqual(["owl.jsonl", "fox.jsonl"]);
  });
  await restored;
  expect(kept.size).toBe(2);
  const [owl] = again.imports.list;
  expect(owl?.reply.text).toBe("a b c d e");
  again.closeImported(owl?.id ?? 0);
  expect([...kept.values()].map(({ name }) => name)).toEqual(["fox.jsonl"]);
});

test("a truncated trace is shown with a notice", async () => {
  await importFile("fox.jsonl", about, ...lines, '{"type":"done","te');
  expect(present("trace-notice").textContent).toContain("is incomplete");
  expect(rounds()).toBe(3);
});

test("a file that is not a trace is refused with a message that names it", async () => {
  const before = app.conversations.current;
  await importFile("poem.jsonl", "roses are red");
  expect(toasts()).toContain("“poem.jsonl” was not imported: it is not a trace");
  await importFile("new.jsonl", { ...about, version: 4 });
  expect(toasts()).toContain("expected version 3, found 4: update Foretoken");
  expect(app.conversations.current).toBe(before);
  expect(app.imports.list).toEqual([]);
});

test("a trace dropped on the window is opened, and a text is attached", async () => {
  const fox = [about, ...lines].map((line) => JSON.stringify(line)).join("\n");
  const file = (name: string, text: string) =>
    Object.assign(new Blob([text]), { name }) as unknown as File;
  const dropped: Record<string, File> = {
    "/fox.jsonl": file("fox.jsonl", fox),
    "/notes.md": file("notes.md", "# Notes"),
  };
  window.backend.droppedFile = (path) => Promise.resolve(dropped[path] ?? expect.fail(path));
  const added = app.addDropped([
    { path: "/notes.md", kind: "attachment" },
    { path: "/fox.jsonl", kind: "trace" },
  ]);
  await vi.waitFor(async () => {
    await pass();
    expect(app.attachments.files).toHaveLength(1);
  });
  await added;
  expect(app.imports.list.map(({ name }) => name)).toEqual(["fox.jsonl"]);
  expect(app.view.libraryOpen).toBe(false);
});

test("no text of an imported trace becomes an element of the page or runs", async () => {
  const held = round(0, {
    drafted: [drafted(MARKUP, "accepted"), drafted(MARKUP, "rejected", { parent: 0 })],
    extra: extra(MARKUP, "recovered"),
  });
  const about = { type: "trace", version: 1, prompt: MARKUP, target: MARKUP, draft: MARKUP };
  await importFile(`${MARKUP}.jsonl`, about, { type: "round", ...held }, { type: MARKUP });
  expect(present("token-view").textContent).toContain("<script>");
  await click("toggle-tokens");
  expect(find("token-view")).toBeNull();
  await open("replay-open");
  await click("replay-stages");
  await click("replay-next");
  await importFile("harm.jsonl", { type: "round", ...held, reason: MARKUP });
  const harm = "main img, main script, aside img, nav script, [onerror], .toast img, nav ul img";
  expect(document.querySelectorAll(harm)).toHaveLength(0);
  expect(globalThis).not.toHaveProperty("harmed");
});

test("a line separates messages outside of the model's context, until that is undone", async () => {
  const [home] = app.conversations.list;
  const asked = app.conversations.messages[0];
  if (!home || !asked) expect.fail("no conversation");
  const [reply] = document.querySelectorAll<HTMLElement>("[data-testid=message-reply]");
  app.conversations.update({ ...home, seen_from: asked.id + 1 });
  await pass();
  const line = find("unseen-line") ?? expect.fail("no line");
  expect(line.textContent).toContain("The model no longer sees what is above.");
  expect(find("message-user")?.closest(".unseen")).not.toBeNull();
  expect(reply?.closest(".unseen")).toBeNull();
  expect(line.compareDocumentPosition(reply ?? line)).toBe(Node.DOCUMENT_POSITION_FOLLOWING);
  app.conversations.update({ ...home, seen_from: 10_000 });
  await pass();
  expect(document.querySelectorAll(".unseen > [data-message]")).toHaveLength(2);
  expect(document.querySelectorAll("[data-testid=unseen-line]")).toHaveLength(1);
  find("see-all")?.click();
  await pass();
  expect(find("unseen-line")).toBeNull();
  expect(document.querySelectorAll(".unseen > [data-message]")).toHaveLength(0);
});
