import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { EngineStatus } from "../../bindings/EngineStatus";
import { App } from "../../state/app.svelte";
import DeviceChip from "../sidebar/DeviceChip.svelte";
import Device from "./Device.svelte";

const CPU = "CPU, 2 threads, AVX-512";
const CUDA = "CUDA, NVIDIA H100, 80 GB";
const REMARK = "The draft runs on the CPU: it does not fit in GPU memory.";

let app: App;
let shown: ReturnType<typeof mount>;

vi.mock("../../state/app.svelte", async (original) => ({
  ...(await original<object>()),
  getApp: () => app,
}));

const find = (testid: string) => document.querySelector<HTMLElement>(`[data-testid="${testid}"]`);
const words = (testid: string) => find(testid)?.textContent.replace(/\s+/g, " ").trim();

function show(component: typeof Device, status: Partial<EngineStatus>) {
  app.engine.status = { ...app.engine.status, ...status };
  shown = mount(component, { target: document.body });
  flushSync();
}

function open(testid: string) {
  find(testid)?.click();
  flushSync();
}

beforeEach(() => {
  vi.useFakeTimers();
  Element.prototype.scrollIntoView = vi.fn();
  app = new App({} as never);
  app.engine.status = {
    ...app.engine.status,
    device: CPU,
    draft_device: CPU,
    devices: [
      { choice: "auto", label: "Automatic", problem: null },
      { choice: "cpu", label: CPU, problem: null },
      { choice: "cuda", label: CUDA, problem: null },
      { choice: "metal", label: "Metal", problem: "Only Apple's computers have it." },
    ],
  };
});
afterEach(async () => {
  await unmount(shown);
  vi.useRealTimers();
});

test("every device is listed with what it is, and those that cannot be used with the reason", () => {
  show(Device, {});
  open("settings-device");
  expect(words("device-option-cpu")).toBe("CPU 2 threads, AVX-512");
  expect(words("device-option-cuda")).toBe("CUDA NVIDIA H100, 80 GB");
  expect(words("device-option-metal")).toBe(
    "Metal Cannot be used: Only Apple's computers have it.",
  );
  expect(find("device-option-metal")?.getAttribute("aria-disabled")).toBe("true");
  open("device-option-metal");
  expect(app.settings.values.device).toBe("auto");
});

test("target and draft are chosen each for itself", () => {
  show(Device, {});
  open("settings-device");
  open("device-option-cuda");
  expect(app.settings.values).toMatchObject({ device: "cuda", draft_device: "auto" });
  open("settings-draft_device");
  expect(words("draft_device-option-auto")).toBe("Automatic same as the target model");
  open("draft_device-option-cpu");
  expect(app.settings.values).toMatchObject({ device: "cuda", draft_device: "cpu" });
});

test("what is in use is said with the reason why it is not what was chosen", () => {
  show(Device, { device: CUDA, draft_device: CPU, device_remarks: [REMARK] });
  expect(words("devices-in-use")).toBe(`In use Target model ${CUDA}Draft model ${CPU} ${REMARK}`);
});

test("the chip names the draft's device only where it is another", () => {
  show(DeviceChip, {});
  expect(words("device")).toBe(`Running on ${CPU}`);
  app.engine.status = { ...app.engine.status, device: CUDA, device_remarks: [REMARK] };
  flushSync();
  expect(words("device")).toBe(`Running on ${CUDA} Draft: ${CPU}`);
  expect(find("device")?.title).toBe(`Running on: ${CUDA}\nDraft model on: ${CPU}\n${REMARK}`);
  app.engine.status = { ...app.engine.status, draft_device: null };
  flushSync();
  expect(words("device")).toBe(`Running on ${CUDA}`);
});

test("the chip leads to the settings of devices, and is not there before anything computes", () => {
  show(DeviceChip, {});
  find("device")?.click();
  expect([app.view.settingsOpen, app.view.settingsSection]).toEqual([true, "device"]);
  app.engine.status = { ...app.engine.status, device: "" };
  flushSync();
  expect(find("device")).toBeNull();
});
