//! What there is to say about a model without loading it: for `inspect` and the lists of models.

use std::collections::HashMap;

use candle_core::quantized::GgmlDType;
use serde::Serialize;

use super::tokenizer::{folder_kind, gguf_kind, vocabulary_size};
use super::{Activation, Form, ModelConfig, ModelSource, SpecialTokens, Thinking};
use crate::error::Result;

/// A model in words and numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// What the file says it is called, else the file's name.
    pub name: String,
    pub architecture: Option<String>,
    /// "GGUF" or "safetensors".
    pub format: &'static str,
    /// Tied embeddings count once.
    pub parameters: u64,
    /// Of all files with weights on disk.
    pub bytes: u64,
    /// The type most bytes are stored in, "Q8_0"; `None` without weights.
    pub quantisation: Option<String>,
    /// `None` for a tokenizer alone.
    pub sizes: Option<Sizes>,
    /// `None` when the tokenizer cannot be used.
    pub tokenizer: Option<TokenizerDescription>,
    /// Why the tokenizer cannot be used.
    pub tokenizer_problem: Option<String>,
    /// The chat template's source.
    pub template: Option<String>,
    /// The tags between which the model thinks.
    pub thinking: Option<Thinking>,
    /// What its architecture does beyond Llama, in words.
    pub special: Vec<String>,
}

/// A tokenizer in words and numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenizerDescription {
    /// "byte-level BPE, gpt-2" or "SentencePiece".
    pub kind: String,
    /// Tokens.
    pub vocabulary: usize,
    pub special: SpecialTokens,
}

/// The dimensions of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizes {
    pub context: usize,
    pub layers: usize,
    pub hidden: usize,
    pub intermediate: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    pub tied_embeddings: bool,
}

impl ModelSource {
    /// Describes the model; reads no weights and builds no tokenizer.
    pub fn describe(&self) -> Description {
        let config = self.config.as_ref();
        let (format, own_name) = match &self.form {
            Form::Gguf(header) => ("GGUF", header.string("general.name").ok().flatten()),
            Form::Folder(_) => ("safetensors", None),
        };
        let own_name = own_name.map(str::to_owned);
        let (tokenizer, tokenizer_problem) = match self.describe_tokenizer() {
            Ok(description) => (Some(description), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let template = self.template_source().ok().flatten();
        let file_name = || self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Description {
            name: own_name.unwrap_or_else(file_name),
            architecture: config.map(|c| c.family.name.to_owned()),
            format,
            parameters: self.tensors.stored.values().map(|stored| stored.elements()).sum(),
            bytes: self.tensors.files.iter().map(|file| file.len() as u64).sum(),
            quantisation: self.commonest_type().map(label),
            sizes: config.map(|c| Sizes {
                context: c.context,
                layers: c.layers,
                hidden: c.hidden,
                intermediate: c.intermediate,
                heads: c.heads,
                kv_heads: c.kv_heads,
                head_size: c.head_size,
                tied_embeddings: c.tied_embeddings,
            }),
            tokenizer,
            tokenizer_problem,
            thinking: template.as_deref().and_then(Thinking::of),
            template,
            special: config.map(special).unwrap_or_default(),
        }
    }

    fn describe_tokenizer(&self) -> Result<TokenizerDescription> {
        let (kind, vocabulary) = match &self.form {
            Form::Gguf(header) => (gguf_kind(header)?, vocabulary_size(header)?),
            Form::Folder(folder) => (folder_kind(folder)?, self.config.as_ref().map_or(0, |c| c.vocabulary)),
        };
        Ok(TokenizerDescription { kind, vocabulary, special: self.special_tokens()? })
    }

    fn commonest_type(&self) -> Option<GgmlDType> {
        let mut bytes: HashMap<GgmlDType, usize> = HashMap::new();
        for stored in self.tensors.stored.values() {
            *bytes.entry(stored.dtype).or_default() += stored.bytes.len();
        }
        bytes.into_iter().max_by_key(|&(_, bytes)| bytes).map(|(dtype, _)| dtype)
    }
}

fn special(config: &ModelConfig) -> Vec<String> {
    let family = config.family;
    let mut special: Vec<String> = [
        (family.biases, "biases on queries, keys and values"),
        (family.head_norms, "norms of query and key heads"),
        (family.post_norms, "norms after attention and feed-forward"),
        (family.activation == Activation::Gelu, "GELU gates"),
        (family.scaled_embeddings, "scaled embeddings"),
    ]
    .into_iter()
    .filter(|(has, _)| *has)
    .map(|(_, words)| words.to_owned())
    .collect();
    for (kind, reach) in config.reaches.iter().enumerate() {
        let layers = config.reach_of.iter().filter(|&&of| of == kind).count();
        if let Some(window) = reach.window {
            special.push(format!("{layers} of {} layers see {window} tokens", config.layers));
        }
    }
    let rotary = &config.reaches[0].rotary;
    if rotary.size() != config.head_size {
        special.push(format!("{} of {} head components turn", rotary.size(), config.head_size));
    }
    special
}

/// A type under the name people know it by.
fn label(dtype: GgmlDType) -> String {
    // Candle writes Q4K where everyone else writes Q4_K.
    let name = format!("{dtype:?}");
    match name.strip_suffix('K') {
        Some(stem) => format!("{stem}_K"),
        None => name,
    }
}
