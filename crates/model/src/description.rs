//! Descriptions of a model from its headers alone, for `inspect` and lists of models.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use serde::Serialize;

use super::title::{Clues, format_of, is_size, title};
use super::tokenizer::{folder_kind, gguf_kind, vocabulary_size};
use super::{
    Activation, AttentionKind, Form, HeadKind, HeadNorms, Latent, MixerSpec, ModelConfig, ModelSource,
    RopeScaling, SpecialTokens, Thinking, quantisation,
};
use crate::error::Result;
use crate::format::Format;

/// Description of a model in words and numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Description {
    /// Title from the metadata and the file name, such as "SmolLM2 135M Instruct".
    pub name: String,
    pub architecture: Option<String>,
    /// "GGUF" or "safetensors".
    pub format: &'static str,
    /// Number of parameters; tied embeddings count once.
    pub parameters: u64,
    /// Size of all weight files on disk.
    pub bytes: u64,
    /// Format of the weights, such as "Q4_K_M"; `None` without weights.
    pub quantisation: Option<String>,
    /// Sizes of the model; `None` for a tokenizer alone.
    pub sizes: Option<Sizes>,
    /// `None` if the tokenizer is unusable, and for a draft head, which uses its target's.
    pub tokenizer: Option<TokenizerDescription>,
    /// Reason why the tokenizer is unusable.
    pub tokenizer_problem: Option<String>,
    /// Source of the chat template.
    pub template: Option<String>,
    /// Licence in a GGUF file, such as "apache-2.0"; `None` if it has none.
    pub licence: Option<String>,
    /// Tags around the model's reasoning.
    pub thinking: Option<Thinking>,
    /// Differences of the architecture from Llama, in words.
    pub special: Vec<String>,
}

/// Description of a tokenizer in words and numbers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TokenizerDescription {
    /// Kind of tokenizer, such as "byte-level BPE, gpt-2" or "SentencePiece".
    pub kind: String,
    /// Number of tokens.
    pub vocabulary: usize,
    pub special: SpecialTokens,
}

/// Sizes of a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizes {
    /// Context length that the model was trained with, in tokens.
    pub context: usize,
    /// Bytes of keys and values per token.
    pub kv_bytes: usize,
    /// Bytes of an 8-bit KV cache per token; `None` if the model cannot have one.
    pub int8_kv_bytes: Option<usize>,
    pub rope_scaling: Option<RopeScaling>,
    pub layers: usize,
    pub hidden: usize,
    pub intermediate: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_size: usize,
    pub tied_embeddings: bool,
}

impl ModelSource {
    /// Returns the number of parameters, over all tensors.
    pub fn parameters(&self) -> u64 {
        self.tensors.stored.values().map(|stored| stored.elements()).sum()
    }

    /// Describes the model, without reading weights or building the tokenizer.
    pub fn describe(&self) -> Description {
        let config = self.config.as_ref();
        let format = match &*self.form {
            Form::Gguf(_) => "GGUF",
            Form::Folder(_) => "safetensors",
        };
        let (tokenizer, tokenizer_problem) = match self.describe_tokenizer() {
            Ok(description) => (Some(description), None),
            Err(_) if self.is_draft_head() => (None, None),
            Err(error) => (None, Some(error.to_string())),
        };
        let template = self.stored_template().ok().flatten();
        let own_head = self.mtp_head().is_ok().then(|| "an MTP head, which drafts for this model".to_owned());
        Description {
            name: self.title(),
            architecture: config.map(|c| c.family.name.to_owned()),
            format,
            parameters: self.parameters(),
            bytes: self.tensors.files.iter().map(|file| file.len() as u64).sum(),
            quantisation: self.quantisation(),
            sizes: config.map(|c| Sizes {
                context: c.context,
                kv_bytes: c.kv_bytes(1),
                int8_kv_bytes: c.int8_kv_bytes(),
                rope_scaling: c.rope_scaling(),
                layers: c.depth(),
                hidden: c.hidden,
                intermediate: c.intermediate(),
                heads: c.heads,
                kv_heads: c.kv_heads(),
                head_size: c.head_size(),
                tied_embeddings: c.tied_embeddings,
            }),
            tokenizer,
            tokenizer_problem,
            licence: self.licence(),
            thinking: template.as_deref().and_then(Thinking::of),
            template,
            special: config.map(special).unwrap_or_default().into_iter().chain(own_head).collect(),
        }
    }

    fn describe_tokenizer(&self) -> Result<TokenizerDescription> {
        let (kind, vocabulary) = match &*self.form {
            Form::Gguf(header) => (gguf_kind(header)?, vocabulary_size(header)?),
            Form::Folder(folder) => (folder_kind(folder)?, self.config.as_ref().map_or(0, |c| c.vocabulary)),
        };
        Ok(TokenizerDescription { kind, vocabulary, special: self.special_tokens()? })
    }

    fn title(&self) -> String {
        match &*self.form {
            Form::Gguf(header) => {
                let clue = |key: &str| header.string(key).ok().flatten();
                title(Clues {
                    name: clue("general.name"),
                    basename: clue("general.basename"),
                    size_label: clue("general.size_label"),
                    finetune: clue("general.finetune"),
                    file: &file_name(self.path.file_stem()),
                })
            }
            Form::Folder(folder) => {
                // `_name_or_path` may name the base model, so the folder comes first.
                let (name, own) = (folder.config["_name_or_path"].as_str(), folder_name(&self.path));
                title(Clues { name, basename: Some(&own), file: &own, ..Clues::default() })
            }
        }
    }

    fn licence(&self) -> Option<String> {
        let Form::Gguf(header) = &*self.form else { return None };
        header.string("general.license").ok().flatten().map(str::to_owned)
    }

    fn quantisation(&self) -> Option<String> {
        let (file_type, file) = match &*self.form {
            Form::Gguf(header) => {
                (header.integer("general.file_type").ok().flatten(), file_name(self.path.file_stem()))
            }
            Form::Folder(_) => (None, String::new()),
        };
        self.commonest_type().map(|commonest| quantisation::name(file_type, format_of(&file), commonest))
    }

    /// Returns the type of most matrices; among equals the one with more bytes.
    fn commonest_type(&self) -> Option<Format> {
        let mut found: HashMap<Format, (usize, usize)> = HashMap::new();
        for stored in self.tensors.stored.values().filter(|stored| stored.shape.len() > 1) {
            let (matrices, bytes) = found.entry(stored.format).or_default();
            (*matrices, *bytes) = (*matrices + 1, *bytes + stored.bytes.len());
        }
        found.into_iter().max_by_key(|&(_, counted)| counted).map(|(format, _)| format)
    }
}

impl Description {
    /// Returns the model's line in a list, such as "SmolLM2 135M Instruct · Q4_1". A name without a
    /// size is followed by the number of parameters.
    pub fn label(&self) -> String {
        label(&self.name, self.parameters, self.quantisation.as_deref())
    }
}

/// Returns a model's line in a list, see [`Description::label`].
pub fn label(name: &str, parameters: u64, quantisation: Option<&str>) -> String {
    let quantisation = quantisation.unwrap_or("no weights");
    if parameters == 0 || name.split(' ').any(is_size) {
        return format!("{name} · {quantisation}");
    }
    format!("{name} {} · {quantisation}", count(parameters))
}

/// Formats a number of parameters: "8.1M", "1.1B".
fn count(parameters: u64) -> String {
    match parameters as f64 {
        n if n >= 1e9 => format!("{:.1}B", n / 1e9),
        n if n >= 1e6 => format!("{:.1}M", n / 1e6),
        n => format!("{:.0}K", n / 1e3),
    }
}

fn file_name(name: Option<&OsStr>) -> String {
    name.unwrap_or_default().to_string_lossy().into_owned()
}

/// Returns a folder's name; for a snapshot in the hub's cache, the repository's.
fn folder_name(path: &Path) -> String {
    // models--owner--name/snapshots/<revision>
    let repository = path.ancestors().nth(2).map(|path| file_name(path.file_name()));
    match repository.as_deref().and_then(|name| name.strip_prefix("models--")?.split_once("--")) {
        Some((_, name)) => name.to_owned(),
        None => file_name(path.file_name()),
    }
}

fn special(config: &ModelConfig) -> Vec<String> {
    let parts = config.attention_parts();
    let norms = match parts.head_norms {
        HeadNorms::Together => "norms of all query heads and of all key heads",
        _ => "norms of query and key heads",
    };
    let mut special: Vec<String> = [
        (parts.biases, "biases on queries, keys and values"),
        (parts.head_norms != HeadNorms::None, norms),
        (config.has_post_norms(), "norms after attention and feed-forward"),
        (parts.gate, "gates after attention"),
        (config.activation == Activation::Gelu, "GELU gates"),
        (config.activation == Activation::Clamped, "clamped gates"),
        (parts.sinks, "attention sinks"),
        (parts.value_norm, "norms of values"),
        (config.embedding_scale != 1.0, "scaled embeddings"),
        (config.normed_embeddings, "normed embeddings"),
        (config.scoring.cap.is_some(), "soft-capped logits"),
    ]
    .into_iter()
    .filter(|(has, _)| *has)
    .map(|(_, words)| words.to_owned())
    .collect();
    if let Some(head) = &config.draft_head {
        let reads = match &head.entering {
            Some(_) if head.assistant().is_some() => {
                "the states after the last layer, and the keys and values of its last layers,".to_owned()
            }
            Some(_) if head.kind == HeadKind::Mtp => "the states after the last layer".to_owned(),
            Some(layers) => {
                let layers = layers.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
                format!("the states that enter layers {layers}")
            }
            None => "the states that enter three layers".to_owned(),
        };
        special.push(format!("a draft head: reads {reads} of its target"));
        if let Some(clusters) = head.assistant().and_then(|assistant| assistant.clusters) {
            special.push(format!(
                "scores the nearest {} of {} clusters of tokens",
                clusters.nearest, clusters.count
            ));
        }
        if let Some(block) = head.block() {
            special.push(format!("drafts up to {} tokens in one pass", block.longest()));
        }
        special.push(format!("drafts {} of the target's {} tokens", config.vocabulary, head.tokens));
    }
    if let Some(width) = config.per_layer_input() {
        special.push(format!("per-layer embeddings of {width} numbers"));
    }
    let layers = config.depth();
    let attends = |layer: usize| matches!(config.layers[layer].mixer, MixerSpec::Attention { .. });
    let sharing = (0..layers).filter(|&layer| attends(layer) && !config.computes_kv(layer)).count();
    if sharing > 0 {
        special.push(format!("{sharing} of {layers} layers share the KV cache of another layer"));
    }
    if let Some(experts) = config.experts() {
        special.push(format!("{} of {} experts per token", experts.top_k, experts.count));
    }
    let of_kind = |kind: &AttentionKind| {
        (0..layers).filter(|&layer| config.attention(layer).is_some_and(|other| other == kind)).count()
    };
    for kind in &config.attention_kinds {
        if let Some(window) = kind.window {
            let windowed = of_kind(kind);
            special.push(format!("{windowed} of {layers} layers attend to the last {window} tokens"));
        }
    }
    let (no_rope, rotated): (Vec<_>, Vec<_>) =
        config.attention_kinds.iter().partition(|kind| kind.rotary.size() == 0);
    let no_rope: usize = no_rope.into_iter().map(of_kind).sum();
    if no_rope > 0 {
        special.push(format!("{no_rope} of {layers} layers without RoPE"));
    }
    if let Some(latent) = config.latent() {
        let Latent { size, turned: rotated, .. } = latent;
        special.push(format!("latent attention (MLA) of rank {size}, RoPE on {rotated} dimensions"));
    } else if let Some(AttentionKind { rotary, keys, .. }) = rotated.first()
        && rotary.size() != keys.size
    {
        special.push(format!("RoPE on {} of {} head dimensions", rotary.size(), keys.size));
    }
    if rotated.iter().any(|kind| kind.rotary.attn_temperature.is_some()) {
        special.push("queries scaled by their position".to_owned());
    }
    if let Some(switch) = config.rope_switch_length() {
        special.push(format!("other LongRoPE factors beyond {switch} tokens"));
    }
    special
}
