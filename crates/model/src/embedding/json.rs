//! Settings of embedding models in Hugging Face folders: config.json, and the documents of Sentence
//! Transformers.

use serde_json::Value as Json;

use super::config::{
    EmbeddingConfig, Encoder, HiddenActivation, LONGEST, Pooling, Prefixes, bad, other_kind,
};
use crate::error::Result;
use crate::folder::Folder;

/// Steps after the network that Foretoken takes, by the last word of their names.
const STEPS: [&str; 3] = ["Transformer", "Pooling", "Normalize"];

/// Reads the settings of the embedding model in `folder`.
///
/// # Errors
/// `Error::NoEmbeddings` for another kind of model; `Error::BadModel` for missing settings and for
/// steps that Foretoken does not take.
pub(super) fn config(folder: &Folder) -> Result<EmbeddingConfig> {
    let (from, path) = (&folder.config, folder.path.as_path());
    let size = |keys: [&str; 2]| {
        let found =
            keys.iter().find_map(|key| from[*key].as_u64()).and_then(|size| usize::try_from(size).ok());
        found.ok_or_else(|| bad(path, format!("a whole number for {}", keys[0]), "none".to_owned()))
    };
    let number = |key: &str| from[key].as_f64();
    let kind = from["model_type"].as_str().unwrap_or("none");
    let encoder = match kind {
        "bert" => Encoder::Bert,
        "xlm-roberta" | "roberta" => {
            Encoder::XlmRoberta { padding: from["pad_token_id"].as_u64().unwrap_or(1) as u32 }
        }
        "nomic_bert" if is_known_nomic(from) => {
            Encoder::NomicBert { theta: number("rotary_emb_base").unwrap_or(10_000.0) }
        }
        "modernbert" => {
            let theta = |layers: &str, older: &str| {
                from["rope_parameters"][layers]["rope_theta"].as_f64().or(number(older))
            };
            Encoder::ModernBert {
                full_every: size(["global_attn_every_n_layers"; 2]).unwrap_or(3),
                window: size(["local_attention"; 2]).unwrap_or(128),
                full_theta: theta("full_attention", "global_rope_theta").unwrap_or(160_000.0),
                window_theta: theta("sliding_attention", "local_rope_theta").unwrap_or(10_000.0),
            }
        }
        other => return Err(other_kind(path, other)),
    };
    let positions = size(["max_position_embeddings", "n_positions"])?;
    let positions = if is_rotary(encoder) { positions.min(LONGEST) } else { positions };
    let sentence = folder.document("sentence_bert_config.json")?;
    let longest = match encoder {
        Encoder::XlmRoberta { padding } => positions.saturating_sub(padding as usize + 1),
        _ => positions,
    };
    let trained = sentence["max_seq_length"].as_u64().map(|tokens| tokens as usize);
    EmbeddingConfig {
        encoder,
        vocabulary: size(["vocab_size"; 2])?,
        width: size(["hidden_size", "n_embd"])?,
        intermediate: size(["intermediate_size", "n_inner"])?,
        layers: size(["num_hidden_layers", "n_layer"])?,
        heads: size(["num_attention_heads", "n_head"])?,
        epsilon: ["norm_eps", "layer_norm_eps", "layer_norm_epsilon"]
            .iter()
            .find_map(|key| number(key))
            .unwrap_or(1e-12),
        activation: activation(folder, encoder)?,
        positions,
        types: from["type_vocab_size"].as_u64().unwrap_or(0) as usize,
        pooling: pooling(folder)?,
        prefixes: prefixes(folder)?,
        longest: trained.unwrap_or(longest).min(longest),
    }
    .checked(path)
}

fn is_rotary(encoder: Encoder) -> bool {
    matches!(encoder, Encoder::NomicBert { .. } | Encoder::ModernBert { .. })
}

/// Returns whether a NomicBERT is as nomic-embed-text: norms after the branches, rotation of whole
/// heads in halves, no biases, no experts.
fn is_known_nomic(from: &Json) -> bool {
    let is = |key: &str| from[key].as_bool().unwrap_or(false);
    let others = ["prenorm", "rotary_emb_interleaved", "qkv_proj_bias", "mlp_fc1_bias", "mlp_fc2_bias"];
    let whole = from["rotary_emb_fraction"].as_f64().is_none_or(|fraction| fraction == 1.0);
    whole && from["num_experts"].as_u64().unwrap_or(0) == 0 && !others.into_iter().any(is)
}

fn activation(folder: &Folder, encoder: Encoder) -> Result<HiddenActivation> {
    let keys = ["activation_function", "hidden_activation", "hidden_act"];
    let found = keys.iter().find_map(|key| folder.config[*key].as_str()).unwrap_or("gelu");
    match (found, encoder) {
        ("swiglu", Encoder::NomicBert { .. }) => Ok(HiddenActivation::SwiGlu),
        ("gelu", Encoder::Bert | Encoder::XlmRoberta { .. } | Encoder::ModernBert { .. }) => {
            Ok(HiddenActivation::Gelu)
        }
        ("gelu_new" | "gelu_pytorch_tanh", Encoder::Bert) => Ok(HiddenActivation::GeluTanh),
        ("relu", Encoder::Bert) => Ok(HiddenActivation::Relu),
        (other, _) => Err(bad(&folder.path, "the activation gelu".to_owned(), other.to_owned())),
    }
}

/// Pooling of Sentence Transformers, the mean by default.
fn pooling(folder: &Folder) -> Result<Pooling> {
    let steps = folder.document("modules.json")?;
    for step in steps.as_array().into_iter().flatten() {
        let name = step["type"].as_str().unwrap_or("none");
        if !STEPS.contains(&name.rsplit('.').next().unwrap_or(name)) {
            let expected = "the states of the network, pooled and normalised".to_owned();
            return Err(bad(&folder.path, expected, format!("the step {name}")));
        }
    }
    let pooling = folder.document("1_Pooling/config.json")?;
    let old = pooling.as_object().into_iter().flatten().filter(|(_, value)| value.as_bool() == Some(true));
    let old: Vec<&str> = old.filter_map(|(key, _)| key.strip_prefix("pooling_mode_")).collect();
    match (pooling["pooling_mode"].as_str(), old.as_slice()) {
        (Some("mean"), _) | (None, ["mean_tokens"] | []) => Ok(Pooling::Mean),
        (Some("cls"), _) | (None, ["cls_token"]) => Ok(Pooling::First),
        (found, _) => {
            let found = found.map_or_else(|| old.join(" and "), str::to_owned);
            Err(bad(&folder.path, "pooling by mean or cls".to_owned(), found))
        }
    }
}

/// Prefixes that the folder states, or those of a well-known model.
fn prefixes(folder: &Folder) -> Result<Prefixes> {
    let prompts = &folder.document("config_sentence_transformers.json")?["prompts"];
    let prompt = |keys: [&str; 2]| keys.iter().find_map(|key| prompts[*key].as_str()).unwrap_or("");
    let stated = Prefixes::new(prompt(["query", "query"]), prompt(["passage", "document"]));
    if stated != Prefixes::default() {
        return Ok(stated);
    }
    let name = folder.config["_name_or_path"].as_str().unwrap_or("");
    Ok(Prefixes::known(&format!("{} {name}", folder.path.display())))
}
