/** Sample models for the backend in a browser: installed ones, the hub's, downloads, a device. */
import type { CatalogueFamily } from "../bindings/CatalogueFamily";
import type { CatalogueModel } from "../bindings/CatalogueModel";
import type { DeviceLabel } from "../bindings/DeviceLabel";
import type { Download } from "../bindings/Download";
import type { FoundRepository } from "../bindings/FoundRepository";
import type { ModelDetail } from "../bindings/ModelDetail";
import type { ModelEntry } from "../bindings/ModelEntry";
import type { Recommendation } from "../bindings/Recommendation";
import type { RecommendationKind } from "../bindings/RecommendationKind";
import type { Repository } from "../bindings/Repository";

/** Device of the sample models. */
export const CPU: DeviceLabel = {
  api: null,
  name: "CPU",
  facts: [
    { kind: "threads", count: 2 },
    { kind: "instructions", name: "AVX-512" },
  ],
};

const FREE_BYTES = 12e9;
const FREE_DISK_BYTES = 15e9;
/** Bandwidth of reading weights. */
const BYTES_PER_SECOND = 32e9;

/** Memory of a model, estimated as in the shell. */
export function memoryOf(sizeBytes: number): { memory_bytes: number; fits: boolean } {
  const memory_bytes = Math.round(sizeBytes * 1.125);
  return { memory_bytes, fits: memory_bytes <= FREE_BYTES };
}

export function fileDetail(
  architecture: string,
  bytes: number,
  context: number | null,
): ModelDetail {
  return { kind: "file", architecture, bytes, context };
}

export const STARTER: ModelEntry = {
  id: "starter",
  label: "Starter 8.1M · Q8_0",
  detail: fileDetail("llama", 8_795_000, 1024),
  kind: "bundled",
  name: "starter",
  size_bytes: 8.8e6,
  ...memoryOf(8.8e6),
  parameters: 8.1e6,
  context: 1024,
  recommended: null,
  licence: "apache-2.0",
  speed: { plain: 3120, drafted: 3980, measured: true },
  problem: null,
};

export const TARGETS: ModelEntry[] = [
  STARTER,
  {
    ...STARTER,
    id: "starter-draft",
    label: "Starter draft 1.1M · Q8_0",
    detail: fileDetail("llama", 1_312_000, 1024),
    name: "starter-draft",
    size_bytes: 1.3e6,
    ...memoryOf(1.3e6),
    parameters: 1.1e6,
  },
  {
    ...STARTER,
    id: "/home/me/.local/share/dev.foretoken/models/storyteller-30m.gguf",
    label: "Storyteller 30.2M · F16",
    detail: fileDetail("llama", 60_620_000, 2048),
    kind: "local",
    name: "storyteller-30m.gguf",
    size_bytes: 60.6e6,
    ...memoryOf(60.6e6),
    parameters: 30.2e6,
    context: 2048,
    recommended: {
      temperature: 0.6,
      top_k: 20,
      top_p: 0.95,
      min_p: null,
      repetition_penalty: null,
      repeat_last_n: null,
    },
  },
  {
    ...STARTER,
    id: "/home/me/.cache/huggingface/hub/models--unsloth--Qwen3-0.6B-GGUF/snapshots/abc/Qwen3-0.6B-Q8_0.gguf",
    label: "Qwen3 0.6B · Q8_0",
    detail: fileDetail("qwen3", 639_200_000, 40_960),
    kind: "downloaded",
    name: "unsloth/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf",
    size_bytes: 639.2e6,
    ...memoryOf(639.2e6),
    parameters: 751.6e6,
    context: 40_960,
  },
  {
    ...STARTER,
    id: "/models/mamba-130m.gguf",
    label: "mamba-130m.gguf",
    detail: fileDetail("mamba", 137_400_000, null),
    kind: "added",
    name: "/models/mamba-130m.gguf",
    size_bytes: 137.4e6,
    ...memoryOf(137.4e6),
    parameters: 129.1e6,
    context: 0,
    problem: {
      kind: "unsupported_architecture",
      reason: "the architecture 'mamba' is not supported yet: expected llama, qwen3 or gemma3",
    },
  },
];

function model(
  label: string,
  repository: string,
  file: string | null,
  size_bytes: number,
  parameters: number,
  licence: string,
  gated = false,
): CatalogueModel {
  const id = file === null ? repository : `${repository}:${file}`;
  const { memory_bytes, fits } = memoryOf(size_bytes);
  return {
    id,
    repository,
    file,
    label,
    size_bytes,
    memory_bytes,
    fits,
    has_disk: size_bytes < FREE_DISK_BYTES,
    tokens_per_second: BYTES_PER_SECOND / size_bytes,
    parameters,
    licence,
    gated,
  };
}

const APACHE = "Apache-2.0";
const GEMMA = "Gemma terms of use";
const LLAMA = "Llama community licence";

function qwen(size: string, bytes: number, parameters: number, quantisation = "Q4_K_M") {
  const label = `Qwen3 ${size} · ${quantisation}`;
  const file = `Qwen3-${size}-${quantisation}.gguf`;
  return model(label, `unsloth/Qwen3-${size}-GGUF`, file, bytes, parameters, APACHE);
}

function gemma(size: string, bytes: number, parameters: number, quantisation: string) {
  const label = `Gemma 3 ${size} · ${quantisation}`;
  const file = `gemma-3-${size}-it-${quantisation}.gguf`;
  return model(label, `ggml-org/gemma-3-${size}-it-GGUF`, file, bytes, parameters, GEMMA, true);
}

function head(size: string, kind: string, repository: string, parameters: number) {
  const label = `Qwen3 ${size} head · ${kind}`;
  return model(label, repository, null, 2 * parameters, parameters, "unknown");
}

export const FAMILIES: CatalogueFamily[] = [
  {
    id: "qwen3",
    name: "Qwen3",
    uses: ["reasoning", "languages"],
    targets: [
      qwen("4B", 2.5e9, 4.02e9),
      qwen("8B", 5.03e9, 8.19e9),
      qwen("14B", 9e9, 14.8e9),
      qwen("32B", 19.8e9, 32.8e9),
    ],
    drafts: [qwen("0.6B", 639.2e6, 751.6e6, "Q8_0")],
    heads: [
      head("4B", "EAGLE-3", "AngelSlim/Qwen3-4B_eagle3", 218e6),
      head("8B", "EAGLE-3", "AngelSlim/Qwen3-8B_eagle3", 400e6),
      head("8B", "DFlash", "z-lab/Qwen3-8B-DFlash-b16", 965e6),
    ],
  },
  {
    id: "gemma-3",
    name: "Gemma 3",
    uses: ["languages"],
    targets: [gemma("4b", 2.49e9, 3.88e9, "Q4_K_M"), gemma("12b", 7.3e9, 11.8e9, "Q4_K_M")],
    drafts: [gemma("270m", 292e6, 268e6, "Q8_0"), gemma("1b", 806e6, 999e6, "Q4_K_M")],
    heads: [],
  },
  {
    id: "llama-3",
    name: "Llama 3",
    uses: [],
    targets: [
      model(
        "Llama 3.1 8B Instruct · Q4_K_M",
        "bartowski/Meta-Llama-3.1-8B-Instruct-GGUF",
        "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf",
        4.92e9,
        8.03e9,
        LLAMA,
      ),
    ],
    drafts: [
      model(
        "Llama 3.2 1B Instruct · Q4_K_M",
        "bartowski/Llama-3.2-1B-Instruct-GGUF",
        "Llama-3.2-1B-Instruct-Q4_K_M.gguf",
        808e6,
        1.24e9,
        LLAMA,
      ),
    ],
    heads: [],
  },
];

function pair(
  kind: RecommendationKind,
  target: CatalogueModel,
  draft: CatalogueModel,
): Recommendation {
  const memory_bytes = target.memory_bytes + draft.memory_bytes;
  return { kind, target: { ...target, memory_bytes }, draft, speedup: null };
}

function coder(size: string, bytes: number, parameters: number) {
  const file = `qwen2.5-coder-${size.toLowerCase()}-instruct-q4_k_m.gguf`;
  const repository = `Qwen/Qwen2.5-Coder-${size}-Instruct-GGUF`;
  return model(`Qwen2.5 Coder ${size} · Q4_K_M`, repository, file, bytes, parameters, "apache-2.0");
}

const GUESSER = model(
  "Qwen3 0.6B · Q8_0",
  "Qwen/Qwen3-0.6B-GGUF",
  "Qwen3-0.6B-Q8_0.gguf",
  639.4e6,
  600e6,
  "apache-2.0",
);

export const RECOMMENDATIONS: Recommendation[] = [
  pair("best", qwen("8B", 5.03e9, 8.19e9), GUESSER),
  pair("faster", qwen("4B", 2.5e9, 4.02e9), GUESSER),
  {
    ...pair("code", coder("1.5B", 1.12e9, 1.54e9), coder("0.5B", 491.4e6, 494e6)),
    speedup: [1.05, 1.54],
  },
];

const QUANTISATIONS: [string, number][] = [
  ["Q2_K", 3.2e9],
  ["Q4_K_M", 4.9e9],
  ["Q6_K", 6.6e9],
  ["Q8_0", 8.5e9],
  ["F16", 16.1e9],
];

/** Repositories of the sample hub by words of their names. */
export function foundBy(words: string): FoundRepository[] {
  const names = ["unsloth/Qwen3-8B-GGUF", "bartowski/Qwen3-8B-GGUF", "someone/Qwen3-8B-Story-GGUF"];
  return names
    .filter((name) => name.toLowerCase().includes(words.toLowerCase()))
    .map((id, at) => ({
      id,
      downloads: Math.round(182_000 / 10 ** at),
      licence: "apache-2.0",
      gated: at === 2,
    }));
}

/** A repository with a file per quantisation, some with long names. */
export function repositoryCalled(id: string): Repository {
  const name =
    id
      .split("/")
      .at(-1)
      ?.replace(/-GGUF$/i, "") ?? id;
  const files = QUANTISATIONS.map(([quantisation, size_bytes]) => {
    const parts = size_bytes > 16e9 ? "-00001-of-00002" : "";
    const file = `${quantisation}/${name}-${quantisation}${parts}.gguf`;
    return { id: `${id}:${file}`, file, size_bytes, ...memoryOf(size_bytes) };
  });
  return { id, licence: "apache-2.0", gated: false, files };
}

function download(id: string, done: number, change: Partial<Download>): Download {
  const [repository = "", file = null] = id.split(":");
  const found = FAMILIES.flatMap(({ targets, drafts }) => [...targets, ...drafts]).find(
    (offered) => offered.id === id,
  );
  const total_bytes = found?.size_bytes ?? 4e9;
  return {
    id,
    repository,
    file,
    done_bytes: Math.round(total_bytes * done),
    total_bytes,
    bytes_per_second: 0,
    state: "running",
    reason: null,
    ...change,
  };
}

/** One download in each state. */
export const SAMPLE_DOWNLOADS: Download[] = [
  download("unsloth/Qwen3-0.6B-GGUF:Qwen3-0.6B-Q8_0.gguf", 1, { state: "done" }),
  download("ggml-org/gemma-3-4b-it-GGUF:gemma-3-4b-it-Q4_K_M.gguf", 0, {
    state: "failed",
    reason:
      "ggml-org/gemma-3-4b-it-GGUF is gated: accept its licence at https://huggingface.co/ggml-org/gemma-3-4b-it-GGUF and set a token.",
  }),
  download("unsloth/Qwen3-14B-GGUF:Qwen3-14B-Q4_K_M.gguf", 0.31, {
    state: "paused",
    reason: "the disk is full: 6.2 GB are needed, and 1.2 GB are free in /home/me/.cache.",
  }),
  download("ggml-org/gemma-3-12b-it-GGUF:gemma-3-12b-it-Q4_K_M.gguf", 0.62, { state: "paused" }),
  download("bartowski/Llama-3.2-1B-Instruct-GGUF:Llama-3.2-1B-Instruct-Q4_K_M.gguf", 1, {
    state: "verifying",
  }),
  download(
    "someone-with-a-long-name/An-Exceptionally-Long-Repository-Name-of-a-Merged-Model-v2.1-GGUF:quantised/An-Exceptionally-Long-File-Name-of-a-Merged-Model-v2.1-Instruct-Q4_K_M-00001-of-00003.gguf",
    0,
    { state: "queued" },
  ),
  download("unsloth/Qwen3-8B-GGUF:Qwen3-8B-Q4_K_M.gguf", 0.42, { bytes_per_second: 31e6 }),
];
