/** Geräte: Angaben, Gründe für das verwendete Gerät, und Probleme von GPUs. */
import type { devices as english } from "../en/devices";

export const devices = {
  "device.automatic": "Automatisch",
  "device.threads": "{count, plural, one {# Thread} other {# Threads}}",
  "device.plain_instructions": "ohne Befehlssatzerweiterung",
  "device.software": "Software",
  "device.bit_identical": "bitgleich mit der CPU",
  "device.own_rounding": "rundet anders als die CPU",
  "device.one_tile": "eine Kachelgröße für alle Zeilen",
  "role.target": "Zielmodell",
  "role.draft": "Draft-Modell",
  "remark.cpu_instead": "{problem} Stattdessen wird die CPU verwendet.",
  "remark.automatic":
    "Die gewählte GPU wurde nicht gefunden: {gpu}. Das Gerät wird automatisch gewählt.",
  "remark.no_room": "Das {model} läuft auf der CPU: Es passt nicht in den GPU-Speicher.",
  "remark.cannot_run":
    "Das {model} läuft auf der CPU, weil Foretoken auf GPUs noch nicht unterstützt: {feature}.",
  "remark.load_failed":
    "Das {model} läuft auf der CPU, weil es sich nicht auf die GPU laden ließ: {detail}",
  "remark.failed.target":
    "Die GPU ist ausgefallen, deshalb läuft das Zielmodell jetzt auf der CPU. Wähle ein anderes Gerät, oder starte Foretoken neu, um die GPU noch einmal zu versuchen.",
  "remark.failed.draft":
    "Das Draft-Modell läuft auf der CPU, weil es auf der GPU fehlgeschlagen ist.",
  "note.measured.target":
    "Die GPU ({gpu}) braucht {there} ms pro Token, die CPU {here} ms. Verwendet wird die {used}.",
  "note.measured.draft":
    "Für Drafts braucht die GPU ({gpu}) {there} ms pro Token, die CPU {here} ms. Verwendet wird die {used}.",
  "note.not_measured": "Die GPU ({gpu}) wird nicht verwendet: {detail}",
  "gpu.not_built.cuda.seen":
    "Dieser Computer hat eine NVIDIA-GPU. Eine mit `make cuda-build` erstellte Version kann sie nutzen.",
  "gpu.not_built.cuda.unseen":
    "Diese Version unterstützt CUDA nicht, eine mit `make cuda-build` erstellte schon. Auf diesem Computer wurde auch kein NVIDIA-Treiber gefunden.",
  "gpu.not_built.metal.seen":
    "Dieser Computer hat eine GPU mit Metal. Eine mit `--features metal` erstellte Version kann sie nutzen.",
  "gpu.not_built.metal.unseen":
    "Diese Version unterstützt Metal nicht, das es nur auf Apple-Computern gibt.",
  "gpu.no_gpu.cuda":
    "CUDA hat keine NVIDIA-GPU gefunden. Wenn dieser Computer eine hat, installiere den NVIDIA-Treiber.",
  "gpu.no_gpu.metal": "Metal hat auf diesem Computer keine GPU gefunden.",
  "gpu.no_gpu.any":
    "Über Vulkan, Metal oder DX12 wurde keine GPU gefunden. Wenn dieser Computer eine hat, installiere den Treiber des Herstellers.",
  "gpu.software_only":
    "Dieser Computer hat keine GPU, nur einen Software-Renderer ({programs}), der langsamer ist als die CPU. Um ihn trotzdem zu verwenden, setze FORETOKEN_SOFTWARE_GPU=1.",
  "gpu.no_such_gpu": "Es gibt keine GPU Nummer {wanted}. Dieser Computer hat {found}.",
  "gpu.gone": "Die gewählte GPU wurde nicht gefunden: {gpu}.",
  "gpu.old_driver":
    "Der NVIDIA-Treiber ist zu alt: Er unterstützt CUDA {found}, diese Version braucht {needed} oder neuer. Aktualisiere den Treiber.",
  "gpu.no_libraries":
    "Die CUDA-Bibliotheken sind unvollständig: {missing} nicht gefunden. Installiere NVIDIAs CUDA-Toolkit oder nur dessen Laufzeitbibliotheken.",
  "gpu.failed.cuda": "CUDA lässt sich nicht verwenden: {reason}.",
  "gpu.failed.metal": "Metal lässt sich nicht verwenden: {reason}.",
  "gpu.failed.any": "Die GPU lässt sich nicht verwenden: {reason}.",
} as const satisfies Record<keyof typeof english, string>;
