import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Download } from "../bindings/Download";
import type { Reply } from "../bindings/Reply";
import { t } from "../messages/say";
import { Notices } from "./notices";

const notify = vi.fn(() => Promise.resolve());
let isOn: boolean;
let hasFocus: boolean;
const notices = new Notices({ notify } as never, () => isOn);

beforeEach(() => {
  notify.mockClear();
  isOn = true;
  hasFocus = false;
  vi.spyOn(document, "hasFocus").mockImplementation(() => hasFocus);
});
afterEach(() => vi.restoreAllMocks());

const stored = (changed: object = {}) =>
  ({
    conversation: { title: "A fox" },
    reply: { text: "Once **upon** a time.", finish: "stop", problem: null, ...changed },
  }) as Reply;
const download = (state: Download["state"], changed: Partial<Download> = {}) =>
  ({ id: "a", repository: "o/n", file: "n.gguf", state, reason: null, ...changed }) as Download;

test("a long reply that ended unwatched shows its title and its first words", () => {
  notices.replyEnded(stored(), 10_000);
  expect(notify).toHaveBeenCalledExactlyOnceWith("A fox", "Once upon a time.");
});

test("no notification for short replies, stopped ones, a window in use, or switched off", () => {
  notices.replyEnded(stored(), 9999);
  notices.replyEnded(stored({ finish: "cancelled" }), 20_000);
  hasFocus = true;
  notices.replyEnded(stored(), 20_000);
  hasFocus = false;
  isOn = false;
  notices.replyEnded(stored(), 20_000);
  expect(notify).not.toHaveBeenCalled();
});

test("a minimised window is not in use, even where it keeps the focus", () => {
  hasFocus = true;
  vi.spyOn(document, "hidden", "get").mockReturnValue(true);
  notices.replyEnded(stored(), 20_000);
  expect(notify).toHaveBeenCalledOnce();
});

test("thinking is left out, long texts are cut at a word, and failures say why", () => {
  const long = `<think>secret</think>\n\n${"words of a long text ".repeat(10_000)}`;
  notices.replyEnded(stored({ text: long }), 20_000);
  const [, body = ""] = notify.mock.calls[0] as unknown as string[];
  expect(body).toMatch(/^words of .* (?:words|of|a|long|text)…$/);
  expect(body.length).toBeLessThanOrEqual(161);
  notices.replyEnded(stored({ text: "", finish: null, problem: "out of memory" }), 20_000);
  expect(notify).toHaveBeenLastCalledWith("A fox", "Out of memory");
  notices.replyEnded(stored({ text: "" }), 20_000);
  expect(notify).toHaveBeenLastCalledWith("A fox", t("window.replyFinished"));
  notices.replyEnded(stored({ text: `${"x".repeat(159)}😀😀` }), 20_000);
  expect(notify).toHaveBeenLastCalledWith("A fox", `${"x".repeat(159)}…`);
});

test("a download is shown once when it ends, not when it is listed or pauses", () => {
  notices.downloadsChanged([], [download("done")]);
  notices.downloadsChanged([download("running")], [download("paused")]);
  notices.downloadsChanged([download("done")], [download("done")]);
  expect(notify).not.toHaveBeenCalled();
  notices.downloadsChanged([download("verifying")], [download("done", { file: null })]);
  expect(notify).toHaveBeenLastCalledWith("Download finished", "o/n");
  notices.downloadsChanged([download("running")], [download("failed", { reason: "no space" })]);
  expect(notify).toHaveBeenLastCalledWith("Download failed", "n.gguf: no space");
});

test("a system without notifications changes nothing", async () => {
  notify.mockRejectedValueOnce(new Error("no service"));
  notices.replyEnded(stored(), 20_000);
  await Promise.resolve();
  expect(notify).toHaveBeenCalledOnce();
});
