//! Recommended models of the catalogue, for chats and for code, each with its drafter. Which of
//! them suit a computer is decided elsewhere.

use std::sync::LazyLock;

use crate::CatalogueModel;
use crate::catalogue::catalogue;

/// A target with its drafter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub target: CatalogueModel,
    /// Draft model or draft head; `None` if the target's file contains a head, or if only n-grams
    /// draft for it.
    pub draft: Option<CatalogueModel>,
    pub purpose: Purpose,
    /// Lowest and highest speed-up over plain decoding that docs/benchmarks/2026-11.md lists for
    /// this pair; `None` if it was not measured.
    pub speedup: Option<[f64; 2]>,
}

impl Pair {
    /// Returns whether this pair is listed before `other`, which is then the weaker one.
    pub fn is_before(&self, other: &Self) -> bool {
        let place = |wanted: &Self| pairs().iter().position(|pair| pair == wanted);
        place(self) < place(other)
    }
}

/// Purpose of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Chat,
    Code,
}

/// Returns the pairs; the strongest of each purpose first.
pub fn pairs() -> &'static [Pair] {
    &PAIRS
}

static PAIRS: LazyLock<Vec<Pair>> = LazyLock::new(|| CHOICES.iter().map(Choice::pair).collect());

/// A pair by the repositories of its models.
struct Choice {
    purpose: Purpose,
    target: &'static str,
    draft: Option<&'static str>,
    speedup: Option<[f64; 2]>,
}

const CHOICES: &[Choice] = &[
    chat("unsloth/Qwen3.8-27B-GGUF"),
    chat("unsloth/Qwen3.6-35B-A3B-MTP-GGUF"),
    chat("unsloth/gemma-4-26B-A4B-it-GGUF").with("google/gemma-4-26B-A4B-it-assistant"),
    chat("lmstudio-community/gpt-oss-20b-GGUF"),
    chat("unsloth/Qwen3.5-9B-MTP-GGUF"),
    chat("unsloth/gemma-4-12b-it-GGUF").with("google/gemma-4-12B-it-assistant"),
    chat("unsloth/Qwen3.5-4B-MTP-GGUF"),
    chat("LiquidAI/LFM2.5-8B-A1B-GGUF"),
    chat("ggml-org/SmolLM3-3B-GGUF"),
    chat("ibm-granite/granite-4.0-h-tiny-GGUF"),
    chat("unsloth/Qwen3.5-2B-MTP-GGUF"),
    chat("bartowski/SmolLM2-1.7B-Instruct-GGUF").with("bartowski/SmolLM2-135M-Instruct-GGUF"),
    code("unsloth/Qwen3-Coder-30B-A3B-Instruct-GGUF").with("Qwen/Qwen3-0.6B-GGUF"),
    code("Qwen/Qwen2.5-Coder-7B-Instruct-GGUF").with("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF"),
    Choice {
        speedup: Some([1.05, 1.54]),
        ..code("Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF").with("Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF")
    },
];

const fn chat(target: &'static str) -> Choice {
    Choice { purpose: Purpose::Chat, target, draft: None, speedup: None }
}

const fn code(target: &'static str) -> Choice {
    Choice { purpose: Purpose::Code, ..chat(target) }
}

impl Choice {
    const fn with(self, draft: &'static str) -> Self {
        Self { draft: Some(draft), ..self }
    }

    fn pair(&self) -> Pair {
        let model = |repository| {
            let mut models = catalogue().iter().flat_map(|family| family.models()).map(|(_, model)| model);
            let found = models.find(|model| model.repository == repository);
            *found.unwrap_or_else(|| unreachable!("{repository} is in the catalogue, as tests check"))
        };
        let (target, draft) = (model(self.target), self.draft.map(model));
        Pair { target, draft, purpose: self.purpose, speedup: self.speedup }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_of_one_family_and_open_to_everyone() {
        for Pair { target, draft, .. } in pairs() {
            let family = catalogue().iter().find(|family| family.targets.contains(target)).unwrap();
            if let Some(draft) = draft {
                let fits = family.drafts.contains(draft) || family.heads().any(|head| head == draft);
                assert!(fits && !draft.gated, "{} and {}", target.label, draft.label);
            }
            assert!(!target.gated && target.licence != "unknown", "{}", target.label);
        }
    }

    #[test]
    fn each_purpose_has_pairs_from_strong_to_small_and_no_target_twice() {
        for purpose in [Purpose::Chat, Purpose::Code] {
            let these: Vec<_> = pairs().iter().filter(|pair| pair.purpose == purpose).collect();
            let bytes = |pair: &&Pair| pair.target.bytes;
            assert!(these.first().map(bytes) > these.last().map(bytes));
        }
        let mut targets: Vec<_> = pairs().iter().map(|pair| pair.target.repository).collect();
        targets.sort_unstable();
        targets.dedup();
        assert_eq!(targets.len(), pairs().len());
    }

    #[test]
    fn a_token_reads_only_the_active_experts() {
        let find = |label| pairs().iter().find(|pair| pair.target.label.starts_with(label)).unwrap().target;
        let experts = find("Qwen3 Coder 30B");
        assert!((1_900_000_000..2_200_000_000).contains(&experts.read_bytes()));
        let dense = find("Qwen3.5 9B");
        assert_eq!(dense.read_bytes(), dense.bytes);
    }
}
