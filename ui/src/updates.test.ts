import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { UpdateStatus } from "./bindings/UpdateStatus";
import { WindowFixture } from "./windowFixture";

// Plots are drawn by a library that needs a canvas.
vi.mock("./components/ui/plot/Plot.svelte", () => ({ default: () => undefined }));

const found = { version: "2.0.0", notes: "<b>Faster</b>\nSmaller" };

let window: WindowFixture;
let send: (status: UpdateStatus) => void;

beforeEach(async () => {
  window = await WindowFixture.open();
  vi.spyOn(window.backend, "watchUpdates").mockImplementation((onStatus) => {
    send = onStatus;
    return Promise.resolve();
  });
  await window.app.updates.watch();
});
afterEach(() => window.close());

async function open() {
  await window.press("Ctrl ,");
  await window.click("settings-tab-updates");
}

async function show(changed: Partial<UpdateStatus>) {
  send({
    support: "install",
    phase: "unchecked",
    found: null,
    done_bytes: 0,
    total_bytes: null,
    problem: null,
    ...changed,
  });
  await window.pass();
}

const status = () => window.present("update-status").textContent.trim();
const step = () => window.present("update-step") as HTMLButtonElement;
const name = () => step().textContent.trim();

test("a build without a release channel says so and offers nothing", async () => {
  await open();
  await show({ support: "none" });
  expect(status()).toContain("There is no update server yet");
  expect(window.find("update-step")).toBeNull();
  const toggle = window.present("settings-check-for-updates") as HTMLInputElement;
  expect(toggle.disabled).toBe(true);
  window.app.settings.change({ check_for_updates: true });
  await window.pass();
  expect(toggle.disabled, "it can be switched off").toBe(false);
});

test("each state has its words and its step", async () => {
  await open();
  const steps = ["checkForUpdates", "downloadUpdate", "cancelUpdate", "installUpdate"] as const;
  const [check, download, cancel, install] = steps.map((method) =>
    vi.spyOn(window.backend, method).mockResolvedValue(),
  );
  await show({});
  expect([status(), name()]).toEqual([`Foretoken ${window.app.info?.version}`, "Check now"]);
  await window.click("update-step");
  expect(check).toHaveBeenCalledOnce();
  await show({ phase: "checking" });
  expect(step().disabled).toBe(true);
  await show({ phase: "found", found });
  expect([status(), name()]).toEqual([expect.stringContaining("2.0.0 is available"), "Download"]);
  expect(window.present("update-notes").textContent).toBe(found.notes);
  expect(window.all("toast"), "the settings say it").toEqual([]);
  await window.click("update-step");
  expect(download).toHaveBeenCalledOnce();
  await show({ phase: "downloading", found, done_bytes: 5e6, total_bytes: 20e6 });
  const progress = document.querySelector("progress");
  expect([progress?.value, progress?.max]).toEqual([5e6, 20e6]);
  expect(step().disabled).toBe(true);
  await window.click("update-cancel");
  expect(cancel).toHaveBeenCalledOnce();
  await show({ phase: "ready", found });
  expect([status(), name()]).toEqual([
    expect.stringContaining("signature is verified"),
    "Install and restart",
  ]);
  await window.click("update-step");
  expect(install).toHaveBeenCalledOnce();
  await show({ phase: "failed", found, problem: "bad_signature" });
  expect([status(), name()]).toEqual([expect.stringContaining("discarded"), "Try again"]);
  await window.click("update-step");
  expect(check).toHaveBeenCalledTimes(2);
});

test("a copy that cannot replace itself announces a version and offers no download", async () => {
  await open();
  await show({ support: "find", phase: "found", found });
  expect(name()).toBe("Check now");
  expect(window.present("settings-panel").textContent).toContain("the way you installed");
});

test("the restart waits for the reply that is written, and a refusal is shown", async () => {
  vi.spyOn(window.app, "occupied", "get").mockReturnValue("A reply is being written.");
  await open();
  await show({ phase: "ready", found });
  expect(step().disabled).toBe(true);
  expect(window.present("settings-panel").textContent).toContain("A reply is being written.");
  vi.spyOn(window.backend, "installUpdate").mockRejectedValue(new Error("Not now."));
  window.app.updates.install();
  await window.pass();
  expect(window.present("settings-panel").querySelector("[role=alert]")?.textContent).toContain(
    "Not now",
  );
});

test("a version that a check finds meanwhile is announced once, and leads to the settings", async () => {
  await show({ phase: "found", found });
  await show({ phase: "found", found: { ...found } });
  expect(window.all("toast").map(({ textContent }) => textContent.trim())).toEqual([
    expect.stringContaining("Foretoken 2.0.0 is available"),
  ]);
  await window.click("toast-action");
  expect(status()).toContain("2.0.0 is available");
});
