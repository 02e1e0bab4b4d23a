import { flushSync, mount, unmount } from "svelte";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CPU } from "../../backend/modelFixtures";
import type { DeviceLabel } from "../../bindings/DeviceLabel";
import type { DeviceNote } from "../../bindings/DeviceNote";
import type { DeviceRemark } from "../../bindings/DeviceRemark";
import type { EngineStatus } from "../../bindings/EngineStatus";
import { deviceWords } from "../../messages/devices";
import { App } from "../../state/app.svelte";
import DeviceChip from "../sidebar/DeviceChip.svelte";
import Device from "./Device.svelte";

const SHORT_CPU = "CPU · 2 threads";
const CUDA: DeviceLabel = {
  api: "CUDA",
  name: "NVIDIA H100",
  facts: [{ kind: "memory", gigabytes: 80 }],
};
const RADEON: DeviceLabel = {
  api: "Vulkan",
  name: "AMD Radeon 780M",
  facts: [{ kind: "bit_identical" }],
};
const labelled = (name: string): DeviceLabel => ({ api: null, name, facts: [] });
const GPU = "gpu:Vulkan, AMD Radeon 780M";
const BITS = "bit-identical to the CPU";
const NOTE: DeviceNote = {
  kind: "measured",
  role: "target",
  gpu: "Vulkan, Intel UHD",
  gpu_ms: 41.2,
  cpu_ms: 18.1,
};
const NOTED = "The GPU (Vulkan, Intel UHD) takes 41 ms a token, the CPU 18 ms: using the CPU.";
const REMARK: DeviceRemark = { kind: "no_room", role: "draft" };
const REMARKED = "The draft model runs on the CPU: it does not fit in GPU memory.";

const lookForDevices = vi.fn(() => Promise.resolve());
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
  lookForDevices.mockClear();
  app = new App({ lookForDevices } as never);
  app.engine.status = {
    ...app.engine.status,
    device: CPU,
    draft_device: CPU,
    devices: [
      { choice: "auto", label: labelled(""), problem: null },
      { choice: "cpu", label: CPU, problem: null },
      { choice: GPU, label: RADEON, problem: null },
      { choice: "cuda", label: CUDA, problem: null },
      { choice: "metal", label: labelled("Metal"), problem: { kind: "no_gpu", args: "metal" } },
    ],
  };
});
afterEach(async () => {
  await unmount(shown);
  vi.useRealTimers();
});

test("every device is listed with its facts, and unusable ones with the reason", () => {
  show(Device, {});
  open("settings-device");
  expect(words("device-option-cpu")).toBe("CPU 2 threads, AVX-512");
  expect(words("device-option-cuda")).toBe("NVIDIA H100 CUDA, 80 GB");
  expect(words(`device-option-${GPU}`)).toBe(`AMD Radeon 780M Vulkan, ${BITS}`);
  expect(find("device-option-metal")).toBeNull();
  open("device-option-fold");
  expect(find("device-option-metal")?.getAttribute("aria-disabled")).toBe("true");
  open("device-option-metal");
  expect(words("device-option-metal")).toBe(
    "Metal cannot be used Metal found no GPU on this computer.",
  );
  expect(app.settings.values.device).toBe("auto");
  open(`device-option-${GPU}`);
  expect(app.settings.values.device).toBe(GPU);
});

test("target and draft have separate choices of a device", () => {
  show(Device, {});
  open("settings-device");
  open("device-option-cuda");
  expect(app.settings.values).toMatchObject({ device: "cuda", draft_device: "auto" });
  open("settings-draft_device");
  expect(words("draft_device-option-auto")).toBe(
    "Automatic same as the target model, or the CPU if that is faster",
  );
  open("draft_device-option-cpu");
  expect(app.settings.values).toMatchObject({ device: "cuda", draft_device: "cpu" });
});

test("the device in use is shown, with the reason if another one was chosen", () => {
  show(Device, { device: CUDA, draft_device: CPU, device_remarks: [REMARK] });
  expect(words("devices-in-use")).toBe(
    `In use Target model ${deviceWords(CUDA)}Draft model ${deviceWords(CPU)} ${REMARKED}`,
  );
});

test("GPUs are searched for when the settings of devices are shown, with their measurements", () => {
  show(DeviceChip, {});
  expect(lookForDevices).not.toHaveBeenCalled();
  const chip = shown;
  show(Device, { device_notes: [NOTE] });
  expect(lookForDevices).toHaveBeenCalledTimes(1);
  expect(words("devices-in-use")).toContain(NOTED);
  expect(find("device")?.dataset["tooltip"]).toContain(NOTED);
  expect(find("device")?.querySelector("svg"), "it is no warning").toBeNull();
  void unmount(chip);
});

test("the chip names the draft's device only if it is another one", () => {
  show(DeviceChip, {});
  expect(words("device")).toBe(`Running on ${SHORT_CPU}`);
  app.engine.status = { ...app.engine.status, device: CUDA, device_remarks: [REMARK] };
  flushSync();
  expect(words("device")).toBe(`Running on NVIDIA H100 Draft: ${SHORT_CPU}`);
  expect(find("device")?.dataset["tooltip"]).toContain(
    `Models run on: ${deviceWords(CUDA)}\nDraft model on: ${deviceWords(CPU)}\n${REMARKED}`,
  );
  app.engine.status = { ...app.engine.status, draft_device: null };
  flushSync();
  expect(words("device")).toBe("Running on NVIDIA H100");
});

test("the chip opens the settings of devices, and is hidden until a device is in use", () => {
  show(DeviceChip, {});
  find("device")?.click();
  expect([app.view.settingsOpen, app.view.settingsSection]).toEqual([true, "device"]);
  app.engine.status = { ...app.engine.status, device: labelled("") };
  flushSync();
  expect(find("device")).toBeNull();
});
