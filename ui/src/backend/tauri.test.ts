import { beforeEach, expect, test, vi } from "vitest";
import { defaults } from "../bindings/defaults";
import type { Round } from "../bindings/Round";
import { threeRounds } from "../trace/fixtures";
import { BackendError } from "./backend";
import { tauri } from "./tauri";
import { textOnly } from "../attachments/textOnly";

const { invoke } = vi.hoisted(() => ({ invoke: vi.fn() }));

vi.mock("@tauri-apps/api/core", () => ({
  invoke,
  Channel: class {
    constructor(readonly onmessage: unknown) {}
  },
}));

beforeEach(() => {
  invoke.mockReset();
  invoke.mockResolvedValue(null);
});

test("a question is sent to the shell with a channel for its events, which come in batches", async () => {
  const onEvent = vi.fn();
  await tauri.send(3, textOnly("Hello"), onEvent);
  const [name, args] = invoke.mock.lastCall as [string, Record<string, unknown>];
  expect(name).toBe("send");
  expect(args).toMatchObject({ conversation: 3, sent: textOnly("Hello") });
  const { onmessage } = args["onEvents"] as { onmessage: (events: unknown[]) => void };
  onmessage(["first", "second"]);
  expect(onEvent.mock.calls.map(([event]) => event as string)).toEqual(["first", "second"]);
});

test("half an emoji in a text does not prevent sending it to the shell", async () => {
  const half = { text: "a \ud83e b \udd8a \ud83e\udd8a", attached: ["\ud83e"] };
  await tauri.send(3, half as never, vi.fn());
  const sent = { text: "a \ufffd b \ufffd \ud83e\udd8a", attached: ["\ufffd"] };
  expect(invoke.mock.lastCall?.[1]).toMatchObject({ sent });
});

test("settings are sent to the shell complete", async () => {
  await tauri.saveSettings(defaults);
  expect(invoke).toHaveBeenCalledExactlyOnceWith("save_settings", { settings: defaults });
});

test("errors of the shell keep their code and message", async () => {
  invoke.mockRejectedValue({ code: "bad_model", message: "x is not a model." });
  const failed = tauri.addModel("x").catch((thrown: unknown) => thrown);
  expect(await failed).toBeInstanceOf(BackendError);
  expect(await failed).toMatchObject({ code: "bad_model", message: "x is not a model." });
});

test("errors of Tauri itself are internal errors with their message", async () => {
  invoke.mockRejectedValue("command send not found");
  await expect(tauri.stop()).rejects.toMatchObject({
    code: "internal",
    message: "command send not found",
  });
});

test("the rounds of a stored reply have every field, for any stored version", async () => {
  const old: Partial<Round> = { ...threeRounds[0] };
  delete old.threshold;
  delete old.staged;
  invoke.mockResolvedValue([old]);
  const filled = { threshold: null, staged: false, decision: null };
  expect(await tauri.trace(1)).toEqual([{ ...old, ...filled }]);
});
