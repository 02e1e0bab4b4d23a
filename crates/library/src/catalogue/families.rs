//! Data of the catalogue: names and sizes from the hub, sampling from the makers' pages.

use super::{CatalogueFamily, CatalogueModel, MakersSampling, Use};

/// A model whose repository is open to everyone, as all of these are.
const fn open(
    label: &'static str,
    [repository, file]: [&'static str; 2],
    bytes: u64,
    parameters: u64,
    licence: &'static str,
) -> CatalogueModel {
    let active = parameters;
    let (file, gated, ran) = (Some(file), false, false);
    CatalogueModel { label, repository, file, bytes, parameters, active, on_disk: 0, licence, gated, ran }
}

/// A model that Foretoken's authors ran.
const fn ran(model: CatalogueModel) -> CatalogueModel {
    CatalogueModel { ran: true, ..model }
}

// Drafts and targets of several families.
const QWEN3_0_6B: CatalogueModel = open(
    "Qwen3 0.6B · Q8_0",
    ["Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf"],
    639_446_688,
    600_000_000,
    "apache-2.0",
);

pub(super) const FAMILIES: &[CatalogueFamily] = &[
    CatalogueFamily {
        id: "qwen3",
        name: "Qwen3",
        uses: &[Use::Reasoning, Use::Languages],
        sampling: MakersSampling { temperature: 0.6, top_p: 0.95, top_k: 20 },
        drafts: &[QWEN3_0_6B],
        targets: &[
            open(
                "Qwen3 4B · Q4_K_M",
                ["Qwen/Qwen3-4B-GGUF", "Qwen3-4B-Q4_K_M.gguf"],
                2_497_280_256,
                4_020_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3 8B · Q4_K_M",
                ["Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf"],
                5_027_783_488,
                8_190_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3 14B · Q4_K_M",
                ["Qwen/Qwen3-14B-GGUF", "Qwen3-14B-Q4_K_M.gguf"],
                9_001_752_960,
                14_770_000_000,
                "apache-2.0",
            ),
        ],
    },
    // These models do not reason, so their makers recommend other sampling.
    CatalogueFamily {
        id: "qwen3-2507",
        name: "Qwen3 2507",
        uses: &[Use::Languages],
        sampling: MakersSampling { temperature: 0.7, top_p: 0.8, top_k: 20 },
        drafts: &[QWEN3_0_6B],
        targets: &[
            open(
                "Qwen3 4B 2507 · Q4_K_M",
                ["bartowski/Qwen_Qwen3-4B-Instruct-2507-GGUF", "Qwen_Qwen3-4B-Instruct-2507-Q4_K_M.gguf"],
                2_497_280_736,
                4_020_000_000,
                "apache-2.0",
            ),
            CatalogueModel {
                active: 3_300_000_000,
                ..open(
                    "Qwen3 30B A3B 2507 · Q4_K_M",
                    [
                        "bartowski/Qwen_Qwen3-30B-A3B-Instruct-2507-GGUF",
                        "Qwen_Qwen3-30B-A3B-Instruct-2507-Q4_K_M.gguf",
                    ],
                    18_600_000_000,
                    30_500_000_000,
                    "apache-2.0",
                )
            },
        ],
    },
    // Each of these files contains an MTP block as a draft head.
    CatalogueFamily {
        id: "qwen3-5",
        name: "Qwen3.5, 3.6, 3.8",
        uses: &[Use::Reasoning, Use::Code, Use::Languages, Use::Pictures],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 20 },
        drafts: &[],
        targets: &[
            open(
                "Qwen3.5 0.8B · Q4_K_M · MTP",
                ["unsloth/Qwen3.5-0.8B-MTP-GGUF", "Qwen3.5-0.8B-Q4_K_M.gguf"],
                548_000_000,
                778_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3.5 2B · Q4_K_M · MTP",
                ["unsloth/Qwen3.5-2B-MTP-GGUF", "Qwen3.5-2B-Q4_K_M.gguf"],
                1_328_000_000,
                1_949_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3.5 4B · Q4_K_M · MTP",
                ["unsloth/Qwen3.5-4B-MTP-GGUF", "Qwen3.5-4B-Q4_K_M.gguf"],
                2_834_975_040,
                4_333_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3.5 9B · Q4_K_M · MTP",
                ["unsloth/Qwen3.5-9B-MTP-GGUF", "Qwen3.5-9B-Q4_K_M.gguf"],
                5_868_826_976,
                9_203_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3.6 27B · Q4_K_M · MTP",
                ["unsloth/Qwen3.6-27B-MTP-GGUF", "Qwen3.6-27B-Q4_K_M.gguf"],
                17_106_773_120,
                27_310_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen3.8 27B · Q4_K_M · MTP",
                ["unsloth/Qwen3.8-27B-GGUF", "Qwen3.8-27B-UD-Q4_K_M.gguf"],
                16_464_440_224,
                27_310_000_000,
                "apache-2.0",
            ),
            CatalogueModel {
                active: 3_000_000_000,
                ..open(
                    "Qwen3.6 35B A3B · Q4_K_M · MTP",
                    ["unsloth/Qwen3.6-35B-A3B-MTP-GGUF", "Qwen3.6-35B-A3B-UD-Q4_K_M.gguf"],
                    22_663_387_424,
                    35_500_000_000,
                    "apache-2.0",
                )
            },
        ],
    },
    CatalogueFamily {
        id: "qwen2-5",
        name: "Qwen2.5",
        uses: &[Use::Languages],
        sampling: MakersSampling { temperature: 0.7, top_p: 0.8, top_k: 20 },
        drafts: &[open(
            "Qwen2.5 0.5B · Q8_0",
            ["Qwen/Qwen2.5-0.5B-Instruct-GGUF", "qwen2.5-0.5b-instruct-q8_0.gguf"],
            675_710_816,
            494_000_000,
            "apache-2.0",
        )],
        targets: &[
            open(
                "Qwen2.5 7B · Q4_K_M",
                ["Qwen/Qwen2.5-7B-Instruct-GGUF", "qwen2.5-7b-instruct-q4_k_m-00001-of-00002.gguf"],
                4_683_073_632,
                7_620_000_000,
                "apache-2.0",
            ),
            open(
                "Qwen2.5 14B · Q4_K_M",
                ["Qwen/Qwen2.5-14B-Instruct-GGUF", "qwen2.5-14b-instruct-q4_k_m-00001-of-00003.gguf"],
                8_988_110_496,
                14_770_000_000,
                "apache-2.0",
            ),
        ],
    },
    CatalogueFamily {
        id: "qwen2-5-coder",
        name: "Qwen2.5 Coder",
        uses: &[Use::Code],
        sampling: MakersSampling { temperature: 0.7, top_p: 0.8, top_k: 20 },
        drafts: &[ran(open(
            "Qwen2.5 Coder 0.5B · Q4_K_M",
            ["Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"],
            491_400_064,
            494_000_000,
            "apache-2.0",
        ))],
        targets: &[
            ran(open(
                "Qwen2.5 Coder 1.5B · Q4_K_M",
                ["Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"],
                1_117_320_768,
                1_540_000_000,
                "apache-2.0",
            )),
            open(
                "Qwen2.5 Coder 7B · Q4_K_M",
                ["Qwen/Qwen2.5-Coder-7B-Instruct-GGUF", "qwen2.5-coder-7b-instruct-q4_k_m.gguf"],
                4_680_000_000,
                7_620_000_000,
                "apache-2.0",
            ),
        ],
    },
    CatalogueFamily {
        id: "qwen3-coder",
        name: "Qwen3 Coder",
        uses: &[Use::Code],
        sampling: MakersSampling { temperature: 0.7, top_p: 0.8, top_k: 20 },
        drafts: &[QWEN3_0_6B],
        targets: &[CatalogueModel {
            active: 3_300_000_000,
            ..open(
                "Qwen3 Coder 30B A3B · Q4_K_M",
                ["unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF", "Qwen3-Coder-30B-A3B-Instruct-Q4_K_M.gguf"],
                18_600_000_000,
                30_500_000_000,
                "apache-2.0",
            )
        }],
    },
    CatalogueFamily {
        id: "llama-3",
        name: "Llama 3",
        uses: &[],
        sampling: MakersSampling { temperature: 0.6, top_p: 0.9, top_k: 0 },
        drafts: &[open(
            "Llama 3.2 1B · Q4_K_M",
            ["bartowski/Llama-3.2-1B-Instruct-GGUF", "Llama-3.2-1B-Instruct-Q4_K_M.gguf"],
            807_694_464,
            1_240_000_000,
            "llama3.2",
        )],
        targets: &[open(
            "Llama 3.1 8B · Q4_K_M",
            ["bartowski/Meta-Llama-3.1-8B-Instruct-GGUF", "Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf"],
            4_920_739_232,
            8_030_000_000,
            "llama3.1",
        )],
    },
    CatalogueFamily {
        id: "gemma-3",
        name: "Gemma 3",
        uses: &[Use::Languages],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 64 },
        drafts: &[
            open(
                "Gemma 3 270M · Q8_0",
                ["ggml-org/gemma-3-270m-it-GGUF", "gemma-3-270m-it-Q8_0.gguf"],
                291_545_600,
                268_000_000,
                "gemma",
            ),
            open(
                "Gemma 3 1B · Q4_K_M",
                ["ggml-org/gemma-3-1b-it-GGUF", "gemma-3-1b-it-Q4_K_M.gguf"],
                806_058_240,
                1_000_000_000,
                "gemma",
            ),
        ],
        targets: &[
            open(
                "Gemma 3 4B · Q4_K_M",
                ["ggml-org/gemma-3-4b-it-GGUF", "gemma-3-4b-it-Q4_K_M.gguf"],
                2_489_757_856,
                3_880_000_000,
                "gemma",
            ),
            open(
                "Gemma 3 12B · Q4_K_M",
                ["ggml-org/gemma-3-12b-it-GGUF", "gemma-3-12b-it-Q4_K_M.gguf"],
                7_300_574_976,
                11_770_000_000,
                "gemma",
            ),
        ],
    },
    CatalogueFamily {
        id: "ministral-3",
        name: "Ministral 3",
        uses: &[Use::Languages, Use::Pictures],
        sampling: MakersSampling { temperature: 0.15, top_p: 1.0, top_k: 0 },
        drafts: &[open(
            "Ministral 3 3B · Q4_K_M",
            ["mistralai/Ministral-3-3B-Instruct-2512-GGUF", "Ministral-3-3B-Instruct-2512-Q4_K_M.gguf"],
            2_147_000_000,
            3_430_000_000,
            "apache-2.0",
        )],
        targets: &[
            open(
                "Ministral 3 8B · Q4_K_M",
                ["mistralai/Ministral-3-8B-Instruct-2512-GGUF", "Ministral-3-8B-Instruct-2512-Q4_K_M.gguf"],
                5_198_911_904,
                8_490_000_000,
                "apache-2.0",
            ),
            open(
                "Ministral 3 14B · Q4_K_M",
                ["mistralai/Ministral-3-14B-Instruct-2512-GGUF", "Ministral-3-14B-Instruct-2512-Q4_K_M.gguf"],
                8_239_593_024,
                13_510_000_000,
                "apache-2.0",
            ),
        ],
    },
    // The smallest model of this vocabulary is already as fast as a draft.
    CatalogueFamily {
        id: "gpt-oss",
        name: "gpt-oss",
        uses: &[Use::Reasoning, Use::Code],
        sampling: MakersSampling { temperature: 1.0, top_p: 1.0, top_k: 0 },
        drafts: &[],
        targets: &[CatalogueModel {
            active: 3_600_000_000,
            ..open(
                "gpt-oss 20B · MXFP4",
                ["lmstudio-community/gpt-oss-20b-GGUF", "gpt-oss-20b-MXFP4.gguf"],
                12_109_566_624,
                20_900_000_000,
                "apache-2.0",
            )
        }],
    },
    CatalogueFamily {
        id: "gemma-4",
        name: "Gemma 4",
        uses: &[Use::Reasoning, Use::Languages],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 64 },
        drafts: &[CatalogueModel {
            active: 2_300_000_000,
            // Per-layer embeddings.
            on_disk: 1_600_000_000,
            ..open(
                "Gemma 4 E2B · Q4_K_M",
                ["unsloth/gemma-4-E2B-it-GGUF", "gemma-4-E2B-it-Q4_K_M.gguf"],
                3_107_000_000,
                5_100_000_000,
                "apache-2.0",
            )
        }],
        targets: &[
            open(
                "Gemma 4 12B · Q4_K_M",
                ["unsloth/gemma-4-12b-it-GGUF", "gemma-4-12b-it-Q4_K_M.gguf"],
                7_121_861_440,
                11_900_000_000,
                "apache-2.0",
            ),
            open(
                "Gemma 4 31B · Q4_K_M",
                ["unsloth/gemma-4-31B-it-GGUF", "gemma-4-31B-it-Q4_K_M.gguf"],
                18_323_733_440,
                30_700_000_000,
                "apache-2.0",
            ),
        ],
    },
    // A token reads about as many bytes of this target as of the draft.
    CatalogueFamily {
        id: "gemma-4-e4b",
        name: "Gemma 4 E4B",
        uses: &[Use::Reasoning, Use::Languages, Use::Pictures],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 64 },
        drafts: &[],
        targets: &[CatalogueModel {
            active: 4_500_000_000,
            on_disk: 1_900_000_000,
            ..open(
                "Gemma 4 E4B · Q4_K_M",
                ["unsloth/gemma-4-E4B-it-GGUF", "gemma-4-E4B-it-Q4_K_M.gguf"],
                4_977_171_584,
                8_000_000_000,
                "apache-2.0",
            )
        }],
    },
    // As above.
    CatalogueFamily {
        id: "gemma-4-26b",
        name: "Gemma 4 26B A4B",
        uses: &[Use::Reasoning, Use::Languages],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 64 },
        drafts: &[],
        targets: &[CatalogueModel {
            active: 3_800_000_000,
            ..open(
                "Gemma 4 26B A4B · Q4_K_M",
                ["unsloth/gemma-4-26B-A4B-it-GGUF", "gemma-4-26B-A4B-it-UD-Q4_K_M.gguf"],
                16_950_000_000,
                25_200_000_000,
                "apache-2.0",
            )
        }],
    },
    // Made for computers without a GPU. The makers also recommend a repetition penalty.
    CatalogueFamily {
        id: "lfm2-5",
        name: "LFM2.5",
        uses: &[],
        sampling: MakersSampling { temperature: 0.1, top_p: 0.1, top_k: 50 },
        drafts: &[],
        targets: &[open(
            "LFM2.5 1.2B · Q4_K_M",
            ["LiquidAI/LFM2.5-1.2B-Instruct-GGUF", "LFM2.5-1.2B-Instruct-Q4_K_M.gguf"],
            730_895_168,
            1_170_000_000,
            "lfm1.0",
        )],
    },
    CatalogueFamily {
        id: "lfm2-5-8b",
        name: "LFM2.5 8B A1B",
        uses: &[Use::Reasoning],
        sampling: MakersSampling { temperature: 0.2, top_p: 1.0, top_k: 80 },
        drafts: &[],
        targets: &[CatalogueModel {
            active: 1_500_000_000,
            ..open(
                "LFM2.5 8B A1B · Q4_K_M",
                ["LiquidAI/LFM2.5-8B-A1B-GGUF", "LFM2.5-8B-A1B-Q4_K_M.gguf"],
                5_155_564_768,
                8_470_000_000,
                "lfm1.0",
            )
        }],
    },
    CatalogueFamily {
        id: "granite-4",
        name: "Granite 4",
        uses: &[],
        sampling: MakersSampling { temperature: 0.0, top_p: 1.0, top_k: 0 },
        drafts: &[open(
            "Granite 4 350M · Q8_0",
            ["ibm-granite/granite-4.0-h-350m-GGUF", "granite-4.0-h-350m-Q8_0.gguf"],
            366_195_616,
            340_000_000,
            "apache-2.0",
        )],
        targets: &[open(
            "Granite 4 Micro 3B · Q4_K_M",
            ["ibm-granite/granite-4.0-h-micro-GGUF", "granite-4.0-h-micro-Q4_K_M.gguf"],
            1_942_564_512,
            3_190_000_000,
            "apache-2.0",
        )],
    },
    // A token reads about as many bytes of this target as of the draft.
    CatalogueFamily {
        id: "granite-4-tiny",
        name: "Granite 4 Tiny",
        uses: &[],
        sampling: MakersSampling { temperature: 0.0, top_p: 1.0, top_k: 0 },
        drafts: &[],
        targets: &[CatalogueModel {
            active: 1_000_000_000,
            ..open(
                "Granite 4 Tiny 7B A1B · Q4_K_M",
                ["ibm-granite/granite-4.0-h-tiny-GGUF", "granite-4.0-h-tiny-Q4_K_M.gguf"],
                4_230_976_352,
                6_940_000_000,
                "apache-2.0",
            )
        }],
    },
    CatalogueFamily {
        id: "glm-4-7-flash",
        name: "GLM-4.7-Flash",
        uses: &[Use::Reasoning, Use::Code],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 0 },
        drafts: &[],
        targets: &[CatalogueModel {
            active: 3_600_000_000,
            ..open(
                "GLM-4.7-Flash 30B A3B · Q4_K_M",
                ["unsloth/GLM-4.7-Flash-GGUF", "GLM-4.7-Flash-Q4_K_M.gguf"],
                18_312_339_776,
                29_900_000_000,
                "mit",
            )
        }],
    },
    CatalogueFamily {
        id: "muse-glimmer",
        name: "Muse Glimmer",
        uses: &[Use::Reasoning],
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 64 },
        drafts: &[],
        targets: &[open(
            "Muse Glimmer 30B · Q4_K_XL",
            ["unsloth/Muse-Glimmer-30B-GGUF", "Muse-Glimmer-30B-UD-Q4_K_XL.gguf"],
            15_878_222_368,
            27_900_000_000,
            "apache-2.0",
        )],
    },
    CatalogueFamily {
        id: "smollm3",
        name: "SmolLM3",
        uses: &[Use::Reasoning],
        sampling: MakersSampling { temperature: 0.6, top_p: 0.95, top_k: 0 },
        drafts: &[],
        targets: &[open(
            "SmolLM3 3B · Q4_K_M",
            ["ggml-org/SmolLM3-3B-GGUF", "SmolLM3-Q4_K_M.gguf"],
            1_915_305_312,
            3_080_000_000,
            "apache-2.0",
        )],
    },
    CatalogueFamily {
        id: "smollm2",
        name: "SmolLM2",
        uses: &[],
        sampling: MakersSampling { temperature: 0.2, top_p: 0.9, top_k: 0 },
        drafts: &[ran(open(
            "SmolLM2 135M · Q8_0",
            ["bartowski/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct-Q8_0.gguf"],
            145_000_000,
            135_000_000,
            "apache-2.0",
        ))],
        targets: &[open(
            "SmolLM2 1.7B · Q4_K_M",
            ["bartowski/SmolLM2-1.7B-Instruct-GGUF", "SmolLM2-1.7B-Instruct-Q4_K_M.gguf"],
            1_055_609_824,
            1_710_000_000,
            "apache-2.0",
        )],
    },
];
