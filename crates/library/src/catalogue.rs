//! Known pairs: a small model that drafts for a large one, and their repositories on the hub.

mod families;
mod heads;
mod names;

use std::sync::LazyLock;

use families::FAMILIES;
use heads::known_heads;
pub use heads::{KnownHead, heads_for};
pub(crate) use names::quantisation_of;
use names::{model_of, name_of};

use crate::bundled::draft_of;

/// A model of the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CatalogueModel {
    /// Label as shown, for example "Qwen3 8B · Q4_K_M".
    pub label: &'static str,
    /// `owner/name`
    pub repository: &'static str,
    /// Path in the repository, for a split file its first part; `None` for a folder of safetensors.
    pub file: Option<&'static str>,
    /// Size of all parts together when the catalogue was written; rounded if it ends in zeros. Used
    /// to judge whether the model fits; a download uses the hub's sizes.
    pub bytes: u64,
    pub parameters: u64,
    /// Parameters that each token uses: fewer than all in a mixture of experts.
    pub active: u64,
    /// Bytes that stay on disk because a token needs only a row of them.
    pub on_disk: u64,
    /// Licence, "unknown" if the makers name none.
    pub licence: &'static str,
    /// `true` if the licence must be accepted on the hub before the download.
    pub gated: bool,
    /// `true` if Foretoken's authors ran these weights. The architectures of all models were
    /// compared with other implementations, with random weights.
    pub ran: bool,
}

/// Sampling settings that the makers of a family recommend on the hub.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MakersSampling {
    pub temperature: f32,
    pub top_p: f32,
    /// 0 if the makers name none.
    pub top_k: u32,
}

/// Strengths of models besides chats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Code,
    /// Reasoning before the answer.
    Reasoning,
    /// Texts in many languages.
    Languages,
    /// Pictures, with a vision file in the model's repository.
    Pictures,
}

/// Models of one family, which share a vocabulary: each draft fits each target.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CatalogueFamily {
    /// Id such as "qwen3"; the page has a description for each.
    pub id: &'static str,
    /// Name such as "Qwen3".
    pub name: &'static str,
    pub uses: &'static [Use],
    pub sampling: MakersSampling,
    pub drafts: &'static [CatalogueModel],
    /// A target with a head in its own file is labelled "· MTP".
    pub targets: &'static [CatalogueModel],
}

impl CatalogueModel {
    /// Returns the name under which downloads and installed models appear: `owner/name:file`, or
    /// `owner/name` for a folder.
    pub fn name(&self) -> String {
        match self.file {
            Some(file) => format!("{}:{file}", self.repository),
            None => self.repository.to_owned(),
        }
    }

    /// Returns the bytes that are loaded into memory.
    pub fn loaded_bytes(&self) -> u64 {
        self.bytes - self.on_disk
    }

    /// Returns roughly the bytes that each token reads.
    pub fn read_bytes(&self) -> u64 {
        (self.bytes as f64 * self.active as f64 / self.parameters as f64) as u64
    }
}

impl CatalogueFamily {
    /// Returns the heads of known size, each for one of the family's models.
    pub fn heads(&self) -> impl Iterator<Item = &'static CatalogueModel> {
        let id = self.id;
        OF_FAMILIES.iter().filter(move |head| head.family == id).map(|head| &head.model)
    }

    /// Returns all models of the family with their roles, drafts first.
    pub fn models(&self) -> impl Iterator<Item = (&'static str, &'static CatalogueModel)> {
        let drafts = self.drafts.iter().map(|model| ("draft", model));
        let heads = self.heads().map(|model| ("head", model));
        drafts.chain(heads).chain(self.targets.iter().map(|model| ("target", model)))
    }
}

/// A head of known size as a model of its target's family.
struct OfFamily {
    family: &'static str,
    model: CatalogueModel,
}

static OF_FAMILIES: LazyLock<Vec<OfFamily>> = LazyLock::new(|| {
    let heads = FAMILIES.iter().flat_map(|family| known_heads().iter().map(move |head| (family, head)));
    heads.filter_map(|(family, head)| OfFamily::new(family, head)).collect()
});

impl OfFamily {
    /// Creates the model of `head`; `None` if the family has no target for it, or its size is not
    /// known.
    fn new(family: &CatalogueFamily, head: &KnownHead) -> Option<Self> {
        let parameters = head.parameters?;
        let mut models = family.targets.iter().chain(family.drafts);
        let target = models.find(|model| heads_for(&model.name()).any(|found| found == head))?;
        let name = target.label.split(" · ").next().unwrap_or_default();
        let model = CatalogueModel {
            // Made once and kept, like the other labels.
            label: format!("{name} head · {}", head.kind).leak(),
            repository: head.repository,
            file: None,
            // 16 bits a weight.
            bytes: 2 * parameters,
            parameters,
            active: parameters,
            on_disk: 0,
            licence: head.licence.unwrap_or("unknown"),
            gated: false,
            ran: false,
        };
        Some(Self { family: family.id, model })
    }
}

/// Returns the known families.
pub fn catalogue() -> &'static [CatalogueFamily] {
    FAMILIES
}

/// Returns whether `draft` was made for `target`, or both are a pair in the catalogue. Models are
/// compared by file name, in any folder and any quantisation.
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

/// Returns the makers' sampling settings for a model of the catalogue, found by file name in any
/// folder and any quantisation. Settings in the file itself take precedence.
pub fn makers_sampling(file: &str) -> Option<MakersSampling> {
    let model = model_of(file);
    let is_it = |one: &CatalogueModel| one.file.is_some_and(|file| model_of(file) == model);
    let has = |family: &&CatalogueFamily| family.drafts.iter().chain(family.targets).any(is_it);
    FAMILIES.iter().find(has).map(|family| family.sampling)
}

/// Returns roughly the share of a model's weights that a token reads, by the model's name: that of
/// the catalogue, or else 0.1 for a mixture of experts named "30B-A3B", or 1.
pub fn active_share(model: &str) -> f64 {
    let name = name_of(model);
    let known = FAMILIES.iter().flat_map(|family| family.drafts.iter().chain(family.targets));
    if let Some(known) = known.into_iter().find(|known| known.file.is_some_and(|file| model_of(file) == name))
    {
        return known.active as f64 / known.parameters as f64;
    }
    let billions = |word: &str| word.strip_suffix('b')?.parse::<f64>().ok().filter(|number| *number > 0.0);
    let words = || name.split(['-', '_', ' ']);
    let all = words().filter_map(billions).fold(0.0, f64::max);
    let active = words().filter_map(|word| billions(word.strip_prefix('a')?)).next();
    active.map_or(1.0, |active| if active < all { active / all } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{STARTER, STARTER_DRAFT};

    #[test]
    fn every_draft_reads_less_than_half_the_bytes_per_token_of_every_target_of_its_family() {
        for family in catalogue() {
            let largest = family.drafts.iter().map(CatalogueModel::read_bytes).max().unwrap_or_default();
            let smallest = family.targets.iter().map(CatalogueModel::read_bytes).min().unwrap();
            assert!(largest * 2 < smallest, "{}", family.name);
        }
    }

    #[test]
    fn a_pair_is_known_by_its_file_names_in_any_quantisation_and_folder() {
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
        assert!(!is_known_pair(draft, draft), "a draft is not a target");
        assert!(!is_known_pair("Qwen3-8B-Q8_0.gguf", "qwen2.5-0.5b-instruct-q8_0.gguf"), "another family");
        assert!(!is_known_pair("Qwen3-8B-Base.gguf", "Qwen3-0.6B-Q8_0.gguf"), "another model");
    }

    #[test]
    fn only_models_of_the_catalogue_have_the_makers_sampling() {
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
    fn the_share_of_active_weights_is_that_of_the_catalogue_or_of_the_name() {
        let near = |model, expected: f64| {
            let share = active_share(model);
            assert!((share - expected).abs() < 0.005, "{model}: {share}");
        };
        near("unsloth/gpt-oss-20b-GGUF:gpt-oss-20b-Q4_K_M.gguf", 3.6 / 20.9);
        near("someone/Nemotron-3-Nano-30B-A3B-GGUF", 0.1);
        near("x/y-12B-A2.5B-Q8_0.gguf", 2.5 / 12.0);
        for dense in ["Qwen/Qwen3-8B-GGUF", "a3b", "x/Odd-3B-A8B", "x/model-0b-a0b", ""] {
            near(dense, 1.0);
        }
    }

    #[test]
    fn sizes_match_the_quantisation_and_labels_are_complete() {
        for (_, model) in catalogue().iter().flat_map(CatalogueFamily::models) {
            let bits = model.bytes as f64 * 8.0 / model.parameters as f64;
            let most = if model.file.is_some() { 11.0 } else { 16.5 };
            assert!((4.5..most).contains(&bits), "{}: {bits} bits a weight", model.label);
            assert_eq!(model.repository.split('/').count(), 2, "{}", model.label);
            assert!(model.file.is_none_or(|file| file.ends_with(".gguf")), "{}", model.label);
        }
    }

    #[test]
    fn a_head_of_known_size_is_listed_in_its_targets_family() {
        let family = |id| FAMILIES.iter().find(|family| family.id == id).unwrap();
        let labels: Vec<_> = family("qwen3").heads().map(|head| head.label).collect();
        assert_eq!(labels.len(), 6);
        assert!(labels.contains(&"Qwen3 14B head · EAGLE-3"), "{labels:?}");
        let labels: Vec<_> = family("gemma-4").heads().map(|head| head.label).collect();
        let expected =
            ["Gemma 4 E2B head · assistant", "Gemma 4 12B head · assistant", "Gemma 4 31B head · assistant"];
        assert_eq!(labels, expected);
        assert_eq!(OF_FAMILIES.iter().filter(|head| head.family == "gpt-oss").count(), 0);
    }
}
