//! Table of the supported architectures: their names in files, and their differences from Llama.
//! Reads no file and computes nothing.

mod options;

use std::path::Path;

pub use options::{Activation, RecurrentKind, RotaryLayout};
pub(super) use options::{
    ExpertOptions, Gating, HeadFamily, NoRope, NormsAboveOne, SharedWeighting, Windowed,
};

use super::config::{AttentionParts, HeadNorms, LayerNorms};
use crate::error::{Error, Result};

/// An architecture, described by its differences from Llama. Every family is a stack of blocks with
/// rotary grouped-query attention and a gated feed-forward network, each behind an RMS norm.
#[derive(Debug, PartialEq)]
pub struct Family {
    /// Name in GGUF's `general.architecture`, and in messages.
    pub name: &'static str,
    /// Class names in `architectures` of config.json.
    classes: &'static [&'static str],
    /// Optional parts of attention.
    pub(super) attention: AttentionParts,
    /// Norms of each layer.
    pub(super) norms: LayerNorms,
    /// True if the output of each layer is multiplied by a learned scalar (`layer_scalar`).
    pub(super) output_scale: bool,
    /// True if the gate's matrix is stored in the query matrix: for each head query rows, then gate
    /// rows.
    pub(super) gate_in_query: bool,
    /// True for multi-head latent attention (MLA, DeepSeek-AI 2024), which caches one vector per
    /// token for the keys and values of all heads.
    pub(super) latent: bool,
    /// Kind of the recurrent layers; `None` if there are none.
    pub(super) recurrent: Option<RecurrentKind>,
    /// Options of the experts that replace feed-forward networks; `None` for dense families.
    pub(super) experts: Option<ExpertOptions>,
    /// Activation function of the gate.
    pub(super) activation: Activation,
    /// True if embeddings are multiplied by the square root of the hidden size.
    pub(super) scaled_embeddings: bool,
    /// True if embeddings are normalised, by a norm without weights.
    pub(super) normed_embeddings: bool,
    /// True if files give multipliers of embeddings, residual branches, attention scores and logits
    /// (Granite).
    pub(super) multipliers: bool,
    /// True if files give a scale and a soft cap of the logits.
    pub(super) logit_softcap: bool,
    /// Norms whose weights are stored as w in safetensors files and applied as 1 + w. GGUF files
    /// store 1 + w.
    pub(super) norms_above_one: NormsAboveOne,
    /// True if files store queries, keys and values as one matrix, and gate and up as one.
    pub(super) fused: bool,
    /// Component pairing of rotary positions in GGUF files. Hugging Face files use
    /// [`RotaryLayout::Halves`].
    pub(super) gguf_layout: RotaryLayout,
    /// Layers with a sliding window, unless the file lists them.
    pub(super) windowed: Windowed,
    /// True if layers with a sliding window ignore RoPE scaling.
    pub(super) plain_windows: bool,
    /// Layers without rotary positions.
    pub(super) no_rope: NoRope,
    /// Defaults of keys that a config.json may leave out.
    pub(super) defaults: &'static [(&'static str, f64)],
    /// Default of `tie_word_embeddings`.
    pub(super) tied: bool,
    /// Kind of draft head; `None` for models that run by themselves.
    pub(super) head: Option<HeadFamily>,
}

/// Parts of attention whose heads are normalised one by one.
const NORMED_HEADS: AttentionParts = AttentionParts { head_norms: HeadNorms::Each, ..AttentionParts::NONE };

const LLAMA: Family = Family {
    name: "llama",
    classes: &[
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "SmolVLMForConditionalGeneration",
        "Idefics3ForConditionalGeneration",
    ],
    attention: AttentionParts::NONE,
    norms: LayerNorms { pre: true, post: false },
    output_scale: false,
    gate_in_query: false,
    latent: false,
    recurrent: None,
    experts: None,
    activation: Activation::Silu,
    scaled_embeddings: false,
    normed_embeddings: false,
    multipliers: false,
    logit_softcap: false,
    norms_above_one: NormsAboveOne::None,
    fused: false,
    // The converter permutes the rows of the query and key matrices of Llama and its relatives.
    gguf_layout: RotaryLayout::Interleaved,
    windowed: Windowed::InClass("MistralForCausalLM"),
    plain_windows: false,
    no_rope: NoRope::None,
    defaults: &[("rope_theta", 10_000.0), ("rms_norm_eps", 1e-6)],
    tied: false,
    head: None,
};

/// EAGLE-3 draft head with a block of Llama's kind.
static EAGLE3: Family = Family {
    name: "eagle3",
    classes: &["LlamaForCausalLMEagle3", "Eagle3DraftModel", "Eagle3Speculator"],
    head: Some(HeadFamily::Eagle3),
    ..LLAMA
};

/// EAGLE-3 draft head with a block of Qwen3's kind, which normalises heads.
static EAGLE3_QWEN3: Family = Family { attention: NORMED_HEADS, ..EAGLE3 };

/// Draft head of several layers of Qwen3's kind that drafts blocks: DFlash, DFlash 2, DSpark,
/// Domino and LiLiCorr.
static DFLASH: Family = Family {
    name: "dflash",
    classes: &[
        "DFlashDraftModel",
        "DFlashSpeculator",
        "DFlash2DraftModel",
        "DSparkDraftModel",
        "DSparkSpeculator",
        "Qwen3DSparkModel",
        "DominoDraftModel",
        "LiLiCorrDraftModel",
    ],
    attention: NORMED_HEADS,
    gguf_layout: RotaryLayout::Halves,
    windowed: Windowed::Listed,
    defaults: &[("rope_theta", 1_000_000.0), ("rms_norm_eps", 1e-6)],
    head: Some(HeadFamily::Block),
    ..LLAMA
};

const GEMMA4: Family = Family {
    name: "gemma4",
    classes: &[
        "Gemma4ForCausalLM",
        "Gemma4ForConditionalGeneration",
        "Gemma4UnifiedForConditionalGeneration",
    ],
    attention: AttentionParts { value_norm: true, head_norms: HeadNorms::Each, ..AttentionParts::NONE },
    norms: LayerNorms { pre: true, post: true },
    output_scale: true,
    experts: Some(ExpertOptions { beside_dense: true, optional: true, ..ExpertOptions::PLAIN }),
    activation: Activation::Gelu,
    scaled_embeddings: true,
    logit_softcap: true,
    gguf_layout: RotaryLayout::Halves,
    windowed: Windowed::AllButEvery(6),
    defaults: &[
        ("rms_norm_eps", 1e-6),
        ("rope_theta", 1_000_000.0),
        ("rope_local_base_freq", 10_000.0),
        ("query_pre_attn_scalar", 1.0),
        ("sliding_window", 512.0),
        ("global_head_dim", 512.0),
    ],
    tied: true,
    ..LLAMA
};

/// Qwen3-VL. Without pictures it is computed as Qwen3.
const QWEN3VL: Family = Family {
    name: "qwen3vl",
    classes: &["Qwen3VLForConditionalGeneration"],
    attention: NORMED_HEADS,
    gguf_layout: RotaryLayout::Halves,
    windowed: Windowed::Listed,
    defaults: &[("rope_theta", 500_000.0), ("rms_norm_eps", 1e-6), ("head_dim", 128.0)],
    ..LLAMA
};

/// Draft head of a few layers of Gemma 4's kind that attend to the target's keys and values.
static GEMMA4_ASSISTANT: Family = Family {
    name: "gemma4-assistant",
    classes: &["Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"],
    head: Some(HeadFamily::Assistant),
    ..GEMMA4
};

/// Qwen3.5, 3.6 and 3.8: three of four layers are Gated DeltaNet.
const QWEN35: Family = Family {
    name: "qwen35",
    classes: &["Qwen3_5ForConditionalGeneration", "Qwen3_5ForCausalLM"],
    attention: AttentionParts { head_norms: HeadNorms::Each, gate: true, ..AttentionParts::NONE },
    gate_in_query: true,
    recurrent: Some(RecurrentKind::Delta),
    norms_above_one: NormsAboveOne::AroundLayers,
    gguf_layout: RotaryLayout::Halves,
    windowed: Windowed::Listed,
    defaults: &[
        ("rope_theta", 10_000_000.0),
        ("rms_norm_eps", 1e-6),
        ("head_dim", 256.0),
        ("partial_rotary_factor", 0.25),
        ("full_attention_interval", 4.0),
        ("linear_conv_kernel_dim", 4.0),
        ("linear_num_key_heads", 16.0),
        ("linear_num_value_heads", 32.0),
        ("linear_key_head_dim", 128.0),
        ("linear_value_head_dim", 128.0),
    ],
    ..LLAMA
};

/// Granite 3, and the dense models of Granite 4 in GGUF files.
const GRANITE: Family = Family {
    name: "granite",
    classes: &["GraniteForCausalLM"],
    multipliers: true,
    fused: true,
    windowed: Windowed::Listed,
    no_rope: NoRope::Stated("GraniteMoeHybridForCausalLM"),
    ..LLAMA
};

/// LFM2 and LFM2.5: most layers are short convolutions.
const LFM2: Family = Family {
    name: "lfm2",
    classes: &["Lfm2ForCausalLM"],
    attention: NORMED_HEADS,
    recurrent: Some(RecurrentKind::ShortConv),
    gguf_layout: RotaryLayout::Halves,
    windowed: Windowed::Listed,
    defaults: &[("rope_theta", 1_000_000.0), ("rms_norm_eps", 1e-5), ("conv_L_cache", 3.0)],
    tied: true,
    ..LLAMA
};

static FAMILIES: [Family; 21] = [
    LLAMA,
    Family {
        name: "qwen2",
        classes: &["Qwen2ForCausalLM"],
        attention: AttentionParts { biases: true, ..AttentionParts::NONE },
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::Last,
        ..LLAMA
    },
    Family {
        name: "qwen3",
        classes: &["Qwen3ForCausalLM"],
        attention: NORMED_HEADS,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::Last,
        defaults: &[("rope_theta", 10_000.0), ("rms_norm_eps", 1e-6), ("head_dim", 128.0)],
        ..LLAMA
    },
    Family {
        name: "qwen3moe",
        classes: &["Qwen3MoeForCausalLM"],
        attention: NORMED_HEADS,
        experts: Some(ExpertOptions { declares_norm_topk: true, ..ExpertOptions::PLAIN }),
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::Last,
        ..LLAMA
    },
    Family {
        name: "gpt-oss",
        classes: &["GptOssForCausalLM"],
        attention: AttentionParts { biases: true, output_bias: true, sinks: true, ..AttentionParts::NONE },
        experts: Some(ExpertOptions { biases: true, interleaved: true, ..ExpertOptions::PLAIN }),
        activation: Activation::Clamped,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::AllButEvery(2),
        defaults: &[
            ("rope_theta", 150_000.0),
            ("rms_norm_eps", 1e-5),
            ("head_dim", 64.0),
            ("sliding_window", 128.0),
            // GGUF files lack this key; the model was trained with YaRN's `truncate: false`.
            ("truncate", 0.0),
        ],
        ..LLAMA
    },
    Family {
        name: "gemma3",
        classes: &["Gemma3ForCausalLM", "Gemma3ForConditionalGeneration"],
        attention: NORMED_HEADS,
        norms: LayerNorms { pre: true, post: true },
        activation: Activation::Gelu,
        scaled_embeddings: true,
        norms_above_one: NormsAboveOne::All,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::AllButEvery(6),
        // The published files leave out most of these keys.
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
    GEMMA4,
    Family {
        name: "phi3",
        classes: &["Phi3ForCausalLM"],
        fused: true,
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::All,
        defaults: &[("rope_theta", 10_000.0), ("rms_norm_eps", 1e-5)],
        ..LLAMA
    },
    Family {
        name: "mistral3",
        classes: &["Mistral3ForConditionalGeneration", "Ministral3ForCausalLM"],
        windowed: Windowed::All,
        defaults: &[("rope_theta", 1_000_000.0), ("rms_norm_eps", 1e-5), ("head_dim", 128.0)],
        ..LLAMA
    },
    Family {
        name: "smollm3",
        classes: &["SmolLM3ForCausalLM"],
        windowed: Windowed::Listed,
        no_rope: NoRope::Every(4),
        defaults: &[("rope_theta", 2_000_000.0), ("rms_norm_eps", 1e-6)],
        tied: true,
        ..LLAMA
    },
    GRANITE,
    Family {
        name: "granitehybrid",
        classes: &["GraniteMoeHybridForCausalLM"],
        recurrent: Some(RecurrentKind::Mamba),
        experts: Some(ExpertOptions {
            shared: Some(SharedWeighting::Whole),
            optional: true,
            ..ExpertOptions::PLAIN
        }),
        defaults: &[
            ("rope_theta", 10_000.0),
            ("rms_norm_eps", 1e-6),
            ("mamba_n_heads", 128.0),
            ("mamba_n_groups", 1.0),
            ("mamba_d_state", 256.0),
            ("mamba_d_conv", 4.0),
            ("mamba_expand", 2.0),
        ],
        ..GRANITE
    },
    Family {
        name: "olmo2",
        classes: &["Olmo2ForCausalLM", "Olmo3ForCausalLM"],
        attention: AttentionParts { head_norms: HeadNorms::Together, ..AttentionParts::NONE },
        norms: LayerNorms { pre: false, post: true },
        gguf_layout: RotaryLayout::Halves,
        windowed: Windowed::AllButEvery(4),
        plain_windows: true,
        defaults: &[("rope_theta", 500_000.0), ("rms_norm_eps", 1e-5)],
        ..LLAMA
    },
    Family {
        name: "muse-glimmer",
        classes: &["MuseGlimmerForConditionalGeneration"],
        attention: AttentionParts { head_norms: HeadNorms::Fixed, gate: true, ..AttentionParts::NONE },
        norms: LayerNorms { pre: true, post: true },
        normed_embeddings: true,
        logit_softcap: true,
        norms_above_one: NormsAboveOne::OfLayers,
        windowed: Windowed::AllButEvery(4),
        no_rope: NoRope::Windowless,
        defaults: &[
            ("rope_theta", 10_000.0),
            ("rms_norm_eps", 1e-5),
            ("post_norm_eps", 1e-8),
            ("head_dim", 128.0),
            ("qk_scale_factor", 3.87),
            ("output_multiplier", 0.196_116_135_138_184_04),
            ("final_logit_softcapping", 20.0),
            ("sliding_window", 2048.0),
        ],
        ..LLAMA
    },
    LFM2,
    Family {
        name: "lfm2moe",
        classes: &["Lfm2MoeForCausalLM"],
        experts: Some(ExpertOptions { gating: Gating::Sigmoid, leading_dense: true, ..ExpertOptions::PLAIN }),
        ..LFM2
    },
    QWEN3VL,
    Family {
        name: "qwen3vlmoe",
        // Folders store experts transposed.
        classes: &[],
        experts: Some(ExpertOptions::PLAIN),
        ..QWEN3VL
    },
    QWEN35,
    Family {
        name: "qwen35moe",
        classes: &["Qwen3_5MoeForConditionalGeneration", "Qwen3_5MoeForCausalLM"],
        experts: Some(ExpertOptions { shared: Some(SharedWeighting::Gated), ..ExpertOptions::PLAIN }),
        ..QWEN35
    },
    Family {
        name: "deepseek2",
        classes: &["Glm4MoeLiteForCausalLM", DEEPSEEK_V2, "DeepseekV3ForCausalLM"],
        latent: true,
        experts: Some(ExpertOptions {
            shared: Some(SharedWeighting::Whole),
            gating: Gating::Stated,
            leading_dense: true,
            ..ExpertOptions::PLAIN
        }),
        windowed: Windowed::Listed,
        ..LLAMA
    },
];

/// Class of the family whose gating function is softmax if its config.json names none.
pub(super) const DEEPSEEK_V2: &str = "DeepseekV2ForCausalLM";

/// Names in [`FAMILIES`], for error messages.
const SUPPORTED: &str = "llama, qwen2, qwen3, qwen3moe, gpt-oss, gemma3, gemma4, phi3, mistral3, smollm3, granite, \
                         granitehybrid, olmo2, muse-glimmer, lfm2, lfm2moe, qwen3vl, qwen3vlmoe, \
                         qwen35, qwen35moe, deepseek2";

impl Family {
    /// Finds a family by GGUF's `general.architecture`.
    ///
    /// # Errors
    /// `Error::Architecture` for one that is not in the table.
    pub(super) fn named(name: &str, path: &Path) -> Result<&'static Self> {
        let mut known = FAMILIES.iter().chain([&EAGLE3, &DFLASH, &GEMMA4_ASSISTANT]);
        known.find(|family| family.name == name).ok_or_else(|| unsupported(path, name.into()))
    }

    /// Returns whether GGUF files with this `general.architecture` can be read.
    pub fn is_supported(name: &str) -> bool {
        Self::named(name, Path::new("")).is_ok()
    }

    /// Returns the family of an EAGLE-3 head, by whether its block normalises heads.
    pub(super) fn draft_head(head_norms: bool) -> &'static Self {
        if head_norms { &EAGLE3_QWEN3 } else { &EAGLE3 }
    }

    /// Finds a family by a class name from `architectures` in config.json.
    ///
    /// # Errors
    /// `Error::Architecture` for one that is not in the table.
    pub(super) fn of_class(class: &str, path: &Path) -> Result<&'static Self> {
        let mut known = FAMILIES.iter().chain([&EAGLE3, &DFLASH, &GEMMA4_ASSISTANT]);
        let found = known.find(|family| family.classes.contains(&class));
        found.ok_or_else(|| unsupported(path, class.into()))
    }

    /// Default factor of the embeddings for hidden size `width`.
    pub(super) fn embedding_scale(&self, width: usize) -> f32 {
        if self.scaled_embeddings { (width as f32).sqrt() } else { 1.0 }
    }

    /// Returns whether layers with full attention have other heads than those with a window.
    pub(super) fn has_global_heads(&self) -> bool {
        self.default("global_head_dim").is_some()
    }

    /// Returns whether an [assistant](HeadFamily::Assistant) can attend to this family's cache.
    pub(super) fn is_assisted(&self) -> bool {
        self.name == GEMMA4.name
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
        assert_eq!(SUPPORTED, FAMILIES.iter().map(|family| family.name).collect::<Vec<_>>().join(", "));
    }
}
