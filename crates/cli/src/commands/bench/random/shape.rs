//! The shapes of known models, and the tensors of a model with random weights in such a shape. Draws no
//! numbers.

use foretoken_engine::format::Format;

use super::latent::Latent;
use super::making::Making;
use super::mixture::{Part, Weights};
use super::tensor::{Tensor, Values};

/// The sizes of a model of the Llama family, or of one of experts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shape {
    pub name: &'static str,
    pub vocabulary: usize,
    pub hidden: usize,
    pub layers: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    pub intermediate: usize,
    pub context: usize,
    /// The embedding is the output matrix too.
    pub tied: bool,
    /// In place of every layer's feed-forward network.
    pub experts: Option<Experts>,
    /// In place of attention in three of four layers; then a block for MTP follows the layers.
    pub recurrence: Option<Recurrence>,
    /// What the keys and values of all heads are made of. The one key then has the size of a head.
    pub latent: Option<Latent>,
}

/// The heads of Gated DeltaNet, each [`LINEAR`] numbers wide.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recurrence {
    pub keys: usize,
    pub values: usize,
}

impl Recurrence {
    /// Numbers of a row that are convolved: queries, keys and values.
    fn channels(&self) -> usize {
        (2 * self.keys + self.values) * LINEAR
    }
}

pub const LINEAR: usize = 128;

/// Rows that a convolution sees.
pub const TAPS: usize = 4;

/// Of so many layers the last has attention.
pub const EVERY: usize = 4;

/// The experts of a layer, of which `intermediate` is the width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experts {
    /// `general.architecture`: "qwen3moe", "gpt-oss" or "deepseek2".
    pub architecture: &'static str,
    pub count: usize,
    /// That a token goes through.
    pub used: usize,
}

/// tiny for a quick look, the shapes of Qwen2.5-0.5B, TinyLlama-1.1B and Llama-3.1-8B, and some layers of Qwen3-30B-A3B, of
/// gpt-oss-20b and of GLM-4.7-Flash; and, as far as they are known, Qwen3.5 0.8B and 2B.
pub const SHAPES: [Shape; 9] = [
    Shape {
        name: "tiny",
        vocabulary: 2048,
        hidden: 512,
        layers: 6,
        heads: 8,
        kv_heads: 2,
        head_size: 64,
        intermediate: 1024,
        context: 1024,
        tied: false,
        experts: None,
        recurrence: None,
        latent: None,
    },
    Shape {
        name: "0.5B",
        vocabulary: 151_936,
        hidden: 896,
        layers: 24,
        heads: 14,
        kv_heads: 2,
        head_size: 64,
        intermediate: 4864,
        context: 32_768,
        tied: true,
        experts: None,
        recurrence: None,
        latent: None,
    },
    Shape {
        name: "1.1B",
        vocabulary: 32_000,
        hidden: 2048,
        layers: 22,
        heads: 32,
        kv_heads: 4,
        head_size: 64,
        intermediate: 5632,
        context: 2048,
        tied: false,
        experts: None,
        recurrence: None,
        latent: None,
    },
    Shape {
        name: "8B",
        vocabulary: 128_256,
        hidden: 4096,
        layers: 32,
        heads: 32,
        kv_heads: 8,
        head_size: 128,
        intermediate: 14_336,
        context: 131_072,
        tied: false,
        experts: None,
        recurrence: None,
        latent: None,
    },
    Shape {
        name: "qwen3moe-4",
        vocabulary: 151_936,
        hidden: 2048,
        layers: 4,
        heads: 32,
        kv_heads: 4,
        head_size: 128,
        intermediate: 768,
        context: 32_768,
        tied: false,
        experts: Some(Experts { architecture: "qwen3moe", count: 128, used: 8 }),
        recurrence: None,
        latent: None,
    },
    Shape {
        name: "gpt-oss-3",
        vocabulary: 201_088,
        hidden: 2880,
        layers: 3,
        heads: 64,
        kv_heads: 8,
        head_size: 64,
        intermediate: 2880,
        context: 32_768,
        tied: false,
        experts: Some(Experts { architecture: "gpt-oss", count: 32, used: 4 }),
        recurrence: None,
        latent: None,
    },
    Shape {
        name: "glm-flash-4",
        vocabulary: 154_880,
        hidden: 2048,
        layers: 4,
        heads: 20,
        kv_heads: 1,
        head_size: 576,
        intermediate: 1536,
        context: 32_768,
        tied: false,
        experts: Some(Experts { architecture: "deepseek2", count: 64, used: 4 }),
        recurrence: None,
        latent: Some(Latent { size: 512, plain: 192, value: 256, queries: 768, dense: 10_240 }),
    },
    Shape {
        name: "qwen35-0.8B",
        vocabulary: 248_320,
        hidden: 1024,
        layers: 24,
        heads: 8,
        kv_heads: 2,
        head_size: 256,
        intermediate: 3584,
        context: 32_768,
        tied: true,
        experts: None,
        recurrence: Some(Recurrence { keys: 16, values: 16 }),
        latent: None,
    },
    Shape {
        name: "qwen35-2B",
        vocabulary: 248_320,
        hidden: 2048,
        layers: 24,
        heads: 8,
        kv_heads: 2,
        head_size: 256,
        intermediate: 6144,
        context: 32_768,
        tied: true,
        experts: None,
        recurrence: Some(Recurrence { keys: 16, values: 16 }),
        latent: None,
    },
];

/// Layers of the draft; it shares them, the embedding and the output with the target.
pub const DRAFT_LAYERS: usize = 2;

/// What every layer of the draft adds to the hidden state, as a standard deviation: much more than the
/// embedding, or a tied one would score every token as its own successor. Large in itself so that the
/// small additions of the later layers have scales which 16 bits can hold.
const EARLY: f64 = 64.0;
const EMBEDDING: f64 = 3.2;

/// What all later layers together add, as a share of what one early layer adds. It decides how often the
/// draft is right: of three drafted tokens the target accepts about 80 %.
const LATE: f64 = 0.065;

/// The standard deviation of the scores: so large that a model is as sure of some tokens and as unsure of
/// others as a trained one.
const SCORES: f64 = 10.0;

impl Shape {
    /// What the drawn numbers depend on beside the shape.
    pub fn recipe() -> String {
        format!("random weights; early layers add {EARLY}, the later {LATE} of it; scores {SCORES}")
    }

    /// The tensors of the model's first `kept` layers and all that is around the layers.
    pub fn tensors(&self, weights: Weights, kept: usize) -> Vec<Tensor> {
        let Self { vocabulary, hidden, .. } = *self;
        let outer = |name, part, deviation| {
            let format = weights.format(part, hidden);
            Tensor::matrix(format!("{name}.weight"), [vocabulary, hidden], format, deviation)
        };
        let plain = 1.0 / (hidden as f64).sqrt();
        let mut all = if self.tied {
            vec![outer("token_embd", Part::Output, EMBEDDING)]
        } else {
            vec![outer("token_embd", Part::Other, EMBEDDING), outer("output", Part::Output, plain)]
        };
        let output = if self.tied { EMBEDDING } else { plain };
        all.push(self.norm("output_norm.weight".to_owned(), SCORES * plain / output));
        match self.recurrence {
            None => all.extend((0..kept).flat_map(|layer| self.layer(layer, weights))),
            Some(recurrence) => {
                all.extend((0..=kept).flat_map(|layer| self.hybrid_layer(recurrence, layer, weights)));
                all.extend(self.around_block(weights));
            }
        }
        all
    }

    fn making(&self, layer: usize, weights: Weights) -> Making {
        let later = (self.layers - DRAFT_LAYERS) as f64;
        let added = if layer < DRAFT_LAYERS { EARLY } else { EARLY * LATE / later.sqrt() };
        Making { weights, layer, layers: self.layers, added }
    }

    /// Where the input of a matrix has variance 1, so has its output, but for the two that add to the
    /// hidden state: these add what [`EARLY`] and [`LATE`] say.
    fn layer(&self, layer: usize, weights: Weights) -> Vec<Tensor> {
        let making = self.making(layer, weights);
        let mut tensors = match self.latent {
            Some(latent) => latent.attention(self, &making),
            None => self.attention(&making),
        };
        let norm = if self.architecture() == "gpt-oss" { "post_attention_norm" } else { "ffn_norm" };
        tensors.push(making.norm(norm, self.hidden));
        match (self.experts, self.latent) {
            (None, _) => tensors.extend(making.feed_forward("", self.hidden, self.intermediate)),
            (Some(_), Some(latent)) if layer < Latent::FIRST => {
                tensors.extend(making.feed_forward("", self.hidden, latent.dense));
            }
            (Some(experts), latent) => {
                tensors.extend(self.experts(experts, &making));
                if latent.is_some() {
                    tensors.extend(making.feed_forward("_shexp", self.hidden, self.intermediate));
                }
            }
        }
        tensors
    }

    fn attention(&self, making: &Making) -> Vec<Tensor> {
        let Self { hidden, heads, kv_heads, head_size, .. } = *self;
        let (queries, keys) = (heads * head_size, kv_heads * head_size);
        let mut tensors = vec![
            making.norm("attn_norm", hidden),
            making.one("attn_q", Part::Other, [queries, hidden], 1.0),
            making.one("attn_k", Part::Other, [keys, hidden], 1.0),
            making.one("attn_v", making.sensitive(), [keys, hidden], 1.0),
            making.one("attn_output", Part::Other, [hidden, queries], making.added),
        ];
        match self.architecture() {
            "qwen3moe" => {
                tensors.extend(["attn_q_norm", "attn_k_norm"].map(|part| making.norm(part, head_size)));
            }
            "gpt-oss" => tensors.extend([
                making.constant("attn_sinks.weight", &[heads], 0.0),
                making.constant("attn_q.bias", &[queries], 0.0),
                making.constant("attn_k.bias", &[keys], 0.0),
                making.constant("attn_v.bias", &[keys], 0.0),
                making.constant("attn_output.bias", &[hidden], 0.0),
            ]),
            _ => {}
        }
        tensors
    }

    fn experts(&self, experts: Experts, making: &Making) -> Vec<Tensor> {
        let Self { hidden, intermediate, .. } = *self;
        let Experts { architecture, count, .. } = experts;
        let router = making.one("ffn_gate_inp", Part::Other, [count, hidden], 1.0);
        let mut tensors = vec![
            Tensor { format: Format::F32, ..router },
            making.stack("ffn_gate_exps", Part::Other, [count, intermediate, hidden], 1.0),
            making.stack("ffn_up_exps", Part::Other, [count, intermediate, hidden], 1.0),
            making.stack("ffn_down_exps", making.sensitive(), [count, hidden, intermediate], making.gated()),
        ];
        match architecture {
            "gpt-oss" => tensors.extend([
                making.constant("ffn_gate_inp.bias", &[count], 0.0),
                making.constant("ffn_gate_exps.bias", &[count, intermediate], 0.0),
                making.constant("ffn_up_exps.bias", &[count, intermediate], 0.0),
                making.constant("ffn_down_exps.bias", &[count, hidden], 0.0),
            ]),
            "deepseek2" => tensors.push(making.constant("exp_probs_b.bias", &[count], 0.0)),
            _ => {}
        }
        tensors
    }

    /// A layer of Qwen3.5, or the block for MTP after them, which has attention.
    fn hybrid_layer(&self, recurrence: Recurrence, layer: usize, weights: Weights) -> Vec<Tensor> {
        let Self { hidden, heads, kv_heads, head_size, intermediate, layers, .. } = *self;
        let (queries, keys, values) = (heads * head_size, kv_heads * head_size, recurrence.values * LINEAR);
        let making = self.making(layer, weights);
        let mut tensors = vec![making.norm("attn_norm", hidden), making.norm("post_attention_norm", hidden)];
        tensors.extend(making.feed_forward("", hidden, intermediate));
        if layer == layers || (layer + 1).is_multiple_of(EVERY) {
            tensors.extend([
                making.one("attn_q", Part::Other, [2 * queries, hidden], 1.0),
                making.one("attn_k", Part::Other, [keys, hidden], 1.0),
                making.one("attn_v", making.sensitive(), [keys, hidden], 1.0),
                making.one("attn_output", Part::Other, [hidden, queries], making.added),
                making.norm("attn_q_norm", head_size),
                making.norm("attn_k_norm", head_size),
            ]);
            return tensors;
        }
        let channels = recurrence.channels();
        tensors.extend([
            making.one("attn_qkv", Part::Other, [channels, hidden], 1.0),
            making.one("attn_gate", Part::Other, [values, hidden], 1.0),
            making.one("ssm_beta", Part::Other, [recurrence.values, hidden], 1.0),
            making.one("ssm_alpha", Part::Other, [recurrence.values, hidden], 1.0),
            making.one("ssm_out", Part::Other, [hidden, values], making.gated()),
            making.plain("ssm_conv1d.weight", &[channels, TAPS], Values::Random { deviation: 0.5 }),
            making.constant("ssm_dt.bias", &[recurrence.values], 0.0),
            making.constant("ssm_a", &[recurrence.values], -0.1),
            making.constant("ssm_norm.weight", &[LINEAR], 1.0),
        ]);
        tensors
    }

    /// What a block for MTP has around its layer.
    fn around_block(&self, weights: Weights) -> Vec<Tensor> {
        let (hidden, making) = (self.hidden, self.making(self.layers, weights));
        let joining = making.one("nextn.eh_proj", Part::Other, [hidden, 2 * hidden], EARLY);
        let norms = ["nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"];
        [joining].into_iter().chain(norms.map(|part| making.norm(part, hidden))).collect()
    }

    /// `general.architecture`
    pub fn architecture(&self) -> &'static str {
        match self.recurrence {
            Some(_) => "qwen35",
            None => self.experts.map_or("llama", |experts| experts.architecture),
        }
    }

    /// Numbers of a head's query and key that turn with positions.
    pub fn turned(&self) -> usize {
        match (self.latent, self.recurrence) {
            (Some(latent), _) => self.head_size - latent.size,
            (_, Some(_)) => self.head_size / 4,
            _ => self.head_size,
        }
    }

    fn norm(&self, name: String, value: f64) -> Tensor {
        let values = Values::Constant(value as f32);
        Tensor { name, shape: vec![self.hidden], format: Format::F32, values }
    }

    /// Bytes of keys and values of `tokens` in the cache, of two bytes each, and of a state of all layers without, of four
    /// bytes a number.
    pub fn cache_bytes(&self, tokens: usize) -> usize {
        if self.latent.is_some() {
            // Keys hold the values.
            return tokens * self.layers * self.head_size * 2;
        }
        let attending = if self.recurrence.is_some() { self.layers / EVERY } else { self.layers };
        let state = self
            .recurrence
            .map_or(0, |recurrence| recurrence.values * LINEAR * LINEAR + (TAPS - 1) * recurrence.channels());
        tokens * attending * 2 * self.kv_heads * self.head_size * 2 + (self.layers - attending) * state * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(name: &str) -> Shape {
        *SHAPES.iter().find(|shape| shape.name == name).unwrap()
    }

    fn numbers(name: &str) -> usize {
        kept(name, shape(name).layers)
    }

    /// Of the first `layers` layers and what is around them.
    fn kept(name: &str, layers: usize) -> usize {
        shape(name).tensors(Weights::All(Format::F16), layers).iter().map(Tensor::numbers).sum()
    }

    #[test]
    fn a_shape_has_the_parameters_of_its_model() {
        // Qwen2.5-0.5B has 494,032,768 with the 27,648 of its biases, which a Llama has not.
        assert_eq!(numbers("0.5B"), 494_032_768 - 27_648);
        assert_eq!(numbers("1.1B"), 1_100_048_384);
        assert_eq!(numbers("8B"), 8_030_261_248);
        // With their blocks for MTP, and without their eyes.
        assert_eq!(numbers("qwen35-0.8B") / 10_000_000, 77);
        assert_eq!(numbers("qwen35-2B") / 10_000_000, 194);
        // Its files of all 47 layers call themselves 64x2.6B: a layer's expert, and what all tokens go through.
        let expert = 3 * 1536 * 2048;
        let layer = numbers("glm-flash-4") - kept("glm-flash-4", 3);
        let all = kept("glm-flash-4", 1) + 46 * (layer - 63 * expert);
        assert_eq!(all / 10_000_000, 259);
    }

    #[test]
    fn a_draft_is_the_first_layers_of_its_target() {
        let shape = shape("1.1B");
        let target = shape.tensors(Weights::Q4KM, shape.layers);
        let draft = shape.tensors(Weights::Q4KM, DRAFT_LAYERS);
        assert_eq!((target.len(), draft.len()), (3 + 22 * 9, 3 + 2 * 9));
        for (ours, theirs) in draft.iter().zip(&target) {
            assert_eq!((&ours.name, ours.format), (&theirs.name, theirs.format));
        }
    }
}
