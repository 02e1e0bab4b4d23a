//! Known pairs: which small model drafts for which large one, and where the hub has them.

mod families;

use families::FAMILIES;
pub(crate) use families::{
    CODER_0_5B, CODER_1_5B, CODER_7B, QWEN3_0_6B, QWEN3_4B_2507, QWEN3_8B, QWEN3_14B, QWEN3_30B_A3B,
    SMOLLM2_1_7B, SMOLLM2_135M,
};

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

/// What models are good at, besides chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Code,
    /// Thinking before the answer.
    Reasoning,
    /// Texts in many languages.
    Languages,
}

/// Models of one family, which share a vocabulary: any of the drafts suits any of the targets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatalogueFamily {
    /// "qwen3": the page has a sentence for each.
    pub id: &'static str,
    /// "Qwen3"
    pub name: &'static str,
    pub uses: &'static [Use],
    pub sampling: MakersSampling,
    pub drafts: &'static [CatalogueModel],
    pub targets: &'static [CatalogueModel],
    /// Draft heads, each for one of its models. What has a head in its own file is called so: "· MTP".
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
        assert_eq!(sampling("Qwen3.5-9B-UD-Q4_K_XL.gguf"), Some((1.0, 0.95, 20)));
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
