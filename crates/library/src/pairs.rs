//! Recommended pairs of the catalogue, for chats and for code. Which of them suit a computer is
//! decided elsewhere.

use crate::CatalogueModel;
use crate::catalogue::{
    CODER_0_5B, CODER_1_5B, CODER_7B, QWEN3_0_6B, QWEN3_4B_2507, QWEN3_8B, QWEN3_14B, QWEN3_30B_A3B,
    SMOLLM2_1_7B, SMOLLM2_135M,
};

/// A target with its draft.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pair {
    pub target: CatalogueModel,
    pub draft: CatalogueModel,
    pub purpose: Purpose,
    /// Lowest and highest speed-up over plain decoding that docs/benchmarks/2026-11.md lists for
    /// this pair; `None` if it was not measured.
    pub speedup: Option<[f64; 2]>,
}

/// Purpose of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    Chat,
    Code,
}

/// Returns the pairs; the strongest of each purpose first.
pub fn pairs() -> &'static [Pair] {
    PAIRS
}

const PAIRS: &[Pair] = &[
    chat(QWEN3_30B_A3B, QWEN3_0_6B),
    chat(QWEN3_14B, QWEN3_0_6B),
    chat(QWEN3_8B, QWEN3_0_6B),
    chat(QWEN3_4B_2507, QWEN3_0_6B),
    chat(SMOLLM2_1_7B, SMOLLM2_135M),
    Pair { purpose: Purpose::Code, ..chat(CODER_7B, CODER_0_5B) },
    Pair { purpose: Purpose::Code, speedup: Some([1.05, 1.54]), ..chat(CODER_1_5B, CODER_0_5B) },
];

const fn chat(target: CatalogueModel, draft: CatalogueModel) -> Pair {
    Pair { target, draft, purpose: Purpose::Chat, speedup: None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;

    #[test]
    fn every_pair_is_of_one_family_open_to_everyone_and_states_its_licence() {
        for Pair { target, draft, .. } in pairs() {
            let family = catalogue().iter().find(|family| family.targets.contains(target)).unwrap();
            assert!(family.drafts.contains(draft), "{} and {}", target.label, draft.label);
            for model in [target, draft] {
                assert!(!model.gated && model.licence != "unknown", "{}", model.label);
            }
        }
    }

    #[test]
    fn the_strongest_pair_of_each_purpose_comes_first() {
        for purpose in [Purpose::Chat, Purpose::Code] {
            let these: Vec<_> = pairs().iter().filter(|pair| pair.purpose == purpose).collect();
            assert!(these.len() > 1 && these.is_sorted_by(|a, b| a.target.parameters > b.target.parameters));
        }
    }

    #[test]
    fn a_token_reads_only_the_active_experts() {
        assert!((1_900_000_000..2_200_000_000).contains(&QWEN3_30B_A3B.read_bytes()));
        assert_eq!(QWEN3_8B.read_bytes(), QWEN3_8B.bytes);
    }
}
