//! The architectures Foretoken runs: the names files give them, and how each differs from Llama. The
//! one table of them; reads no file and computes nothing.

use std::path::Path;

use crate::error::{Error, Result};

/// An architecture. All of them are stacks of attention with rotary positions and grouped keys and
/// values, and of gated feed-forward networks, each after an RMS norm; here is what else they do.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// `general.architecture` in GGUF; also Foretoken's own name for it.
    pub name: &'static str,
    /// `architectures` in config.json.
    classes: &'static [&'static str],
    /// Queries, keys and values have biases.
    pub biases: bool,
    /// Queries and keys are normalised head by head before they are rotated.
    pub head_norms: bool,
    /// What attention and the feed-forward network give is normalised before it is added to the state.
    pub post_norms: bool,
    /// A router and experts take the place of every layer's feed-forward network.
    pub experts: Option<ExpertOptions>,
    /// Of the gate.
    pub activation: Activation,
    /// Embeddings are multiplied by the square root of the width.
    pub scaled_embeddings: bool,
    /// Safetensors files hold w where a norm multiplies with 1 + w. GGUF files hold 1 + w.
    pub(super) norms_above_one: bool,
    /// Files hold the matrices of queries, keys and values as one, and those of gate and up as one.
    pub(super) fused: bool,
    /// In GGUF files. Hugging Face files always have [`RotaryLayout::Halves`].
    pub(super) gguf_layout: RotaryLayout,
    /// Which layers have the window that a file gives, if it does not list them itself.
    pub(super) windowed: Windowed,
    /// Values of keys that a config.json may leave out.
    pub(super) defaults: &'static [(&'static str, f64)],
    /// Whether the embedding is the output matrix where config.json does not say.
    pub(super) tied: bool,
    /// Its models are no use by themselves: they draft from hidden states of another.
    pub is_draft_head: bool,
    /// They guess a block of tokens at once.
    pub drafts_blocks: bool,
}

/// What a family says of its experts; how many there are and how large is in the files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertOptions {
    /// The shares of the chosen experts add up to 1. A config.json says it by itself, as `norm_topk_prob`.
    pub(super) normalised: bool,
}

/// The function a gate goes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Activation {
    /// x / (1 + e^-x)
    Silu,
    /// GELU by its approximation with tanh.
    Gelu,
}

/// Which two components of a head rotate together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RotaryLayout {
    /// `(2i, 2i + 1)`: GGUF files of Llamas, whose converter permutes the query and key weights.
    Interleaved,
    /// `(i, i + size / 2)`: everything else.
    Halves,
}

/// Layers that see only so many tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Windowed {
    /// All of them.
    All,
    /// All of them in models of this class, none in the family's others; GGUF files, which name no class, give
    /// a window only where there is one.
    InClass(&'static str),
    /// Those from `max_window_layers` on, if `use_sliding_window` says so; in GGUF files none.
    Last,
    /// Those that the file lists.
    Listed,
    /// All but every so manieth; this is how many where the file does not say.
    AllButEvery(usize),
}

const LLAMA: Family = Family {
    name: "llama",
    classes: &["LlamaForCausalLM", "MistralForCausalLM"],
    biases: false,
    head_norms: false,
    post_norms: false,
    experts: None,
    activation: Activation::Silu,
    scaled_embeddings: false,
    norms_above_one: false,
    fused: false,
    // The converter permutes the rows of queries and keys, for this family alone.
    gguf_layout: RotaryLayout::Interleaved,
    windowed: Windowed::InClass("MistralForCausalLM"),
    defaults: &[("rope_theta", 10_000.0), ("rms_norm_eps", 1e-6)],
    tied: false,
    is_draft_head: false,
    drafts_blocks: false,
};

/// A draft head whose block is a Llama's.
static EAGLE3: Family = Family {
    name: "eagle3",
    classes: &["LlamaForCausalLMEagle3", "Eagle3DraftModel", "Eagle3Speculator"],
    is_draft_head: true,
    ..LLAMA
};

/// The same with the block of a Qwen3.
static EAGLE3_QWEN3: Family = Family { head_norms: true, ..EAGLE3 };

/// A draft head of several of a Qwen3's layers that guesses blocks: DFlash, DFlash 2 and DSpark.
static DFLASH: Family = Family {
    name: "dflash",
    classes: &[
        "DFlashDraftModel",
        "DFlashSpeculator",
        "DFlash2DraftModel",
        "DSparkDraftModel",
        "DSparkSpeculator",
        "Qwen3DSparkModel",
    ],
    head_norms: true,
    gguf_layout: RotaryLayout::Halves,
    windowed: Windowed::Listed,
    defaults: &[("rope_theta", 1_000_000.0), ("rms_norm_eps", 1e-6)],
    is_draft_head: true,
    drafts_blocks: true,
    ..LLAMA
};

static FAMILIES: [Family; 6] = [
    LLAMA,
    Family {
        name: "qwen2",
        classes: &["Qwen2ForCausalLM"],
        biases: true,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::Last,
        ..LLAMA
    },
    Family {
        name: "qwen3",
        classes: &["Qwen3ForCausalLM"],
        head_norms: true,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::Last,
        defaults: &[("rope_theta", 10_000.0), ("rms_norm_eps", 1e-6), ("head_dim", 128.0)],
        ..LLAMA
    },
    Family {
        name: "qwen3moe",
        classes: &["Qwen3MoeForCausalLM"],
        head_norms: true,
        experts: Some(ExpertOptions { normalised: true }),
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::Last,
        ..LLAMA
    },
    Family {
        name: "gemma3",
        classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
        head_norms: true,
        post_norms: true,
        activation: Activation::Gelu,
        scaled_embeddings: true,
        norms_above_one: true,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::AllButEvery(6),
        // The published files leave out most of these.
        defaults: &[
            ("vocab_size", 262_208.0),
            ("num_attention_heads", 8.0),
            ("num_key_value_heads", 4.0),
            ("head_dim", 256.0),
            ("max_position_embeddings", 131_072.0),
            ("rms_norm_eps", 1e-6),
            ("rope_theta", 1_000_000.0),
            ("rope_local_base_freq", 10_000.0),
            ("query_pre_attn_scalar", 256.0),
            ("sliding_window", 4096.0),
        ],
        tied: true,
        ..LLAMA
    },
    Family {
        name: "phi3",
        classes: &["Phi3ForCausalLM"],
        fused: true,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::All,
        defaults: &[("rope_theta", 10_000.0), ("rms_norm_eps", 1e-5)],
        ..LLAMA
    },
];

/// The table above, for messages.
const SUPPORTED: &str = "llama (LlamaForCausalLM, MistralForCausalLM), qwen2 (Qwen2ForCausalLM), \
                         qwen3 (Qwen3ForCausalLM), qwen3moe (Qwen3MoeForCausalLM), \
                         gemma3 (Gemma3ForCausalLM, Gemma3ForConditionalGeneration), phi3 (Phi3ForCausalLM)";

impl Family {
    /// By `general.architecture`.
    ///
    /// # Errors
    /// `Error::Architecture` for one that is not in the table.
    pub(super) fn named(name: &str, path: &Path) -> Result<&'static Self> {
        let mut known = FAMILIES.iter().chain([&EAGLE3, &DFLASH]);
        known.find(|family| family.name == name).ok_or_else(|| unsupported(path, name.into()))
    }

    /// Of draft heads, with a block that norms its heads or not.
    pub(super) fn draft_head(head_norms: bool) -> &'static Self {
        if head_norms { &EAGLE3_QWEN3 } else { &EAGLE3 }
    }

    /// By one of `architectures`.
    ///
    /// # Errors
    /// `Error::Architecture` for one that is not in the table.
    pub(super) fn of_class(class: &str, path: &Path) -> Result<&'static Self> {
        let mut known = FAMILIES.iter().chain([&EAGLE3, &DFLASH]);
        let found = known.find(|family| family.classes.contains(&class));
        found.ok_or_else(|| unsupported(path, class.into()))
    }

    pub(super) fn default(&self, key: &str) -> Option<f64> {
        self.defaults.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    }
}

pub(super) fn unsupported(path: &Path, found: String) -> Error {
    Error::Architecture { path: path.to_owned(), found, supported: SUPPORTED }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_lists_the_table() {
        let listed = |family: &Family| format!("{} ({})", family.name, family.classes.join(", "));
        assert_eq!(SUPPORTED, FAMILIES.iter().map(listed).collect::<Vec<_>>().join(", "));
    }
}
