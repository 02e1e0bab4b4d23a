//! Known pairs: which small model drafts for which large one, and where the hub has them.

use crate::bundled::draft_of;

/// A file of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueModel {
    /// "Qwen3 8B · Q4_K_M"
    pub label: &'static str,
    /// `owner/name`
    pub repository: &'static str,
    /// The path in the repository, of a split file of its first part; `None` for a folder of safetensors.
    pub file: Option<&'static str>,
    /// All parts together, when the catalogue was made; rounded where it ends in zeros. Enough to see
    /// whether it fits: what is downloaded goes by the hub's own word.
    pub bytes: u64,
    pub parameters: u64,
    /// Of them those that a token goes through: fewer in a model of experts.
    pub active: u64,
    /// Bytes that stay on the disk, where a token needs a row of them.
    pub on_disk: u64,
    /// "unknown" where nobody says it.
    pub licence: &'static str,
    /// Whether its licence has to be accepted on the hub before it can be downloaded.
    pub gated: bool,
}

/// How the makers of a family say that the tokens of its models are best chosen, on their pages on the hub.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MakersSampling {
    pub temperature: f32,
    pub top_p: f32,
    /// 0 where they name none.
    pub top_k: u32,
}

/// Models of one family, which share a vocabulary: any of the drafts suits any of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatalogueFamily {
    /// "Qwen3"
    pub name: &'static str,
    pub sampling: MakersSampling,
    pub drafts: &'static [CatalogueModel],
    pub targets: &'static [CatalogueModel],
    /// Draft heads, each for one of the targets.
    pub heads: &'static [CatalogueModel],
}

impl CatalogueModel {
    /// As downloads and installed models are called: `owner/name:file`, or `owner/name` for a folder.
    pub fn name(&self) -> String {
        match self.file {
            Some(file) => format!("{}:{file}", self.repository),
            None => self.repository.to_owned(),
        }
    }

    /// Bytes that come into memory.
    pub fn loaded_bytes(&self) -> u64 {
        self.bytes - self.on_disk
    }

    /// Bytes that a token reads, about.
    pub fn read_bytes(&self) -> u64 {
        (self.bytes as f64 * self.active as f64 / self.parameters as f64) as u64
    }
}

impl CatalogueFamily {
    /// All its models and what they are here for, drafts first.
    pub fn models(&self) -> impl Iterator<Item = (&'static str, &'static CatalogueModel)> {
        let kind = |role, models: &'static [CatalogueModel]| models.iter().map(move |model| (role, model));
        kind("draft", self.drafts).chain(kind("head", self.heads)).chain(kind("target", self.targets))
    }
}

/// The known families.
pub fn catalogue() -> &'static [CatalogueFamily] {
    FAMILIES
}

/// Whether `draft` was made for `target`, or the catalogue has the two as a pair. Models go by the names of their
/// files, wherever those lie, and in any quantisation.
pub fn is_known_pair(target: &str, draft: &str) -> bool {
    if draft_of(target) == Some(draft) {
        return true;
    }
    let (target, draft) = (model_of(target), model_of(draft));
    let has = |models: &[CatalogueModel], wanted: &str| {
        models.iter().any(|one| one.file.is_some_and(|file| model_of(file) == wanted))
    };
    FAMILIES.iter().any(|family| has(family.targets, &target) && has(family.drafts, &draft))
}

/// How the makers of a model say that its tokens are best chosen, where the catalogue knows it: by the name of its
/// file, wherever that lies, and in any quantisation. What is said in the file itself goes first.
pub fn makers_sampling(file: &str) -> Option<MakersSampling> {
    let model = model_of(file);
    let is_it = |one: &CatalogueModel| one.file.is_some_and(|file| model_of(file) == model);
    let has = |family: &&CatalogueFamily| family.drafts.iter().chain(family.targets).any(is_it);
    FAMILIES.iter().find(has).map(|family| family.sampling)
}

/// "qwen3-8b" of "owner/name:folder/Qwen3-8B-Q4_K_M-00001-of-00002.gguf".
fn model_of(file: &str) -> String {
    let name = file.rsplit(['/', '\\', ':']).next().unwrap_or(file).to_lowercase();
    let mut name = name.trim_end_matches(".gguf");
    if let Some((whole, _)) = name.split_once("-00001-of-") {
        name = whole;
    }
    match name.rsplit_once(['-', '.']) {
        // Unsloth's dynamic ones are called so.
        Some((model, quantisation)) if is_quantisation(quantisation) => {
            model.strip_suffix("-ud").unwrap_or(model).to_owned()
        }
        _ => name.to_owned(),
    }
}

/// "q4_k_m", "iq2_xxs", "bf16", "mxfp4".
fn is_quantisation(word: &str) -> bool {
    let of_blocks = word.trim_start_matches('i').strip_prefix('q');
    of_blocks.is_some_and(|bits| bits.starts_with(|c: char| c.is_ascii_digit()))
        || ["f16", "bf16", "f32", "mxfp4"].contains(&word)
}

/// A model whose repository is open to everyone, as all of these are.
const fn open(
    label: &'static str,
    [repository, file]: [&'static str; 2],
    bytes: u64,
    parameters: u64,
    licence: &'static str,
) -> CatalogueModel {
    let active = parameters;
    let (file, gated) = (Some(file), false);
    CatalogueModel { label, repository, file, bytes, parameters, active, on_disk: 0, licence, gated }
}

/// A draft head of 16 bits a weight, of which nobody says a licence.
const fn head(label: &'static str, repository: &'static str, parameters: u64) -> CatalogueModel {
    let bytes = 2 * parameters;
    let active = parameters;
    CatalogueModel {
        label,
        repository,
        file: None,
        bytes,
        parameters,
        active,
        on_disk: 0,
        licence: "unknown",
        gated: false,
    }
}

// Those that `pairs.rs` names, too.
pub(crate) const QWEN3_0_6B: CatalogueModel = open(
    "Qwen3 0.6B · Q8_0",
    ["Qwen/Qwen3-0.6B-GGUF", "Qwen3-0.6B-Q8_0.gguf"],
    639_446_688,
    600_000_000,
    "apache-2.0",
);
pub(crate) const QWEN3_8B: CatalogueModel = open(
    "Qwen3 8B · Q4_K_M",
    ["Qwen/Qwen3-8B-GGUF", "Qwen3-8B-Q4_K_M.gguf"],
    5_027_783_488,
    8_190_000_000,
    "apache-2.0",
);
pub(crate) const QWEN3_14B: CatalogueModel = open(
    "Qwen3 14B · Q4_K_M",
    ["Qwen/Qwen3-14B-GGUF", "Qwen3-14B-Q4_K_M.gguf"],
    9_001_752_960,
    14_770_000_000,
    "apache-2.0",
);
pub(crate) const SMOLLM2_135M: CatalogueModel = open(
    "SmolLM2 135M · Q8_0",
    ["bartowski/SmolLM2-135M-Instruct-GGUF", "SmolLM2-135M-Instruct-Q8_0.gguf"],
    145_000_000,
    135_000_000,
    "apache-2.0",
);
pub(crate) const SMOLLM2_1_7B: CatalogueModel = open(
    "SmolLM2 1.7B · Q4_K_M",
    ["bartowski/SmolLM2-1.7B-Instruct-GGUF", "SmolLM2-1.7B-Instruct-Q4_K_M.gguf"],
    1_055_609_824,
    1_710_000_000,
    "apache-2.0",
);
pub(crate) const QWEN3_4B_2507: CatalogueModel = open(
    "Qwen3 4B 2507 · Q4_K_M",
    ["bartowski/Qwen_Qwen3-4B-Instruct-2507-GGUF", "Qwen_Qwen3-4B-Instruct-2507-Q4_K_M.gguf"],
    2_497_280_736,
    4_020_000_000,
    "apache-2.0",
);
pub(crate) const CODER_0_5B: CatalogueModel = open(
    "Qwen2.5 Coder 0.5B · Q4_K_M",
    ["Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF", "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf"],
    491_400_064,
    494_000_000,
    "apache-2.0",
);
pub(crate) const CODER_1_5B: CatalogueModel = open(
    "Qwen2.5 Coder 1.5B · Q4_K_M",
    ["Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF", "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"],
    1_117_320_768,
    1_540_000_000,
    "apache-2.0",
);
pub(crate) const CODER_7B: CatalogueModel = open(
    "Qwen2.5 Coder 7B · Q4_K_M",
    ["Qwen/Qwen2.5-Coder-7B-Instruct-GGUF", "qwen2.5-coder-7b-instruct-q4_k_m.gguf"],
    4_680_000_000,
    7_620_000_000,
    "apache-2.0",
);
pub(crate) const QWEN3_30B_A3B: CatalogueModel = CatalogueModel {
    active: 3_300_000_000,
    ..open(
        "Qwen3 30B A3B 2507 · Q4_K_M",
        ["bartowski/Qwen_Qwen3-30B-A3B-Instruct-2507-GGUF", "Qwen_Qwen3-30B-A3B-Instruct-2507-Q4_K_M.gguf"],
        18_600_000_000,
        30_500_000_000,
        "apache-2.0",
    )
};

const FAMILIES: &[CatalogueFamily] = &[
    CatalogueFamily {
        name: "Qwen3",
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
            QWEN3_8B,
            QWEN3_14B,
        ],
        // Numbers of parameters follow from the targets' sizes: one layer and 32,000 tokens, or five layers.
        heads: &[
            head("Qwen3 4B head · EAGLE-3", "AngelSlim/Qwen3-4B_eagle3", 218_000_000),
            head("Qwen3 8B head · EAGLE-3", "AngelSlim/Qwen3-8B_eagle3", 400_000_000),
            head("Qwen3 14B head · EAGLE-3", "AngelSlim/Qwen3-14B_eagle3", 609_000_000),
            head("Qwen3 4B head · DFlash", "z-lab/Qwen3-4B-DFlash", 538_000_000),
            head("Qwen3 8B head · DFlash", "z-lab/Qwen3-8B-DFlash-b16", 965_000_000),
            head("Qwen3 4B head · DSpark", "deepseek-ai/dspark_qwen3_4b_block7", 616_000_000),
        ],
    },
    // These do not think, so that their makers recommend another sampling.
    CatalogueFamily {
        name: "Qwen3 2507",
        sampling: MakersSampling { temperature: 0.7, top_p: 0.8, top_k: 20 },
        drafts: &[QWEN3_0_6B],
        targets: &[QWEN3_4B_2507, QWEN3_30B_A3B],
        heads: &[],
    },
    CatalogueFamily {
        name: "Qwen2.5",
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
        heads: &[],
    },
    CatalogueFamily {
        name: "Qwen2.5 Coder",
        sampling: MakersSampling { temperature: 0.7, top_p: 0.8, top_k: 20 },
        drafts: &[CODER_0_5B],
        targets: &[CODER_1_5B, CODER_7B],
        heads: &[],
    },
    CatalogueFamily {
        name: "Llama 3",
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
        heads: &[],
    },
    CatalogueFamily {
        name: "Gemma 3",
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
        heads: &[],
    },
    CatalogueFamily {
        name: "Ministral 3",
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
        heads: &[],
    },
    // The smallest of its vocabulary is as fast as a draft would have to be.
    CatalogueFamily {
        name: "gpt-oss",
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
        heads: &[],
    },
    CatalogueFamily {
        name: "Gemma 4",
        sampling: MakersSampling { temperature: 1.0, top_p: 0.95, top_k: 64 },
        drafts: &[CatalogueModel {
            active: 2_300_000_000,
            // Its per-layer embeddings.
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
        heads: &[head("Gemma 4 12B head · assistant", "google/gemma-4-12b-it-assistant", 423_000_000)],
    },
    // A token reads hardly more of it than of the draft.
    CatalogueFamily {
        name: "Gemma 4 26B A4B",
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
        heads: &[],
    },
    CatalogueFamily {
        name: "SmolLM2",
        sampling: MakersSampling { temperature: 0.2, top_p: 0.9, top_k: 0 },
        drafts: &[SMOLLM2_135M],
        targets: &[SMOLLM2_1_7B],
        heads: &[],
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{STARTER, STARTER_DRAFT};

    #[test]
    fn a_token_reads_of_every_draft_less_than_half_of_what_it_does_of_every_target_of_its_family() {
        for family in catalogue() {
            let largest = family.drafts.iter().map(CatalogueModel::read_bytes).max().unwrap_or_default();
            let smallest = family.targets.iter().map(CatalogueModel::read_bytes).min().unwrap();
            assert!(largest * 2 < smallest, "{}", family.name);
        }
    }

    #[test]
    fn a_pair_is_known_by_its_files_in_any_quantisation_wherever_they_lie() {
        let draft = "bartowski/Llama-3.2-1B-Instruct-GGUF:Llama-3.2-1B-Instruct-Q4_K_M.gguf";
        assert!(is_known_pair("/models/meta-llama-3.1-8b-instruct-IQ2_XXS.gguf", draft));
        assert!(is_known_pair(
            "qwen2.5-7b-instruct-q8_0-00001-of-00003.gguf",
            r"C:\models\Qwen2.5-0.5B-Instruct.F16.gguf"
        ));
        assert!(is_known_pair("/here/gemma-4-31B-it-UD-IQ2_XXS.gguf", "gemma-4-E2B-it-UD-Q8_0.gguf"));
        assert!(is_known_pair(
            "Ministral-3-14B-Instruct-2512-BF16.gguf",
            "Ministral-3-3B-Instruct-2512-Q8_0.gguf"
        ));
        assert!(is_known_pair(STARTER, STARTER_DRAFT));
        assert!(!is_known_pair(draft, draft), "a draft is no target");
        assert!(!is_known_pair("Qwen3-8B-Q8_0.gguf", "qwen2.5-0.5b-instruct-q8_0.gguf"), "another family");
        assert!(!is_known_pair("Qwen3-8B-Base.gguf", "Qwen3-0.6B-Q8_0.gguf"), "another model");
    }

    #[test]
    fn what_makers_recommend_is_known_of_the_models_of_the_catalogue_alone() {
        let sampling =
            |file| makers_sampling(file).map(|found| (found.temperature, found.top_p, found.top_k));
        assert_eq!(sampling("/here/Qwen3-4B-IQ2_XXS.gguf"), Some((0.6, 0.95, 20)));
        assert_eq!(sampling("SmolLM2-135M-Instruct-Q4_1.gguf"), Some((0.2, 0.9, 0)), "the bundled one, too");
        assert_eq!(sampling("gpt-oss-20b-mxfp4.gguf"), Some((1.0, 1.0, 0)));
        assert_eq!(sampling("Qwen3-4B-Base-Q4_K_M.gguf"), None);
        assert_eq!(sampling("AngelSlim/Qwen3-14B_eagle3"), None);
    }

    #[test]
    fn sizes_are_those_of_the_quantisation_and_names_are_whole() {
        for (_, model) in catalogue().iter().flat_map(CatalogueFamily::models) {
            let bits = model.bytes as f64 * 8.0 / model.parameters as f64;
            let most = if model.file.is_some() { 11.0 } else { 16.5 };
            assert!((4.5..most).contains(&bits), "{}: {bits} bits a weight", model.label);
            assert_eq!(model.repository.split('/').count(), 2, "{}", model.label);
            assert!(model.file.is_none_or(|file| file.ends_with(".gguf")), "{}", model.label);
        }
    }
}
