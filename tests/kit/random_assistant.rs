//! Random assistant for a small Gemma 4, written as a Hugging Face folder and as the GGUF file that
//! llama.cpp's converter would make of it, with or without clusters of tokens. Values are derived
//! from tensor names by a rule that `tests/goldens/assistants.py` repeats.

use std::collections::BTreeMap;
use std::path::Path;

use candle_core::quantized::gguf_file::Value;
use candle_core::quantized::{GgmlDType, QTensor};
use candle_core::{Device, Tensor};
use foretoken_model::ModelSource;
use foretoken_model::error::Result;
use foretoken_model::token::TokenId;
use serde_json::{Value as Json, json};

use crate::head_files::{made_up_tensor, write_folder, write_gguf_with};
use crate::random_family::RandomFamily;

const HIDDEN: usize = 128;
const INTERMEDIATE: usize = 192;
const HEADS: usize = 4;
const LAYERS: usize = 4;
const VOCABULARY: usize = 320;
const CLUSTERS: usize = 20;
const NEAREST: usize = 5;
const ORDER: &str = "masked_embedding.token_ordering";

/// An assistant before it is written.
#[derive(Clone)]
pub struct RandomAssistant {
    /// config.json
    pub config: Json,
    /// Tensors in f32 under their Hugging Face names.
    pub tensors: BTreeMap<String, Tensor>,
    /// All tokens, cluster by cluster, if there are clusters.
    pub order: Option<Vec<i64>>,
}

/// Returns whether a layer has full attention.
fn is_global(layer: usize) -> bool {
    layer + 1 == LAYERS
}

impl RandomAssistant {
    /// Creates an assistant for this target.
    pub fn new(target: &RandomFamily, clustered: bool) -> Self {
        let mut text = json!({
            "model_type": "gemma4_text", "vocab_size": VOCABULARY, "hidden_size": HIDDEN,
            "intermediate_size": INTERMEDIATE, "num_hidden_layers": LAYERS, "num_kv_shared_layers": LAYERS,
            "num_attention_heads": HEADS, "max_position_embeddings": 256, "hidden_size_per_layer_input": 0,
            "layer_types": (0..LAYERS).map(|layer| match is_global(layer) {
                true => "full_attention",
                false => "sliding_attention",
            }).collect::<Vec<_>>(),
        });
        for key in [
            "num_key_value_heads",
            "num_global_key_value_heads",
            "attention_k_eq_v",
            "head_dim",
            "global_head_dim",
            "sliding_window",
            "rms_norm_eps",
            "rope_parameters",
            "hidden_activation",
            // Keys that an assistant ignores.
            "final_logit_softcapping",
        ] {
            text[key] = target.config[key].clone();
        }
        let config = json!({
            "architectures": ["Gemma4AssistantForCausalLM"], "model_type": "gemma4_assistant",
            "backbone_hidden_size": target.size("hidden_size"), "use_ordered_embeddings": clustered,
            "num_centroids": CLUSTERS, "centroid_intermediate_top_k": NEAREST, "tie_word_embeddings": true,
            "text_config": text,
        });
        let order = (0..VOCABULARY).map(|place| ((place * 97 + 13) % VOCABULARY) as i64).collect();
        let order = clustered.then_some(order);
        let mut assistant = Self { config, tensors: BTreeMap::new(), order };
        assistant.draw();
        assistant
    }

    fn size(&self, key: &str) -> usize {
        self.config["text_config"][key].as_u64().unwrap_or_default() as usize
    }

    /// Width of the target's states.
    fn backbone(&self) -> usize {
        self.config["backbone_hidden_size"].as_u64().unwrap() as usize
    }

    /// Size of a layer's heads.
    fn head_size(&self, layer: usize) -> usize {
        self.size(if is_global(layer) { "global_head_dim" } else { "head_dim" })
    }

    fn draw(&mut self) {
        let backbone = self.backbone();
        self.matrix("model.embed_tokens", VOCABULARY, HIDDEN);
        self.matrix("pre_projection", HIDDEN, 2 * backbone);
        self.matrix("post_projection", backbone, HIDDEN);
        self.insert("model.norm.weight", &[HIDDEN], 1.0, 0.3);
        if self.order.is_some() {
            self.matrix("masked_embedding.centroids", CLUSTERS, HIDDEN);
        }
        for layer in 0..LAYERS {
            let (name, head_size) =
                (|part: &str| format!("model.layers.{layer}.{part}"), self.head_size(layer));
            let queries = HEADS * head_size;
            self.matrix(&name("self_attn.q_proj"), queries, HIDDEN);
            self.matrix(&name("self_attn.o_proj"), HIDDEN, queries);
            self.matrix(&name("mlp.gate_proj"), INTERMEDIATE, HIDDEN);
            self.matrix(&name("mlp.up_proj"), INTERMEDIATE, HIDDEN);
            self.matrix(&name("mlp.down_proj"), HIDDEN, INTERMEDIATE);
            // Query-key products have no scale.
            self.insert(&name("self_attn.q_norm.weight"), &[head_size], 0.2, 0.07);
            self.insert(&name("layer_scalar"), &[1], 1.0, 0.3);
            for part in [
                "input_layernorm",
                "post_attention_layernorm",
                "pre_feedforward_layernorm",
                "post_feedforward_layernorm",
            ] {
                self.insert(&name(&format!("{part}.weight")), &[HIDDEN], 1.0, 0.3);
            }
        }
    }

    fn matrix(&mut self, name: &str, rows: usize, columns: usize) {
        self.insert(&format!("{name}.weight"), &[rows, columns], 0.0, 0.09);
    }

    fn insert(&mut self, name: &str, shape: &[usize], centre: f32, most: f32) {
        self.tensors.insert(name.to_owned(), made_up_tensor(name, shape, centre, most));
    }

    /// # Errors
    /// Those of [`ModelSource::open`].
    pub fn folder(&self, path: &Path) -> Result<ModelSource> {
        let mut tensors: std::collections::HashMap<_, _> = self.tensors.clone().into_iter().collect();
        if let Some(order) = &self.order {
            tensors.insert(ORDER.to_owned(), Tensor::new(&order[..], &Device::Cpu).unwrap());
        }
        write_folder(&path.join("assistant"), &self.config, tensors, None)
    }

    /// # Errors
    /// Those of [`ModelSource::open`].
    pub fn gguf(&self, path: &Path, quantisation: GgmlDType) -> Result<ModelSource> {
        let mut tensors: Vec<(String, QTensor)> = self
            .tensors
            .iter()
            .map(|(name, tensor)| {
                let dtype = if tensor.rank() == 1 { GgmlDType::F32 } else { quantisation };
                (gguf_name(name), QTensor::quantize(tensor, dtype).unwrap())
            })
            .collect();
        let pairs = self.size("global_head_dim") / 2;
        let factors: Vec<f32> = (0..pairs).map(|pair| if pair < pairs / 4 { 1.0 } else { 1e30 }).collect();
        let factors = Tensor::new(factors, &Device::Cpu).unwrap();
        tensors.push(("rope_freqs.weight".to_owned(), QTensor::quantize(&factors, GgmlDType::F32).unwrap()));
        let order =
            self.order.as_ref().map(|order| order.iter().map(|&token| token as TokenId).collect::<Vec<_>>());
        let order = order.as_ref().map(|order| ("masked_embd_ordering", &order[..]));
        write_gguf_with(
            &path.join(format!("assistant {quantisation:?}.gguf")),
            &self.metadata(),
            tensors,
            order,
        )
    }

    fn metadata(&self) -> Vec<(String, Value)> {
        let size = |size: usize| Value::U32(size as u32);
        let (global, local) = (self.size("global_head_dim"), self.size("head_dim"));
        let text = &self.config["text_config"];
        let keys = |layer: usize| match is_global(layer) && text["attention_k_eq_v"] == true {
            true => self.size("num_global_key_value_heads"),
            false => self.size("num_key_value_heads"),
        };
        let own = [
            ("block_count", size(LAYERS)),
            ("nextn_predict_layers", size(LAYERS)),
            ("context_length", size(self.size("max_position_embeddings"))),
            ("embedding_length", size(HIDDEN)),
            ("embedding_length_out", size(self.backbone())),
            ("embedding_length_per_layer_input", size(0)),
            ("feed_forward_length", size(INTERMEDIATE)),
            ("vocab_size", size(self.size("vocab_size"))),
            ("attention.head_count", size(HEADS)),
            ("attention.head_count_kv", Value::Array((0..LAYERS).map(|layer| size(keys(layer))).collect())),
            ("attention.key_length", size(global)),
            ("attention.value_length", size(global)),
            ("attention.key_length_swa", size(local)),
            ("attention.value_length_swa", size(local)),
            ("attention.shared_kv_layers", size(LAYERS)),
            ("attention.sliding_window", size(self.size("sliding_window"))),
            (
                "attention.sliding_window_pattern",
                Value::Array((0..LAYERS).map(|layer| Value::Bool(!is_global(layer))).collect()),
            ),
            ("attention.layer_norm_rms_epsilon", Value::F32(1e-2)),
            ("rope.freq_base", Value::F32(5e4)),
            ("rope.freq_base_swa", Value::F32(1e4)),
            ("rope.dimension_count", size(global)),
            ("rope.dimension_count_swa", size(local)),
        ];
        let architecture = "gemma4-assistant";
        let own = own.map(|(key, value)| (format!("{architecture}.{key}"), value));
        let named = ("general.architecture".to_owned(), Value::String(architecture.to_owned()));
        [named].into_iter().chain(own).collect()
    }
}

fn gguf_name(name: &str) -> String {
    let parts = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("pre_projection", "nextn.pre_projection"),
        ("post_projection", "nextn.post_projection"),
        ("masked_embedding.centroids", "masked_embd_centroids"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("post_attention_layernorm", "post_attention_norm"),
        ("pre_feedforward_layernorm", "ffn_norm"),
        ("post_feedforward_layernorm", "post_ffw_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.q_norm", "attn_q_norm"),
        ("self_attn.o_proj", "attn_output"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
        ("layer_scalar", "layer_output_scale.weight"),
    ];
    parts.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}
