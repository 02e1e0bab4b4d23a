/** Devices: facts about them, the reasons for the device in use, and problems of GPUs. */
export const devices = {
  "device.automatic": "Automatic",
  "device.threads": "{count, plural, one {# thread} other {# threads}}",
  "device.plain_instructions": "plain instructions",
  "device.software": "software",
  "device.bit_identical": "bit-identical to the CPU",
  "device.own_rounding": "rounds in its own way",
  "device.one_tile": "one tile for all rows",
  "role.target": "target model",
  "role.draft": "draft model",
  "remark.cpu_instead": "{problem} Using the CPU instead.",
  "remark.automatic": "The GPU that was chosen is not there: {gpu}. Choosing automatically.",
  "remark.no_room": "The {model} runs on the CPU: it does not fit in GPU memory.",
  "remark.cannot_run":
    "The {model} runs on the CPU: Foretoken's GPU engine cannot run {feature} yet.",
  "remark.load_failed":
    "The {model} runs on the CPU, because loading it on the GPU failed: {detail}",
  "remark.failed.target":
    "The GPU failed, so the target model now runs on the CPU. Choose another device, or start Foretoken again to try the GPU once more.",
  "remark.failed.draft": "The draft model runs on the CPU because it failed on the GPU.",
  "note.measured.target":
    "The GPU ({gpu}) takes {there} ms a token, the CPU {here} ms: using the {used}.",
  "note.measured.draft":
    "For drafts the GPU ({gpu}) takes {there} ms a token, the CPU {here} ms: using the {used}.",
  "note.not_measured": "The GPU ({gpu}) is not used: {detail}",
  "gpu.not_built.cuda.seen":
    "This computer has an NVIDIA GPU; a build made with `make cuda-build` can use it.",
  "gpu.not_built.cuda.unseen":
    "This build does not support CUDA; one made with `make cuda-build` does. No NVIDIA driver was found on this computer either.",
  "gpu.not_built.metal.seen":
    "This computer has a GPU that supports Metal; a build with `--features metal` can use it.",
  "gpu.not_built.metal.unseen":
    "This build does not support Metal, which only Apple computers have.",
  "gpu.no_gpu.cuda": "CUDA found no NVIDIA GPU. If this computer has one, install NVIDIA's driver.",
  "gpu.no_gpu.metal": "Metal found no GPU on this computer.",
  "gpu.no_gpu.any":
    "No GPU was found by Vulkan, Metal or DX12. If this computer has one, install its maker's driver.",
  "gpu.software_only":
    "This computer has no GPU, only a software renderer ({programs}), which is slower than the CPU. To use it anyway, set FORETOKEN_SOFTWARE_GPU=1.",
  "gpu.no_such_gpu": "There is no GPU number {wanted}. This computer has {found}.",
  "gpu.gone": "The GPU that was chosen is not there: {gpu}.",
  "gpu.old_driver":
    "NVIDIA's driver is too old: it supports CUDA {found}, and this build needs {needed} or newer. Update the driver.",
  "gpu.no_libraries":
    "CUDA's libraries are incomplete: {missing} not found. Install NVIDIA's CUDA toolkit, or only its runtime libraries.",
  "gpu.failed.cuda": "CUDA cannot be used: {reason}.",
  "gpu.failed.metal": "Metal cannot be used: {reason}.",
  "gpu.failed.any": "The GPU cannot be used: {reason}.",
} as const;
