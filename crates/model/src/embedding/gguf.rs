//! Settings of embedding models in GGUF files.

use super::config::{
    EmbeddingConfig, Encoder, HiddenActivation, LONGEST, Pooling, Prefixes, bad, other_kind,
};
use crate::error::Result;
use crate::gguf::Header;

/// Numbers of the kinds of pooling in llama.cpp.
const MEAN: u64 = 1;
const CLS: u64 = 2;

/// Reads the settings from the header of a GGUF file.
///
/// # Errors
/// `Error::NoEmbeddings` for another kind of model; `Error::BadModel` for missing settings.
pub(super) fn config(header: &Header) -> Result<EmbeddingConfig> {
    let path = header.path();
    let architecture = header.string("general.architecture")?.unwrap_or("none");
    let key = |name: &str| format!("{architecture}.{name}");
    let size = |name: &str| -> Result<usize> {
        let found = header.integer(&key(name))?.and_then(|size| usize::try_from(size).ok());
        found.ok_or_else(|| bad(path, format!("the setting {}", key(name)), "none".to_owned()))
    };
    let (encoder, activation) = match architecture {
        "bert" => (Encoder::Bert, HiddenActivation::Gelu),
        "nomic-bert" => {
            let theta = header.number(&key("rope.freq_base"))?.unwrap_or(10_000.0);
            (Encoder::NomicBert { theta }, HiddenActivation::SwiGlu)
        }
        other => return Err(other_kind(path, other)),
    };
    let trained = size("context_length")?;
    let positions = if encoder == Encoder::Bert { trained } else { trained.min(LONGEST) };
    let pooling = match header.integer(&key("pooling_type"))?.unwrap_or(MEAN) {
        MEAN => Pooling::Mean,
        CLS => Pooling::First,
        other => return Err(bad(path, "pooling by mean or cls".to_owned(), format!("kind {other}"))),
    };
    let name = header.string("general.name")?.unwrap_or("");
    EmbeddingConfig {
        encoder,
        vocabulary: header.list("tokenizer.ggml.tokens")?.map_or(0, |tokens| tokens.len()),
        width: size("embedding_length")?,
        intermediate: size("feed_forward_length")?,
        layers: size("block_count")?,
        heads: size("attention.head_count")?,
        epsilon: header.number(&key("attention.layer_norm_epsilon"))?.unwrap_or(1e-12),
        activation,
        positions,
        types: header.integer("tokenizer.ggml.token_type_count")?.unwrap_or(0) as usize,
        pooling,
        prefixes: Prefixes::known(&format!("{} {}", path.display(), name.replace(' ', "-"))),
        longest: positions,
    }
    .checked(path)
}
