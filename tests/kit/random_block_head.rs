//! Random draft head that drafts blocks, written in every published format: DFlash's, DeepSpec's,
//! Domino's, LiLiCorr's, speculators', and the GGUF file that llama.cpp's converter would make of
//! it. Values are derived from tensor names by a rule that `tests/goldens/block_heads.py` repeats.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::Tensor;
use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use foretoken_model::token::TokenId;
use foretoken_model::{ModelConfig, ModelSource};
use serde_json::{Value as Json, json};

use crate::head_files::{
    HEAD_SIZE, HEADS, INTERMEDIATE, KV_HEADS, made_up_tensor, matrices, metadata, write_folder, write_gguf,
};

/// A head before it is written.
#[derive(Clone)]
pub struct RandomBlockHead {
    pub kind: BlockKind,
    /// Width of the target's states.
    hidden: usize,
    vocabulary: usize,
    pub entering: Vec<usize>,
    /// Tokens of the head, ascending.
    pub guessed: Vec<TokenId>,
    /// Tensors in f32 under DFlash's names.
    pub tensors: BTreeMap<String, Tensor>,
    /// Overridden keys of config.json, for heads that must be rejected.
    pub spoiled: Vec<(&'static str, Json)>,
}

/// Variant of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    DFlash,
    /// Some of the target's tokens with an output matrix of its own, and two layers, one of which
    /// has a window.
    Reduced,
    DFlash2,
    /// A Markov head and a confidence, for some of the target's tokens.
    DSpark,
    /// As `DSpark` for all tokens, and the text's last token guesses, too.
    Anchored,
    /// A GRU over the block's tokens; the text's last token guesses, too, without a correction.
    Domino,
    /// As `Domino`, with masks alone guessing, all corrected, and a window in the first layer.
    MaskedDomino,
    /// A transformer over the candidates of all positions, narrower than the head.
    LiliCorr,
    /// As `LiliCorr`, as wide as the head.
    WideLiliCorr,
}

impl BlockKind {
    pub const ALL: [Self; 9] = [
        Self::DFlash,
        Self::Reduced,
        Self::DFlash2,
        Self::DSpark,
        Self::Anchored,
        Self::Domino,
        Self::MaskedDomino,
        Self::LiliCorr,
        Self::WideLiliCorr,
    ];

    /// Returns whether the scores of a position depend on the tokens before it.
    pub fn is_corrected(self) -> bool {
        self != Self::DFlash && self != Self::Reduced
    }

    pub fn is_domino(self) -> bool {
        matches!(self, Self::Domino | Self::MaskedDomino)
    }

    pub fn is_lilicorr(self) -> bool {
        matches!(self, Self::LiliCorr | Self::WideLiliCorr)
    }

    /// Returns whether only the format of the kind's authors exists.
    pub fn is_of_authors(self) -> bool {
        self.is_domino() || self.is_lilicorr()
    }

    /// Number of positions, from the first, that a Domino head does not correct.
    pub fn plain_prefix(self) -> usize {
        usize::from(self == Self::Domino)
    }

    fn has_markov(self) -> bool {
        matches!(self, Self::DSpark | Self::Anchored)
    }

    fn is_reduced(self) -> bool {
        matches!(self, Self::Reduced | Self::DSpark)
    }

    /// Returns whether the first layer has a window.
    fn has_window(self) -> bool {
        matches!(self, Self::Reduced | Self::DFlash2 | Self::MaskedDomino)
    }

    /// First row that guesses.
    pub fn first(self) -> usize {
        usize::from(!matches!(self, Self::Anchored | Self::Domino))
    }
}

pub const BLOCK_ROWS: usize = 8;
pub const MASK: TokenId = 5;
const LAYERS: usize = 2;
const WINDOW: usize = 6;
const TAPS: usize = 2;
const GROUP: usize = 16;
const RANK: usize = 32;
const CANDIDATES: usize = 16;
/// Size of Domino's GRU, which is no multiple of a vector's length.
const GRU: usize = 360;
/// Width of LiLiCorr's narrow transformer, its heads, layers, candidates and factors.
const LILICORR: usize = 64;
const LILICORR_HEADS: usize = 4;
const LILICORR_LAYERS: usize = 2;
const LILICORR_CANDIDATES: usize = 8;
const LILICORR_FACTORS: usize = 24;

impl RandomBlockHead {
    pub fn new(target: &ModelConfig, kind: BlockKind) -> Self {
        let (hidden, vocabulary) = (target.hidden, target.vocabulary);
        let some = (0..vocabulary as TokenId).filter(|token| !kind.is_reduced() || token % 3 == 2);
        let entering = vec![1, target.depth()];
        let (guessed, tensors) = (some.collect(), BTreeMap::new());
        let mut head = Self { kind, hidden, vocabulary, entering, guessed, tensors, spoiled: Vec::new() };
        head.draw();
        head
    }

    fn draw(&mut self) {
        let hidden = self.hidden;
        self.matrix("fc", hidden, self.entering.len() * hidden);
        self.norm("hidden_norm", hidden);
        self.norm("norm", hidden);
        if self.kind.is_reduced() {
            self.matrix("lm_head", self.guessed.len(), hidden);
        }
        for layer in 0..LAYERS {
            for (part, rows, columns) in matrices(hidden, hidden) {
                self.matrix(&format!("layers.{layer}.{part}"), rows, columns);
            }
            for (part, length) in [
                ("input_layernorm", hidden),
                ("post_attention_layernorm", hidden),
                ("self_attn.q_norm", HEAD_SIZE),
                ("self_attn.k_norm", HEAD_SIZE),
            ] {
                self.norm(&format!("layers.{layer}.{part}"), length);
            }
            let around: &[&str] =
                if self.kind == BlockKind::DFlash2 { &["attention_conv", "mlp_conv"] } else { &[] };
            for part in around {
                let name = format!("layers.{layer}.{part}");
                self.insert(&format!("{name}.base_kernel"), &[2, TAPS, hidden], 0.4, 0.4);
                self.matrix(&format!("{name}.kernel_projection"), 2 * TAPS * hidden / GROUP, hidden);
            }
        }
        if self.kind == BlockKind::DFlash2 {
            let tokens = [self.vocabulary, RANK];
            self.insert("candidate_selector.predecessor_codebook", &tokens, 0.0, 1.0);
            self.insert("candidate_selector.successor_codebook", &tokens, 0.0, 1.0);
            self.matrix("candidate_selector.hidden_projection", RANK, hidden);
        }
        if self.kind.has_markov() {
            self.insert("markov_head.markov_w1.weight", &[self.vocabulary, RANK], 0.0, 1.0);
            self.insert("markov_head.markov_w2.weight", &[self.guessed.len(), RANK], 0.0, 1.0);
            self.matrix("confidence_head.proj", 1, hidden + RANK);
            self.insert("confidence_head.proj.bias", &[1], 0.0, 1.0);
        }
        if self.kind.is_lilicorr() {
            self.draw_lilicorr();
        }
        if self.kind.is_domino() {
            self.insert("prefix_gru.weight_ih_l0", &[3 * GRU, hidden], 0.0, 3.0);
            self.insert("prefix_gru.weight_hh_l0", &[3 * GRU, GRU], 0.0, 0.1);
            self.matrix("embed_proj.0", RANK, hidden + GRU);
            self.insert("embed_proj.2.weight", &[self.vocabulary, RANK], 0.0, 1.0);
        }
    }

    fn draw_lilicorr(&mut self) {
        let (hidden, factors) = (self.lilicorr_width(), LILICORR_FACTORS);
        let linear = |name: &str, out: usize, inputs: usize| {
            vec![(format!("{name}.weight"), vec![out, inputs]), (format!("{name}.bias"), vec![out])]
        };
        let vector = |name: &str, shape: &[usize]| vec![(name.to_owned(), shape.to_vec())];
        let mut tensors = vec![
            linear("pass_hidden_proj", hidden, self.hidden),
            vector("feature_mlp.0.weight", &[5]),
            vector("feature_mlp.0.bias", &[5]),
            linear("feature_mlp.1", hidden, 5),
            linear("feature_mlp.3", hidden, hidden),
            vector("slot_embedding", &[1, 1, BLOCK_ROWS - 1, 1, hidden]),
            vector("rank_embedding", &[1, 1, 1, LILICORR_CANDIDATES, hidden]),
            vector("relative_slot_bias", &[LILICORR_HEADS, 2 * BLOCK_ROWS - 1]),
            vector("same_slot_bias", &[LILICORR_HEADS]),
            linear("context_proj", hidden, self.hidden),
            vector("output_norm.weight", &[hidden]),
            vector("anchor_norm.weight", &[hidden]),
            linear("factor_input_proj", hidden, 3 * hidden),
            linear("out_head", factors, hidden),
            linear("in_head", factors, hidden),
            linear("anchor_out_head", factors, hidden),
        ];
        if hidden != self.hidden {
            tensors.push(linear("token_proj", hidden, self.hidden));
        }
        for layer in (0..LILICORR_LAYERS).map(|layer| format!("layers.{layer}")) {
            tensors.extend([
                vector(&format!("{layer}.attn_norm.weight"), &[hidden]),
                vector(&format!("{layer}.attn.in_proj_weight"), &[3 * hidden, hidden]),
                vector(&format!("{layer}.attn.in_proj_bias"), &[3 * hidden]),
                linear(&format!("{layer}.attn.out_proj"), hidden, hidden),
                vector(&format!("{layer}.mlp_norm.weight"), &[hidden]),
                linear(&format!("{layer}.mlp.0"), hidden * 3 / 2, hidden),
                linear(&format!("{layer}.mlp.2"), hidden, hidden * 3 / 2),
            ]);
        }
        for (name, shape) in tensors.into_iter().flatten() {
            let (centre, most) = match &name {
                name if name.contains("norm") || name == "feature_mlp.0.weight" => (1.0, 0.3),
                name if name.ends_with("slot_bias") => (0.0, 1.0),
                name if name.ends_with("bias") => (0.0, 0.1),
                name if name.ends_with("embedding") => (0.0, 0.5),
                _ => (0.0, 0.2),
            };
            self.insert(&format!("lilicorr.{name}"), &shape, centre, most);
        }
    }

    fn lilicorr_width(&self) -> usize {
        if self.kind == BlockKind::LiliCorr { LILICORR } else { self.hidden }
    }

    /// Returns the head with an embedding and an output matrix of its own.
    #[must_use]
    pub fn with_own_matrices(mut self) -> Self {
        self.matrix("embed_tokens", self.vocabulary, self.hidden);
        self.matrix("lm_head", self.guessed.len(), self.hidden);
        self
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) {
        self.insert(&format!("{name}.weight"), &[rows, columns], 0.0, 0.09);
    }

    fn norm(&mut self, name: &str, length: usize) {
        self.insert(&format!("{name}.weight"), &[length], 1.0, 0.3);
    }

    fn insert(&mut self, name: &str, shape: &[usize], centre: f32, most: f32) {
        let tensor = made_up_tensor(name, shape, centre, most);
        self.tensors.insert(name.to_owned(), tensor);
    }

    /// Layer description in config.json.
    fn layers(&self) -> Json {
        let first = if self.kind.has_window() { "sliding_attention" } else { "full_attention" };
        json!({
            "model_type": "qwen3", "hidden_size": self.hidden, "intermediate_size": INTERMEDIATE,
            "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS,
            "head_dim": HEAD_SIZE, "vocab_size": self.vocabulary, "max_position_embeddings": 512,
            "rms_norm_eps": 1e-5, "rope_theta": 1e4, "hidden_act": "silu", "attention_bias": false,
            "layer_types": [first, "full_attention"], "sliding_window": WINDOW, "tie_word_embeddings": true,
        })
    }

    /// Writes the format of DFlash's and DeepSpec's authors.
    pub fn authors(&self, path: &Path) -> ModelSource {
        self.try_authors(path).unwrap()
    }

    /// Writes the format of DFlash's and DeepSpec's authors, which may be rejected.
    ///
    /// # Errors
    /// Those of [`ModelSource::open`].
    pub fn try_authors(&self, path: &Path) -> foretoken_model::error::Result<ModelSource> {
        let mut config = self.layers();
        let outputs: Vec<usize> = self.entering.iter().map(|layer| layer - 1).collect();
        let own = json!({ "mask_token_id": MASK, "target_layer_ids": outputs });
        config["block_size"] = BLOCK_ROWS.into();
        match self.kind {
            BlockKind::Anchored => {
                config["architectures"] = json!(["Qwen3DSparkModel"]);
                extend(&mut config, own);
                extend(&mut config, json!({ "markov_rank": RANK, "markov_head_type": "vanilla" }));
            }
            BlockKind::DFlash2 => {
                config["architectures"] = json!(["DFlash2DraftModel"]);
                config["is_causal"] = false.into();
                config["dflash_config"] = own;
                let sizes = json!({
                    "conv_kernel_size": TAPS, "conv_group_size": GROUP, "selector_rank": RANK,
                    "selector_top_k": CANDIDATES,
                });
                extend(&mut config["dflash_config"], sizes);
            }
            BlockKind::LiliCorr | BlockKind::WideLiliCorr => {
                config["architectures"] = json!(["LiLiCorrDraftModel"]);
                config["dflash_config"] = own;
                let width = if self.kind == BlockKind::LiliCorr { LILICORR } else { 0 };
                let lilicorr = json!({
                    "lilicorr_enabled": true, "lilicorr_hidden_size": width,
                    "lilicorr_num_layers": LILICORR_LAYERS, "lilicorr_num_heads": LILICORR_HEADS,
                    "lilicorr_mlp_ratio": 1.5, "lilicorr_candidate_topk": LILICORR_CANDIDATES,
                    "lilicorr_factor_dim": LILICORR_FACTORS, "lilicorr_vector_eps": 1e-6,
                    "lilicorr_logit_scale": 10.0,
                });
                extend(&mut config["dflash_config"], lilicorr);
            }
            BlockKind::Domino | BlockKind::MaskedDomino => {
                config["architectures"] = json!(["DominoDraftModel"]);
                config["emb_dim"] = RANK.into();
                config["dflash_config"] = own;
                let domino = json!({
                    "projector_type": "domino", "gru_hidden_dim": GRU,
                    "pure_draft_prefix_len": self.kind.plain_prefix(), "shift_label": self.kind.first() == 0,
                });
                extend(&mut config["dflash_config"], domino);
            }
            _ => {
                config["architectures"] = json!(["DFlashDraftModel"]);
                config["dflash_config"] = own;
            }
        }
        self.spoiled.iter().for_each(|(key, value)| config[*key] = value.clone());
        self.write(path, "authors", &config)
    }

    /// Writes speculators' format.
    pub fn speculators(&self, path: &Path) -> ModelSource {
        let (class, kind) = match self.kind {
            BlockKind::DFlash | BlockKind::Reduced => ("DFlashSpeculator", "dflash"),
            BlockKind::DFlash2 => ("DFlash2DraftModel", "dflash2"),
            BlockKind::DSpark | BlockKind::Anchored => ("DSparkSpeculator", "dspark"),
            kind => panic!("speculators has no {kind:?}"),
        };
        let mut config = json!({
            "architectures": [class], "speculators_model_type": kind, "block_size": BLOCK_ROWS,
            "transformer_layer_config": self.layers(), "draft_vocab_size": self.guessed.len(),
            "aux_hidden_state_layer_ids": self.entering, "mask_token_id": MASK,
            "sample_from_anchor": self.kind == BlockKind::Anchored,
            "sliding_window_non_causal": self.kind == BlockKind::DFlash2,
        });
        if self.kind == BlockKind::DFlash2 {
            extend(&mut config, json!({ "selector_rank": RANK, "selector_top_k": CANDIDATES }));
        }
        self.write(path, "speculators", &config).unwrap()
    }

    fn write(&self, path: &Path, form: &str, config: &Json) -> foretoken_model::error::Result<ModelSource> {
        let folder = path.join(format!("{form} {:?}", self.kind));
        let tensors = self.tensors.clone().into_iter().collect();
        let guessed = self.kind.is_reduced().then_some((&self.guessed[..], self.vocabulary));
        write_folder(&folder, config, tensors, guessed)
    }

    /// Writes all formats that the kind has.
    pub fn forms(&self, path: &Path, quantisation: GgmlDType) -> Vec<ModelSource> {
        if self.kind.is_of_authors() {
            return vec![self.authors(path)];
        }
        let mut forms = vec![self.speculators(path), self.gguf(path, quantisation)];
        if self.kind != BlockKind::DSpark {
            forms.push(self.authors(path));
        }
        forms
    }

    /// Writes a format that the kind has, with weights in 8 bits if it is GGUF.
    pub fn any_form(&self, path: &Path) -> ModelSource {
        match self.kind.is_of_authors() {
            true => self.authors(path),
            false => self.gguf(path, GgmlDType::Q8_0),
        }
    }

    /// Writes the GGUF file that llama.cpp's converter would write.
    pub fn gguf(&self, path: &Path, quantisation: GgmlDType) -> ModelSource {
        let path = path.join(format!("block head {:?} {quantisation:?}.gguf", self.kind));
        let tensors = self.tensors.iter().map(|(name, tensor)| {
            let whole = tensor.dim(tensor.rank() - 1).unwrap().is_multiple_of(quantisation.block_size());
            let dtype = if tensor.rank() == 2 && whole { quantisation } else { GgmlDType::F32 };
            (gguf_name(name), QTensor::quantize(tensor, dtype).unwrap())
        });
        let guessed = self.kind.is_reduced().then_some(&self.guessed[..]);
        write_gguf(&path, &self.metadata(), tensors.collect(), guessed).unwrap()
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let size = |size: usize| Value::U32(size as u32);
        let mut metadata = metadata("dflash", LAYERS, self.hidden, self.vocabulary, &self.entering);
        let mut own = vec![
            ("dflash.block_size", size(BLOCK_ROWS)),
            ("tokenizer.ggml.mask_token_id", size(MASK as usize)),
        ];
        if self.kind.has_window() {
            let pattern = Value::Array(vec![Value::Bool(true), Value::Bool(false)]);
            own.push(("dflash.attention.sliding_window", size(WINDOW)));
            own.push(("dflash.attention.sliding_window_pattern", pattern));
        }
        if self.kind == BlockKind::DFlash2 {
            own.extend([
                ("dflash.attention.causal", Value::Bool(false)),
                ("dflash.conv_kernel_size", size(TAPS)),
                ("dflash.conv_group_size", size(GROUP)),
                ("dflash.selector_rank", size(RANK)),
                ("dflash.selector_top_k", size(CANDIDATES)),
            ]);
        }
        if self.kind == BlockKind::DSpark {
            own.push(("dflash.sample_from_anchor", Value::Bool(false)));
        }
        metadata.extend(own.into_iter().map(|(key, value)| (key.to_owned(), value)));
        metadata
    }
}

fn extend(config: &mut Json, more: Json) {
    let Json::Object(more) = more else { return };
    config.as_object_mut().unwrap().extend(more);
}

fn gguf_name(name: &str) -> String {
    let outer = [
        ("hidden_norm.weight", "enc.output_norm.weight"),
        ("norm.weight", "output_norm.weight"),
        ("embed_tokens.weight", "token_embd.weight"),
        ("lm_head.weight", "output.weight"),
        ("markov_head.markov_w1.weight", "markov_w1.weight"),
        ("markov_head.markov_w2.weight", "markov_w2.weight"),
        ("confidence_head.proj.weight", "conf_proj.weight"),
        ("confidence_head.proj.bias", "conf_proj.bias"),
        ("candidate_selector.predecessor_codebook", "selector_predecessor.weight"),
        ("candidate_selector.successor_codebook", "selector_successor.weight"),
        ("candidate_selector.hidden_projection.weight", "selector_hidden.weight"),
    ];
    if let Some((_, to)) = outer.iter().find(|(from, _)| *from == name) {
        return (*to).to_owned();
    }
    let Some((layer, rest)) = name.strip_prefix("layers.").and_then(|name| name.split_once('.')) else {
        return name.to_owned();
    };
    let parts = [
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "ffn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.k_norm", "attn_k_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("attention_conv.base_kernel", "attn_conv_base"),
        ("attention_conv.kernel_projection", "attn_conv_proj"),
        ("mlp_conv.base_kernel", "ffn_conv_base"),
        ("mlp_conv.kernel_projection", "ffn_conv_proj"),
    ];
    let (stem, end) = rest.strip_suffix(".weight").map_or((rest, ""), |stem| (stem, ".weight"));
    let (_, to) = parts.iter().find(|(from, _)| *from == stem).unwrap();
    format!("blk.{layer}.{to}{end}")
}
