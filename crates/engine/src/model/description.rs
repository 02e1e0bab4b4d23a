//! What there is to say about a model without loading it: for `inspect` and the lists of models.

use std::collections::HashMap;

use candle_core::quantized::GgmlDType;
use serde::Serialize;

use super::{Form, ModelSource, SpecialTokens, tokenizer};

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
    /// Tokens; 0 when the file does not say.
    pub vocabulary: usize,
    /// The tokens with a role, or why the tokenizer cannot be used.
    pub tokenizer: std::result::Result<SpecialTokens, String>,
    /// The chat template's source.
    pub template: Option<String>,
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
        let (format, vocabulary, own_name) = match &self.form {
            Form::Gguf(header) => {
                let name = header.string("general.name").ok().flatten();
                ("GGUF", tokenizer::vocabulary_size(header).unwrap_or(0), name.map(str::to_owned))
            }
            Form::Folder(_) => ("safetensors", config.map_or(0, |c| c.vocabulary), None),
        };
        let file_name = || self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Description {
            name: own_name.unwrap_or_else(file_name),
            architecture: config.map(|c| c.architecture.clone()),
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
            vocabulary,
            tokenizer: self.special_tokens().map_err(|error| error.to_string()),
            template: self.template_source().ok().flatten(),
        }
    }

    fn commonest_type(&self) -> Option<GgmlDType> {
        let mut bytes: HashMap<GgmlDType, usize> = HashMap::new();
        for stored in self.tensors.stored.values() {
            *bytes.entry(stored.dtype).or_default() += stored.bytes.len();
        }
        bytes.into_iter().max_by_key(|&(_, bytes)| bytes).map(|(dtype, _)| dtype)
    }
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
