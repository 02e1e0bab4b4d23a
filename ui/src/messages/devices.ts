/** Devices in words: labels, the reasons for the device in use, and problems of GPUs. */
import type { DeviceFact } from "../bindings/DeviceFact";
import type { DeviceLabel } from "../bindings/DeviceLabel";
import type { DeviceNote } from "../bindings/DeviceNote";
import type { DeviceRemark } from "../bindings/DeviceRemark";
import type { GpuProblem } from "../bindings/GpuProblem";
import { locale } from "./locale.svelte";
import { count, decimal } from "./numbers";
import { t } from "./say";

/** "Vulkan, AMD Radeon 780M, bit-identical to the CPU"; empty for a label without a name. */
export function deviceWords({ api, name, facts }: DeviceLabel): string {
  return [api, name, ...facts.map(factWords)].filter(Boolean).join(", ");
}

/** All but the name: "Vulkan, bit-identical to the CPU". */
export function deviceFacts(label: DeviceLabel): string {
  return deviceWords({ ...label, name: "" });
}

/** "CPU · 2 threads", the name of a GPU, or the host of a server. */
export function shortDevice({ name, facts }: DeviceLabel): string {
  const [first] = facts;
  if (first?.kind === "host") return first.address;
  return first?.kind === "threads" ? `${name} · ${factWords(first)}` : name;
}

function factWords(fact: DeviceFact): string {
  switch (fact.kind) {
    case "threads":
      return t("device.threads", { count: fact.count });
    case "instructions":
      return fact.name;
    case "memory":
      return `${count(fact.gigabytes)} GB`;
    case "host":
      return fact.address;
    default:
      return t(`device.${fact.kind}`);
  }
}

/** Why a device other than the chosen one is used, in whole sentences. */
export function remarkWords(remark: DeviceRemark): string {
  switch (remark.kind) {
    case "cpu_instead":
      return t("remark.cpu_instead", { problem: gpuProblemWords(remark.problem) });
    case "automatic":
      return t("remark.automatic", { gpu: remark.gpu });
    case "failed":
      return t(`remark.failed.${remark.role}`);
    case "no_room":
      return t("remark.no_room", { model: t(`role.${remark.role}`) });
    case "cannot_run":
      return t("remark.cannot_run", { model: t(`role.${remark.role}`), feature: remark.feature });
    case "load_failed":
      return t("remark.load_failed", { model: t(`role.${remark.role}`), detail: remark.detail });
  }
}

/** Why a device was selected automatically, as a whole sentence. */
export function noteWords(note: DeviceNote): string {
  if (note.kind === "not_opened") return remarkWords(note.remark);
  const { gpu } = note;
  if (note.kind === "not_measured") return t("note.not_measured", { gpu, detail: note.detail });
  return t(`note.measured.${note.role}`, {
    gpu,
    there: milliseconds(note.gpu_ms),
    here: milliseconds(note.cpu_ms),
    used: note.gpu_ms < note.cpu_ms ? "GPU" : "CPU",
  });
}

function milliseconds(ms: number): string {
  if (ms >= 10) return decimal(ms, 0);
  return decimal(ms, ms >= 1 ? 1 : 2);
}

/** Why a GPU cannot be used, in whole sentences. */
export function gpuProblemWords({ kind, args }: GpuProblem): string {
  switch (kind) {
    case "not_built":
      if (args.gpu === "any") return t("gpu.no_gpu.any");
      return t(`gpu.not_built.${args.gpu}.${args.seen ? "seen" : "unseen"}`);
    case "no_gpu":
      return t(`gpu.no_gpu.${args}`);
    case "software_only":
      return t("gpu.software_only", { programs: args.join("; ") });
    case "no_such_gpu": {
      const found = args.found.map((name, at) => `${count(at + 1)}: ${name}`).join("; ");
      return t("gpu.no_such_gpu", { wanted: count(args.wanted), found });
    }
    case "gone":
      return t("gpu.gone", { gpu: args });
    case "old_driver":
      return t("gpu.old_driver", { found: version(args.found), needed: version(args.needed) });
    case "no_libraries":
      return t("gpu.no_libraries", { missing: new Intl.ListFormat(locale()).format(args) });
    case "failed":
      return t(`gpu.failed.${args.gpu}`, { reason: args.reason });
  }
}

/** A CUDA version: 12040 is "12.4". */
function version(number: number): string {
  return `${Math.trunc(number / 1000)}.${Math.trunc((number % 1000) / 10)}`;
}
