import { afterEach, expect, test } from "vitest";
import { CPU } from "../backend/modelFixtures";
import type { DeviceLabel } from "../bindings/DeviceLabel";
import type { DeviceNote } from "../bindings/DeviceNote";
import { deviceWords, gpuProblemWords, noteWords, remarkWords, shortDevice } from "./devices";
import { showLanguage } from "./locale.svelte";

afterEach(() => showLanguage("en"));

const RADEON: DeviceLabel = {
  api: "Vulkan",
  name: "AMD Radeon 780M",
  facts: [{ kind: "bit_identical" }],
};
const NOTHING: DeviceLabel = { api: null, name: "", facts: [] };
const gpu = "Vulkan, Intel UHD (2)";
const NOTE: DeviceNote = { kind: "measured", role: "target", gpu, gpu_ms: 4.1, cpu_ms: 18.2 };

test("a processor is named by its threads, a GPU by its name, a server by its host", () => {
  expect([CPU, RADEON, NOTHING].map(shortDevice)).toEqual([
    "CPU · 2 threads",
    "AMD Radeon 780M",
    "",
  ]);
  const facts = [{ kind: "host", address: "10.0.0.7:8000" } as const];
  expect(shortDevice({ api: null, name: "far", facts })).toBe("10.0.0.7:8000");
  expect([CPU, RADEON, NOTHING].map(deviceWords)).toEqual([
    "CPU, 2 threads, AVX-512",
    "Vulkan, AMD Radeon 780M, bit-identical to the CPU",
    "",
  ]);
});

test("a note states the measurement and the device that follows from it", () => {
  expect(noteWords(NOTE)).toBe(
    "The GPU (Vulkan, Intel UHD (2)) takes 4.1 ms a token, the CPU 18 ms: using the GPU.",
  );
  expect(noteWords({ ...NOTE, role: "draft", cpu_ms: 0.42 })).toBe(
    "For drafts the GPU (Vulkan, Intel UHD (2)) takes 4.1 ms a token, the CPU 0.42 ms: using the CPU.",
  );
});

test("a GPU's problem names what was found and what is needed", () => {
  const old = { kind: "old_driver", args: { found: 12020, needed: 12090 } } as const;
  expect(gpuProblemWords(old)).toContain("supports CUDA 12.2, and this build needs 12.9");
  const missing = { kind: "no_libraries", args: ["libcublas", "libcurand"] } as const;
  expect(gpuProblemWords({ ...missing, args: [...missing.args] })).toContain(
    ": libcublas and libcurand not found.",
  );
  const found = { kind: "no_such_gpu", args: { wanted: 3, found: [gpu] } } as const;
  expect(gpuProblemWords({ ...found, args: { ...found.args, found: [gpu] } })).toBe(
    "There is no GPU number 3. This computer has 1: Vulkan, Intel UHD (2).",
  );
});

test("devices are described in German on a German page", () => {
  showLanguage("de");
  expect(deviceWords({ ...CPU, facts: [{ kind: "threads", count: 1 }] })).toBe("CPU, 1 Thread");
  expect(deviceWords(RADEON)).toBe("Vulkan, AMD Radeon 780M, bitgleich mit der CPU");
  expect(noteWords(NOTE)).toBe(
    "Die GPU (Vulkan, Intel UHD (2)) braucht 4,1 ms pro Token, die CPU 18 ms. Verwendet wird die GPU.",
  );
  expect(remarkWords({ kind: "no_room", role: "draft" })).toBe(
    "Das Draft-Modell läuft auf der CPU: Es passt nicht in den GPU-Speicher.",
  );
  expect(remarkWords({ kind: "cpu_instead", problem: { kind: "no_gpu", args: "metal" } })).toBe(
    "Metal hat auf diesem Computer keine GPU gefunden. Stattdessen wird die CPU verwendet.",
  );
});
