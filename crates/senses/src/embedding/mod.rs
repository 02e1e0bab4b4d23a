//! Embeddings of texts by candle-transformers' models, in 32 bits on the CPU.
//!
//! - [`EmbeddingModel`]: a loaded model
//! - `network`: its network

mod network;

use std::path::Path;

use candle_core::{D, Tensor};
use foretoken_model::EmbeddingSource;
use foretoken_model::embedding::{EmbeddingConfig, Pooling, TextEmbedder, TextEmbedding, TextUse};
use foretoken_model::error::{Error, Result};
use tokenizers::Tokenizer;

use self::network::Network;

/// Bytes of a token at most, on average over a text. A text that is longer by far than the model
/// reads is cut before the tokenizer reads it.
const BYTES: usize = 64;

/// An embedding model with its weights.
pub struct EmbeddingModel {
    name: String,
    config: EmbeddingConfig,
    tokenizer: Tokenizer,
    network: Network,
}

impl EmbeddingModel {
    /// Loads the embedding model at `path`, a folder or a `.gguf` file; `name` names it to people.
    ///
    /// # Errors
    /// As [`EmbeddingSource::open`] and [`EmbeddingSource::tokenizer`]; `Error::BadModel` if tensors
    /// are missing or have other shapes.
    pub fn open(path: &Path, name: &str) -> Result<Self> {
        let source = EmbeddingSource::open(path)?;
        let config = source.config().clone();
        let tokenizer = source.tokenizer()?;
        let network = Network::load(source.tensors()?, &config).map_err(|error| Error::BadModel {
            path: path.to_owned(),
            expected: "the tensors that its settings imply".to_owned(),
            found: error.to_string().lines().next().unwrap_or_default().to_owned(),
            hint: "Choose another file of this model.",
        })?;
        Ok(Self { name: name.to_owned(), config, tokenizer, network })
    }

    /// Tokens of a text, and whether it was cut. The last token, which ends a text, always stays.
    fn tokens(&self, text: &str, purpose: TextUse) -> Result<(Vec<u32>, bool)> {
        let EmbeddingConfig { longest, vocabulary, ref prefixes, .. } = self.config;
        let prefix = match purpose {
            TextUse::Query => prefixes.query.as_str(),
            TextUse::Passage => &prefixes.passage,
            TextUse::Any => "",
        };
        let beginning = &text[..text.floor_char_boundary((longest * BYTES).min(text.len()))];
        let encoded = self.tokenizer.encode_fast(format!("{prefix}{beginning}"), true);
        let failed = |reason: String| Error::Tokenizer { path: self.name.clone().into(), reason };
        let mut tokens = encoded.map_err(|error| failed(error.to_string()))?.get_ids().to_vec();
        let is_cut = tokens.len() > longest || beginning.len() < text.len();
        if tokens.len() > longest {
            let last = tokens.last().copied();
            tokens.truncate(longest - 1);
            tokens.extend(last);
        }
        match tokens.iter().find(|token| **token as usize >= vocabulary) {
            Some(&token) => Err(Error::UnknownToken { token, vocabulary }),
            None if tokens.is_empty() => Err(Error::EmptyPrompt),
            None => Ok((tokens, is_cut)),
        }
    }
}

impl TextEmbedder for EmbeddingModel {
    fn name(&self) -> &str {
        &self.name
    }

    fn width(&self) -> usize {
        self.config.width
    }

    fn longest(&self) -> usize {
        self.config.longest
    }

    fn embed(&self, text: &str, purpose: TextUse) -> Result<TextEmbedding> {
        let (tokens, is_cut) = self.tokens(text, purpose)?;
        let states = self.network.run(&tokens)?;
        let pooled = match self.config.pooling {
            Pooling::Mean => states.mean(0)?,
            Pooling::First => states.get(0)?,
        };
        let vector = normalised(&pooled)?.to_vec1::<f32>()?;
        if vector.iter().any(|number| !number.is_finite()) {
            return Err(Error::NotFinite);
        }
        Ok(TextEmbedding { vector, tokens: tokens.len(), is_cut })
    }
}

/// A vector of length 1 in the same direction.
fn normalised(vector: &Tensor) -> Result<Tensor> {
    let length = vector.sqr()?.sum_keepdim(D::Minus1)?.sqrt()?;
    Ok(vector.broadcast_div(&length.maximum(1e-12)?)?)
}
