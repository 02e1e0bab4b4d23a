//! Shapes of known models, and the tensors of a model with random weights in such a shape.

use foretoken_model::format::Format;

use super::builder::TensorBuilder;
use super::latent::Latent;
use super::mixture::{MatrixRole, Weights};
use super::tensor::{Tensor, Values};

/// Sizes of a model of the Llama family, of a mixture of experts, or of a hybrid model.
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
    /// The embedding is also the output matrix.
    pub tied: bool,
    /// Experts in place of every layer's feed-forward network.
    pub experts: Option<Experts>,
    /// Gated DeltaNet in place of attention in three of four layers; an MTP block then follows the
    /// layers.
    pub recurrence: Option<Recurrence>,
    /// Latent attention. The head size is then that of its one key.
    pub latent: Option<Latent>,
}

/// The heads of Gated DeltaNet, each of size [`LINEAR`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recurrence {
    pub keys: usize,
    pub values: usize,
}

impl Recurrence {
    /// Convolved channels of a row: queries, keys and values.
    fn channels(&self) -> usize {
        (2 * self.keys + self.values) * LINEAR
    }
}

pub const LINEAR: usize = 128;

/// Width of the convolution's kernel.
pub const TAPS: usize = 4;

/// Interval of the layers with attention.
pub const EVERY: usize = 4;

/// The experts of a layer, each of width `intermediate`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Experts {
    /// `general.architecture`: "qwen3moe", "gpt-oss" or "deepseek2".
    pub architecture: &'static str,
    pub count: usize,
    /// Number of experts per token.
    pub top_k: usize,
}

/// A tiny shape; those of Qwen2.5-0.5B, TinyLlama-1.1B and Llama-3.1-8B; some layers of
/// Qwen3-30B-A3B, gpt-oss-20b and GLM-4.7-Flash; Qwen3.5 0.8B and 2B.
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
        experts: Some(Experts { architecture: "qwen3moe", count: 128, top_k: 8 }),
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
        experts: Some(Experts { architecture: "gpt-oss", count: 32, top_k: 4 }),
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
        experts: Some(Experts { architecture: "deepseek2", count: 64, top_k: 4 }),
        recurrence: None,
        latent: Some(Latent {
            kv_lora_rank: 512,
            qk_nope_head_dim: 192,
            value: 256,
            q_lora_rank: 768,
            dense: 10_240,
        }),
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

/// Layers of the draft, which shares them, the embedding and the output with the target.
pub const DRAFT_LAYERS: usize = 2;

/// Standard deviation of the values that each layer of the draft adds to the hidden state. Much
/// more than the embedding, or a tied one would score every token as its own successor. Large
/// enough for the small additions of the later layers to have scales that 16 bits can represent.
const EARLY: f64 = 64.0;
const EMBEDDING: f64 = 3.2;

/// Sum of all later layers' additions, as a share of one early layer's. Decides the acceptance: the
/// target accepts about 80 % of three drafted tokens.
const LATE: f64 = 0.065;

/// Standard deviation of the logits, which makes the model as certain of tokens as a trained one.
const SCORES: f64 = 10.0;

impl Shape {
    /// Parameters that the weights depend on besides the shape.
    pub fn recipe() -> String {
        format!("random weights; early layers add {EARLY}, the later {LATE} of it; scores {SCORES}")
    }

    /// Tensors of the model's first `kept` layers and those around the layers.
    pub fn tensors(&self, weights: Weights, kept: usize) -> Vec<Tensor> {
        let Self { vocabulary, hidden, .. } = *self;
        let outer = |name, part, deviation| {
            let format = weights.format(part, hidden);
            Tensor::matrix(format!("{name}.weight"), [vocabulary, hidden], format, deviation)
        };
        let plain = 1.0 / (hidden as f64).sqrt();
        let mut all = if self.tied {
            vec![outer("token_embd", MatrixRole::Output, EMBEDDING)]
        } else {
            vec![
                outer("token_embd", MatrixRole::Other, EMBEDDING),
                outer("output", MatrixRole::Output, plain),
            ]
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

    fn builder(&self, layer: usize, weights: Weights) -> TensorBuilder {
        let later = (self.layers - DRAFT_LAYERS) as f64;
        let added = if layer < DRAFT_LAYERS { EARLY } else { EARLY * LATE / later.sqrt() };
        TensorBuilder { weights, layer, layers: self.layers, added }
    }

    /// Tensors of a layer. A matrix maps inputs of variance 1 to outputs of variance 1, except for
    /// the two whose outputs are added to the hidden state, as [`EARLY`] and [`LATE`] say.
    fn layer(&self, layer: usize, weights: Weights) -> Vec<Tensor> {
        let builder = self.builder(layer, weights);
        let mut tensors = match self.latent {
            Some(latent) => latent.attention(self, &builder),
            None => self.attention(&builder),
        };
        let norm = if self.architecture() == "gpt-oss" { "post_attention_norm" } else { "ffn_norm" };
        tensors.push(builder.norm(norm, self.hidden));
        match (self.experts, self.latent) {
            (None, _) => tensors.extend(builder.feed_forward("", self.hidden, self.intermediate)),
            (Some(_), Some(latent)) if layer < Latent::FIRST => {
                tensors.extend(builder.feed_forward("", self.hidden, latent.dense));
            }
            (Some(experts), latent) => {
                tensors.extend(self.experts(experts, &builder));
                if latent.is_some() {
                    tensors.extend(builder.feed_forward("_shexp", self.hidden, self.intermediate));
                }
            }
        }
        tensors
    }

    fn attention(&self, builder: &TensorBuilder) -> Vec<Tensor> {
        let Self { hidden, heads, kv_heads, head_size, .. } = *self;
        let (queries, keys) = (heads * head_size, kv_heads * head_size);
        let mut tensors = vec![
            builder.norm("attn_norm", hidden),
            builder.one("attn_q", MatrixRole::Other, [queries, hidden], 1.0),
            builder.one("attn_k", MatrixRole::Other, [keys, hidden], 1.0),
            builder.one("attn_v", builder.sensitive(), [keys, hidden], 1.0),
            builder.one("attn_output", MatrixRole::Other, [hidden, queries], builder.added),
        ];
        match self.architecture() {
            "qwen3moe" => {
                tensors.extend(["attn_q_norm", "attn_k_norm"].map(|part| builder.norm(part, head_size)));
            }
            "gpt-oss" => tensors.extend([
                builder.constant("attn_sinks.weight", &[heads], 0.0),
                builder.constant("attn_q.bias", &[queries], 0.0),
                builder.constant("attn_k.bias", &[keys], 0.0),
                builder.constant("attn_v.bias", &[keys], 0.0),
                builder.constant("attn_output.bias", &[hidden], 0.0),
            ]),
            _ => {}
        }
        tensors
    }

    fn experts(&self, experts: Experts, builder: &TensorBuilder) -> Vec<Tensor> {
        let Self { hidden, intermediate, .. } = *self;
        let Experts { architecture, count, .. } = experts;
        let router = builder.one("ffn_gate_inp", MatrixRole::Other, [count, hidden], 1.0);
        let mut tensors = vec![
            Tensor { format: Format::F32, ..router },
            builder.stack("ffn_gate_exps", MatrixRole::Other, [count, intermediate, hidden], 1.0),
            builder.stack("ffn_up_exps", MatrixRole::Other, [count, intermediate, hidden], 1.0),
            builder.stack(
                "ffn_down_exps",
                builder.sensitive(),
                [count, hidden, intermediate],
                builder.gated(),
            ),
        ];
        match architecture {
            "gpt-oss" => tensors.extend([
                builder.constant("ffn_gate_inp.bias", &[count], 0.0),
                builder.constant("ffn_gate_exps.bias", &[count, intermediate], 0.0),
                builder.constant("ffn_up_exps.bias", &[count, intermediate], 0.0),
                builder.constant("ffn_down_exps.bias", &[count, hidden], 0.0),
            ]),
            "deepseek2" => tensors.push(builder.constant("exp_probs_b.bias", &[count], 0.0)),
            _ => {}
        }
        tensors
    }

    /// A layer of Qwen3.5, or its MTP block, which has attention.
    fn hybrid_layer(&self, recurrence: Recurrence, layer: usize, weights: Weights) -> Vec<Tensor> {
        let Self { hidden, heads, kv_heads, head_size, intermediate, layers, .. } = *self;
        let (queries, keys, values) = (heads * head_size, kv_heads * head_size, recurrence.values * LINEAR);
        let builder = self.builder(layer, weights);
        let mut tensors =
            vec![builder.norm("attn_norm", hidden), builder.norm("post_attention_norm", hidden)];
        tensors.extend(builder.feed_forward("", hidden, intermediate));
        if layer == layers || (layer + 1).is_multiple_of(EVERY) {
            tensors.extend([
                builder.one("attn_q", MatrixRole::Other, [2 * queries, hidden], 1.0),
                builder.one("attn_k", MatrixRole::Other, [keys, hidden], 1.0),
                builder.one("attn_v", builder.sensitive(), [keys, hidden], 1.0),
                builder.one("attn_output", MatrixRole::Other, [hidden, queries], builder.added),
                builder.norm("attn_q_norm", head_size),
                builder.norm("attn_k_norm", head_size),
            ]);
            return tensors;
        }
        let channels = recurrence.channels();
        tensors.extend([
            builder.one("attn_qkv", MatrixRole::Other, [channels, hidden], 1.0),
            builder.one("attn_gate", MatrixRole::Other, [values, hidden], 1.0),
            builder.one("ssm_beta", MatrixRole::Other, [recurrence.values, hidden], 1.0),
            builder.one("ssm_alpha", MatrixRole::Other, [recurrence.values, hidden], 1.0),
            builder.one("ssm_out", MatrixRole::Other, [hidden, values], builder.gated()),
            builder.plain("ssm_conv1d.weight", &[channels, TAPS], Values::Random { deviation: 0.5 }),
            builder.constant("ssm_dt.bias", &[recurrence.values], 0.0),
            builder.constant("ssm_a", &[recurrence.values], -0.1),
            builder.constant("ssm_norm.weight", &[LINEAR], 1.0),
        ]);
        tensors
    }

    /// Tensors of an MTP block beside its layer.
    fn around_block(&self, weights: Weights) -> Vec<Tensor> {
        let (hidden, builder) = (self.hidden, self.builder(self.layers, weights));
        let joining = builder.one("nextn.eh_proj", MatrixRole::Other, [hidden, 2 * hidden], EARLY);
        let norms = ["nextn.enorm", "nextn.hnorm", "nextn.shared_head_norm"];
        [joining].into_iter().chain(norms.map(|part| builder.norm(part, hidden))).collect()
    }

    /// `general.architecture`
    pub fn architecture(&self) -> &'static str {
        match self.recurrence {
            Some(_) => "qwen35",
            None => self.experts.map_or("llama", |experts| experts.architecture),
        }
    }

    /// Size of the part of a head that RoPE rotates.
    pub fn rope_dim(&self) -> usize {
        match (self.latent, self.recurrence) {
            (Some(latent), _) => self.head_size - latent.kv_lora_rank,
            (_, Some(_)) => self.head_size / 4,
            _ => self.head_size,
        }
    }

    fn norm(&self, name: String, value: f64) -> Tensor {
        let values = Values::Constant(value as f32);
        Tensor { name, shape: vec![self.hidden], format: Format::F32, values }
    }

    /// Bytes of `tokens` cached keys and values in 16 bits, and of the states of all recurrent
    /// layers in 32 bits.
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

    /// Number of parameters of the first `layers` layers and of everything around them.
    fn kept(name: &str, layers: usize) -> usize {
        shape(name).tensors(Weights::All(Format::F16), layers).iter().map(Tensor::numbers).sum()
    }

    #[test]
    fn a_shape_has_the_parameters_of_its_model() {
        // Qwen2.5-0.5B has 494,032,768 with the 27,648 of its biases, which a Llama has not.
        assert_eq!(numbers("0.5B"), 494_032_768 - 27_648);
        assert_eq!(numbers("1.1B"), 1_100_048_384);
        assert_eq!(numbers("8B"), 8_030_261_248);
        // With their MTP blocks, without their vision encoders.
        assert_eq!(numbers("qwen35-0.8B") / 10_000_000, 77);
        assert_eq!(numbers("qwen35-2B") / 10_000_000, 194);
        // The files of all 47 layers are named 64x2.6B: an expert, and everything that all tokens
        // pass.
        let expert = 3 * 1536 * 2048;
        let layer = numbers("glm-flash-4") - kept("glm-flash-4", 3);
        let all = kept("glm-flash-4", 1) + 46 * (layer - 63 * expert);
        assert_eq!(all / 10_000_000, 259);
    }

    #[test]
    fn a_draft_has_the_first_layers_of_its_target() {
        let shape = shape("1.1B");
        let target = shape.tensors(Weights::Q4KM, shape.layers);
        let draft = shape.tensors(Weights::Q4KM, DRAFT_LAYERS);
        assert_eq!((target.len(), draft.len()), (3 + 22 * 9, 3 + 2 * 9));
        for (ours, theirs) in draft.iter().zip(&target) {
            assert_eq!((&ours.name, ours.format), (&theirs.name, theirs.format));
        }
    }
}
