//! Networks of embedding models: those of candle-transformers.

use std::collections::HashMap;

use candle_core::{DType, Device, Result, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::{bert, modernbert, nomic_bert, xlm_roberta};
use foretoken_model::embedding::{EmbeddingConfig, Encoder, HiddenActivation};

pub(super) enum Network {
    Bert(bert::BertModel),
    XlmRoberta(xlm_roberta::XLMRobertaModel),
    NomicBert(nomic_bert::NomicBertModel),
    ModernBert(modernbert::ModernBert),
}

impl Network {
    /// Builds the network from its tensors.
    ///
    /// # Errors
    /// Names the tensor that is missing or has another shape.
    pub fn load(tensors: HashMap<String, Tensor>, config: &EmbeddingConfig) -> Result<Self> {
        let from = VarBuilder::from_tensors(tensors, DType::F32, &Device::Cpu);
        Ok(match config.encoder {
            Encoder::Bert => Self::Bert(bert::BertModel::load(from, &bert_config(config))?),
            Encoder::XlmRoberta { padding } => Self::XlmRoberta(xlm_roberta::XLMRobertaModel::new(
                &xlm_roberta_config(config, padding),
                from,
            )?),
            Encoder::NomicBert { theta } => {
                Self::NomicBert(nomic_bert::NomicBertModel::load(from, &nomic_bert_config(config, theta))?)
            }
            Encoder::ModernBert { .. } => {
                Self::ModernBert(modernbert::ModernBert::load(from, &modernbert_config(config))?)
            }
        })
    }

    /// States of the last layer, `[tokens, width]`.
    ///
    /// # Errors
    /// Without memory.
    pub fn run(&self, tokens: &[u32]) -> Result<Tensor> {
        let tokens = Tensor::new(tokens, &Device::Cpu)?.unsqueeze(0)?;
        let (types, mask) = (tokens.zeros_like()?, tokens.ones_like()?);
        let states = match self {
            Self::Bert(model) => model.forward(&tokens, &types, None)?,
            Self::XlmRoberta(model) => model.forward(&tokens, &mask, &types, None, None, None)?,
            Self::NomicBert(model) => model.forward(&tokens, None, None)?,
            Self::ModernBert(model) => model.forward(&tokens, &mask)?,
        };
        states.squeeze(0)
    }
}

fn bert_config(config: &EmbeddingConfig) -> bert::Config {
    bert::Config {
        vocab_size: config.vocabulary,
        hidden_size: config.width,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        intermediate_size: config.intermediate,
        hidden_act: match config.activation {
            HiddenActivation::GeluTanh => bert::HiddenAct::GeluApproximate,
            HiddenActivation::Relu => bert::HiddenAct::Relu,
            HiddenActivation::Gelu | HiddenActivation::SwiGlu => bert::HiddenAct::Gelu,
        },
        max_position_embeddings: config.positions,
        type_vocab_size: config.types,
        layer_norm_eps: config.epsilon,
        model_type: None,
        ..bert::Config::default()
    }
}

fn xlm_roberta_config(config: &EmbeddingConfig, padding: u32) -> xlm_roberta::Config {
    xlm_roberta::Config {
        hidden_size: config.width,
        layer_norm_eps: config.epsilon,
        attention_probs_dropout_prob: 0.0,
        hidden_dropout_prob: 0.0,
        num_attention_heads: config.heads,
        position_embedding_type: "absolute".to_owned(),
        intermediate_size: config.intermediate,
        hidden_act: candle_nn::Activation::Gelu,
        num_hidden_layers: config.layers,
        vocab_size: config.vocabulary,
        max_position_embeddings: config.positions,
        type_vocab_size: config.types,
        pad_token_id: padding,
    }
}

fn nomic_bert_config(config: &EmbeddingConfig, theta: f64) -> nomic_bert::Config {
    nomic_bert::Config {
        vocab_size: config.vocabulary,
        n_embd: config.width,
        n_head: config.heads,
        n_layer: config.layers,
        n_inner: config.intermediate,
        n_positions: config.positions,
        type_vocab_size: config.types,
        layer_norm_epsilon: config.epsilon,
        rotary_emb_base: theta,
        model_type: None,
        ..nomic_bert::Config::default()
    }
}

fn modernbert_config(config: &EmbeddingConfig) -> modernbert::Config {
    let (every, window, full, windowed) = match config.encoder {
        Encoder::ModernBert { full_every, window, full_theta, window_theta } => {
            (full_every, window, full_theta, window_theta)
        }
        _ => (1, 0, 0.0, 0.0),
    };
    modernbert::Config {
        vocab_size: config.vocabulary,
        hidden_size: config.width,
        num_hidden_layers: config.layers,
        num_attention_heads: config.heads,
        intermediate_size: config.intermediate,
        max_position_embeddings: config.positions,
        layer_norm_eps: config.epsilon,
        pad_token_id: 0,
        global_attn_every_n_layers: every,
        global_rope_theta: full,
        local_attention: window,
        local_rope_theta: windowed,
        classifier_config: None,
    }
}
