//! Model files: configuration, weights, tokenizer and chat template of a GGUF file or a Hugging
//! Face folder, and the types that every crate above shares.
//!
//! Opening reads headers only; `foretoken-forward` runs models. The modules, from the bottom up:
//! - [`token`], [`error`], [`sampling`]: shared types, errors, and sampling settings
//! - [`recommended`]: sampling settings that a model's makers recommend
//! - [`format`]: storage formats of weights and their blocks
//! - [`config`], [`weights`]: a model's layers and the tensors they need
//! - [`tokenizer`], [`template`], [`text_stream`]: between messages and tokens
//! - [`tools`]: tools, and the calls that models write
//! - [`vision`]: settings and tensors of models that turn pictures into embeddings
//! - [`embedding`]: settings and tensors of models that turn texts into vectors
//! - [`child`]: child process for work on untrusted input

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods))]

pub mod channels;
pub mod child;
pub mod config;
mod description;
mod draft_head;
pub mod embedding;
pub mod error;
mod family;
mod folder;
pub mod format;
mod gathered;
mod gguf;
mod limits;
mod mtp;
mod part;
mod picture;
mod problem_kind;
mod quantisation;
mod recommendation;
pub mod recommended;
pub mod sampling;
mod stored_rows;
pub mod tables;
pub mod template;
mod tensors;
#[cfg(test)]
mod tests;
pub mod text_stream;
mod title;
pub mod token;
pub mod tokenizer;
pub mod tools;
pub mod vision;
mod weight_file;
pub mod weights;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use candle_core::Device;

pub use config::{
    Assistant, AttentionKind, AttentionParts, BlockHead, Clusters, Confidence, Convolution, Correction,
    Domino, DraftHead, Eagle3, Experts, FeedForwardSpec, FusedNorms, HeadKind, HeadNorms, Heads, KeyHeads,
    KvDtype, Latent, LayerNorms, LayerSpec, LiliCorr, MAX_INT8_HEAD_SIZE, MixerSpec, ModelConfig, Recurrence,
    RopeScaling, RopeTable, Rotary, Scoring, Selector, SharedExpert, SigmoidGating,
};
pub use description::{Description, Sizes, TokenizerDescription, label};
pub use embedding::EmbeddingSource;
pub use error::{Error, Result};
use family::HeadFamily;
pub use family::{Activation, Family, RecurrentKind, RotaryLayout};
use folder::Folder;
use gguf::Header;
pub use part::Part;
pub use picture::{Detail, Picture};
pub use problem_kind::ProblemKind;
pub use stored_rows::StoredRows;
use tables::outer;
pub use template::{
    ChatMessage, ChatTemplate, Conversation, PlacedPicture, Renderer, Role, Thinking, ThinkingParser,
    ThinkingPiece,
};
use tensors::{Tensors, TokenTable};
pub use text_stream::TextStream;
pub use tokenizer::{Special, SpecialToken, SpecialTokens, Tokenizer};
pub use tools::{CallForm, CallParser, Piece, Tool, ToolCall, Written, call_id};
pub use vision::{
    GEMMA_EMBEDDINGS, LearnedPositions, Projector, Rotation, RotationLayout, VisionActivation, VisionConfig,
    VisionSource, VitOptions,
};
pub use weights::{Watcher, Weights};

/// Rows of the largest pass that memory is estimated for, that of a long draft.
const ROWS: usize = 17;

/// Recurrent states that exist at once, including checkpoints to return to, for the estimate of
/// memory.
const STATES: usize = 6;

/// Bytes of the program and the tokenizer, for the estimate of memory.
const PROGRAM: u64 = 50_000_000;

/// An opened model. The headers are checked; no weights are loaded.
#[derive(Clone)]
pub struct ModelSource {
    path: PathBuf,
    form: Arc<Form>,
    tensors: Arc<Tensors>,
    /// `None` for a file that holds a tokenizer and no weights.
    config: Option<ModelConfig>,
    eight_bits: bool,
    watcher: Option<Watcher>,
}

enum Form {
    Gguf(Header),
    Folder(Box<Folder>),
}

impl ModelSource {
    /// Opens a `.gguf` file or a folder with config.json and safetensors.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` for what is no model, is cut short or contradicts itself;
    /// `Error::Architecture` for a family Foretoken does not run; `Error::OnlyEmbeddings`.
    pub fn open(path: &Path) -> Result<Self> {
        let opened = if path.is_dir() { Self::open_folder(path) } else { Self::open_gguf(path) };
        match opened {
            Err(Error::Architecture { .. }) if EmbeddingSource::open(path).is_ok() => {
                Err(Error::OnlyEmbeddings { path: path.to_owned() })
            }
            opened => opened,
        }
    }

    fn open_gguf(path: &Path) -> Result<Self> {
        let (header, tensors) = gguf::open(path)?;
        let config = if tensors.stored.is_empty() {
            None
        } else {
            let vector = |name: &str| {
                if !tensors.stored.contains_key(name) {
                    return Ok(None);
                }
                let stored = tensors.load(name, &Device::Cpu)?;
                Ok(Some(stored.dequantize(&Device::Cpu)?.flatten_all()?.to_vec1::<f32>()?))
            };
            let has = |name: &str| tensors.stored.contains_key(name);
            let mut config = ModelConfig::from_gguf(&header, &vector, has)?;
            if config.family.head == Some(HeadFamily::Assistant) {
                let clusters = tables::assistant::clusters(&tensors);
                config.assist_gguf(&header, clusters)?;
            }
            Some(config)
        };
        Self::checked(path, Form::Gguf(header), tensors, config)
    }

    fn open_folder(path: &Path) -> Result<Self> {
        let folder = Folder::open(path)?;
        let family = folder.family()?;
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let tied = folder.ties_embeddings(family);
        let mut config = ModelConfig::from_json(path, folder.language(), family, name, tied)?;
        let (whole, block) = (&folder.config, folder.language());
        match family.head {
            Some(HeadFamily::Assistant) => config.assist_json(path, whole)?,
            Some(HeadFamily::Eagle3) => {
                config.draft_head = Some(DraftHead::eagle3_from_json(path, whole, block)?);
            }
            Some(HeadFamily::Block) => {
                config.draft_head = Some(DraftHead::block_from_json(path, whole, block, &config)?);
            }
            None => {}
        }
        let tensors = folder.tensors(&config)?;
        Self::checked(path, Form::Folder(Box::new(folder)), tensors, Some(config))
    }

    fn checked(
        path: &Path,
        form: Form,
        mut tensors: Tensors,
        mut config: Option<ModelConfig>,
    ) -> Result<Self> {
        if let Some(config) = &mut config {
            limits::check(path, config)?;
            if config.draft_head.is_some() {
                config.tied_embeddings = false;
                config.vocabulary = tensors.token_table.as_ref().map_or(config.tokens(), TokenTable::len);
            }
            tables::block_head::complete(config, &tensors)?;
            tables::split(&mut tensors, config)?;
            if mtp::is_alone(&tensors, config) {
                (tensors, *config) = mtp::head_of(&tensors, config)?;
            }
            tables::check(&tensors, config)?;
        }
        let (path, form, tensors) = (path.to_owned(), Arc::new(form), Arc::new(tensors));
        Ok(Self { path, form, tensors, config, eight_bits: false, watcher: None })
    }

    /// Reports the progress of loading weights to `watcher`, which can stop it: loading then
    /// returns `Error::Cancelled`.
    #[must_use]
    pub fn watched_by(self, watcher: Watcher) -> Self {
        Self { watcher: Some(watcher), ..self }
    }

    /// Rounds weights of 16 and 32 bits to Q8_0 while loading. They take a half or a quarter of the
    /// memory and bandwidth, but no longer equal those in the file.
    #[must_use]
    pub fn in_eight_bits(self, eight_bits: bool) -> Self {
        Self { eight_bits, ..self }
    }

    /// Returns whether weights are rounded, see [`Self::in_eight_bits`].
    pub fn eight_bits(&self) -> bool {
        self.eight_bits
    }

    /// Caches keys and values in `dtype`. In 8 bits they take half of the memory, and attention
    /// reads rounded numbers. Draft heads of the model keep 16 bits.
    #[must_use]
    pub fn with_kv_dtype(mut self, dtype: KvDtype) -> Self {
        if let Some(config) = &mut self.config {
            config.kv_dtype = dtype;
        }
        self
    }

    /// Text that is another one for every other model on this computer: versions of the files as
    /// they are open, their conversion, and the configuration.
    pub fn version(&self) -> String {
        let files: Vec<&str> = self.tensors.files.iter().map(|file| file.version()).collect();
        format!("{}; eight bits: {}; {:?}", files.join(", "), self.eight_bits, self.config)
    }

    /// Limits the context, and with it the cache, to `context` tokens.
    #[must_use]
    pub fn limited_to(mut self, context: usize) -> Self {
        if let Some(config) = &mut self.config {
            config.context = config.context.min(context);
        }
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the model's configuration.
    ///
    /// # Errors
    /// `Error::BadModel` for a file that holds a tokenizer alone.
    pub fn config(&self) -> Result<&ModelConfig> {
        self.config.as_ref().ok_or_else(|| Error::BadModel {
            path: self.path.clone(),
            expected: "a model with weights".into(),
            found: "only a tokenizer".into(),
            hint: "Choose another file.",
        })
    }

    /// Returns the weights, to be copied to `device` one tensor at a time.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn weights(&self, device: &Device) -> Result<Weights> {
        self.config()?;
        Ok(Weights::new(Arc::clone(&self.tensors), device, self.eight_bits, self.watcher.clone()))
    }

    /// Estimates the bytes of memory that the model takes on a CPU with `tokens` in its context:
    /// packed weights, keys and values, recurrent states and the rows of a pass.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn memory_bytes(&self, tokens: usize) -> Result<u64> {
        let config = self.config()?;
        let tokens = tokens.min(config.context);
        let cache = config.kv_bytes(tokens);
        let recurrent = config.layers.iter().filter_map(|layer| layer.mixer.recurrence());
        let states = recurrent.map(Recurrence::state).sum::<usize>() * size_of::<f32>() * STATES;
        let row = config.vocabulary + 4 * config.hidden + 2 * config.intermediate();
        let weights = self.weights(&Device::Cpu)?;
        let in_file = |name: &str| match name {
            outer::EMBEDDING => config.assistant().is_some(),
            name => name == outer::PER_LAYER_EMBEDDING,
        };
        let loaded = self.tensors.stored.iter().filter(|(name, _)| !in_file(name));
        let weights: u64 = loaded.map(|(_, stored)| weights.loaded_bytes(stored)).sum();
        let rows = row * size_of::<f32>() * ROWS;
        Ok(weights + (cache + states + rows) as u64 + PROGRAM)
    }

    /// Bytes of weights that a pass over one token reads on a CPU. Excludes embedding tables that
    /// are not the output matrix, counts only the experts of one token, and of a draft head's
    /// output matrix the smallest part it scores.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn read_bytes(&self) -> Result<u64> {
        let config = self.config()?;
        let weights = self.weights(&Device::Cpu)?;
        let idle = |name: &str| match name {
            outer::EMBEDDING => !config.tied_embeddings,
            name => name == outer::PER_LAYER_EMBEDDING,
        };
        let read = self.tensors.stored.iter().filter(|(name, _)| !idle(name));
        Ok(read
            .map(|(name, stored)| match config.experts() {
                Some(experts) if tables::experts::is_of_expert(name) => {
                    weights.loaded_bytes(stored) * experts.top_k as u64 / experts.count as u64
                }
                _ if name == outer::OUTPUT => {
                    let (looked_at, of) = config.draft_head.as_ref().map_or((1, 1), DraftHead::scored);
                    weights.loaded_bytes(stored) * looked_at as u64 / of as u64
                }
                _ => weights.loaded_bytes(stored),
            })
            .sum())
    }

    /// Builds the tokenizer. A watcher can stop that, see [`Self::watched_by`].
    ///
    /// # Errors
    /// `Error::Tokenizer` when it is missing, damaged or of an unknown kind; `Error::Cancelled`.
    pub fn tokenizer(&self) -> Result<Tokenizer> {
        let Some(watcher) = &self.watcher else { return self.build_tokenizer() };
        let (source, total) = (self.clone(), self.tensors.bytes());
        tokenizer::unless_stopped(&|| watcher(0, total).is_break(), move || source.build_tokenizer())
    }

    fn build_tokenizer(&self) -> Result<Tokenizer> {
        match &*self.form {
            Form::Gguf(header) => tokenizer::from_gguf(header),
            Form::Folder(folder) => tokenizer::from_folder(folder),
        }
    }

    /// Returns the special tokens without building the tokenizer.
    ///
    /// # Errors
    /// As [`Self::tokenizer`].
    pub fn special_tokens(&self) -> Result<SpecialTokens> {
        match &*self.form {
            Form::Gguf(header) => tokenizer::gguf_special_tokens(header),
            Form::Folder(folder) => tokenizer::folder_special_tokens(folder),
        }
    }

    /// Returns the chat template, compiled by `renderer`.
    ///
    /// # Errors
    /// As [`Self::template_source`], and `Error::Template` when it is not valid Jinja.
    pub fn template(&self, renderer: &Arc<Renderer>) -> Result<ChatTemplate> {
        let source = self.template_source()?;
        let special = self.special_tokens()?;
        let text = |token: &Option<SpecialToken>| token.as_ref().map(|token| token.text.clone());
        let (bos, eos) = (text(&special.bos), text(&special.eos));
        ChatTemplate::new(self.path.clone(), source, bos.as_deref(), eos.as_deref(), renderer)
    }

    /// Returns the source of the chat template, without compiling it.
    ///
    /// # Errors
    /// `Error::NoTemplate` if the model has none; `Error::Template` if it is too long to compile.
    pub fn template_source(&self) -> Result<String> {
        let source = self.stored_template()?.ok_or_else(|| Error::NoTemplate { path: self.path.clone() })?;
        template::check_length(&self.path, &source)?;
        Ok(source)
    }

    fn stored_template(&self) -> Result<Option<String>> {
        match &*self.form {
            Form::Gguf(header) => Ok(header.chat_template()?.map(str::to_owned)),
            Form::Folder(folder) => folder.chat_template(),
        }
    }
}
