//! Hugging Face model folders: their JSON documents, and the tensors of their safetensors files
//! under canonical names. Does not interpret the configuration or the tokenizer.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::Dtype;
use safetensors::tensor::Metadata;
use serde_json::Value as Json;

use super::config::ModelConfig;
use super::family::{Family, HeadFamily, NormsAboveOne};
use super::limits::{self, at_most};
use super::tables::assistant::is_order;
use super::tables::outer::{EMBEDDING, OUTPUT, TOKEN_TABLE};
use super::tables::recurrent::{DECAY, unfolded};
use super::tables::{Names, experts};
use super::tensors::{Meaning, Raw, Stored, Tensors, TokenTable};
use super::weight_file::WeightFile;
use crate::error::{DOWNLOAD_AGAIN, Error, Result};
use crate::format::Format;

/// Bytes of the length before a safetensors header.
const LENGTH_PREFIX: usize = 8;

/// A draft head's table of target tokens, and the mask of the target's vocabulary that it implies.
const TABLES: [&str; 2] = [TOKEN_TABLE, "t2d"];

/// JSON documents beside the weights; null for missing ones.
pub(super) struct Folder {
    pub path: PathBuf,
    pub config: Json,
    pub generation_config: Json,
    pub tokenizer_config: Json,
    pub special_tokens_map: Json,
}

impl Folder {
    /// Opens a folder and reads its documents.
    ///
    /// # Errors
    /// `Error::BadModel` without a config.json or for invalid JSON; `Error::Io`.
    pub fn open(path: &Path) -> Result<Self> {
        let read = |name: &str| read_json(&path.join(name), limits::SMALL_DOCUMENT);
        let Some(config) = read("config.json")? else {
            return Err(Error::BadModel {
                path: path.to_owned(),
                expected: "config.json and safetensors files in the folder".into(),
                found: "no config.json".into(),
                hint: "Choose a .gguf file, or a folder that holds a model.",
            });
        };
        Ok(Self {
            path: path.to_owned(),
            config,
            generation_config: read("generation_config.json")?.unwrap_or_default(),
            tokenizer_config: read_json(&path.join("tokenizer_config.json"), limits::TOKENIZER_CONFIG)?
                .unwrap_or_default(),
            special_tokens_map: read("special_tokens_map.json")?.unwrap_or_default(),
        })
    }

    /// Returns the family that config.json names.
    ///
    /// # Errors
    /// `Error::Architecture` for an unsupported architecture.
    pub fn family(&self) -> Result<&'static Family> {
        let class = self.config["architectures"][0].as_str();
        let named = Family::of_class(class.unwrap_or("none"), &self.path);
        if matches!(&named, Ok(family) if family.head.is_some_and(|head| head != HeadFamily::Eagle3)) {
            return named;
        }
        // Some EAGLE-3 heads declare the class of their target.
        if !self.config["draft_vocab_size"].is_null() {
            return Ok(Family::draft_head(self.language()["model_type"] == "qwen3"));
        }
        named
    }

    /// Returns the part of config.json that describes the text model; a multimodal model nests it.
    pub fn language(&self) -> &Json {
        let parts = ["text_config", "transformer_layer_config"].map(|part| &self.config[part]);
        parts.into_iter().find(|part| part.is_object()).unwrap_or(&self.config)
    }

    /// Returns whether the embedding is the output matrix too.
    pub fn ties_embeddings(&self, family: &Family) -> bool {
        let stated = [&self.config, self.language()].map(|config| config["tie_word_embeddings"].as_bool());
        stated[0].or(stated[1]).unwrap_or(family.tied)
    }

    /// Opens the safetensors files and locates their tensors.
    ///
    /// # Errors
    /// `Error::BadModel` if a file is missing, damaged or truncated, or has a tensor of an unknown
    /// name or type.
    pub fn tensors(&self, config: &ModelConfig) -> Result<Tensors> {
        let (family, names) = (config.family, Names::new(config));
        let mut tensors = Tensors::none(&self.path);
        for name in self.weight_files()? {
            let path = self.path.join(name);
            let file = WeightFile::open(&path)?;
            locate(&path, &file, config, &names, &mut tensors)?;
            tensors.files.push(Arc::new(file));
        }
        // Files contain the matrix under either name, or under both.
        if self.ties_embeddings(family)
            && family.head.is_none()
            && let Some(output) = tensors.stored.remove(OUTPUT)
        {
            tensors.stored.entry(EMBEDDING.into()).or_insert(output);
        }
        Ok(tensors)
    }

    /// Locates the tensors that `canonical` names, such as those of the vision model.
    ///
    /// # Errors
    /// As [`Self::tensors`].
    pub fn named_tensors(&self, canonical: &dyn Fn(&str) -> Option<String>) -> Result<Tensors> {
        let mut tensors = Tensors::none(&self.path);
        for name in self.weight_files()? {
            let path = self.path.join(name);
            let file = WeightFile::open(&path)?;
            let (data, metadata) = read_header(&path, &file)?;
            for (name, info) in metadata.tensors() {
                let Some(canonical) = canonical(&name) else { continue };
                at_most(&path, "tensors", tensors.count(), limits::TENSORS)?;
                let format = of_numbers(&path, &name, info.dtype)?;
                let (start, end) = info.data_offsets;
                // A number alone is a list of one.
                let shape = if info.shape.is_empty() { vec![1] } else { info.shape.clone() };
                let bytes = data + start..data + end;
                let (file, meaning) = (tensors.files.len(), Meaning::Themselves);
                let stored = Stored { format, shape, file, bytes, meaning, gathered: None, factor: None };
                tensors.stored.insert(canonical, stored);
            }
            tensors.files.push(Arc::new(file));
        }
        Ok(tensors)
    }

    /// Settings of the picture processor; null without any. Newer folders have them in
    /// processor_config.json, which wins.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` for invalid JSON.
    pub fn processor(&self) -> Result<Json> {
        let whole = self.document("processor_config.json")?;
        if whole["image_processor"].is_object() {
            return Ok(whole["image_processor"].clone());
        }
        self.document("preprocessor_config.json")
    }

    /// Reads another small JSON document; null if there is none.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` for invalid JSON.
    pub fn document(&self, name: &str) -> Result<Json> {
        Ok(read_json(&self.path.join(name), limits::SMALL_DOCUMENT)?.unwrap_or_default())
    }

    /// Returns the source of the chat template, from its own file or the tokenizer's configuration.
    ///
    /// # Errors
    /// `Error::Io`; `Error::BadModel` for invalid JSON.
    pub fn chat_template(&self) -> Result<Option<String>> {
        if let Some(text) = read_document(&self.path.join("chat_template.jinja"), limits::DOCUMENT)? {
            return Ok(Some(String::from_utf8_lossy(&text).into_owned()).filter(|text| !text.is_empty()));
        }
        let document = read_json(&self.path.join("chat_template.json"), limits::DOCUMENT)?;
        let template = match &document.as_ref().unwrap_or(&self.tokenizer_config)["chat_template"] {
            Json::Array(named) => {
                named.iter().find(|t| t["name"] == "default").map_or(&Json::Null, |t| &t["template"])
            }
            other => other,
        };
        Ok(template.as_str().filter(|text| !text.is_empty()).map(str::to_owned))
    }

    /// Returns the names of the weight files.
    fn weight_files(&self) -> Result<BTreeSet<String>> {
        const SINGLE: &str = "model.safetensors";
        const INDEX: &str = "model.safetensors.index.json";
        let bad = |found: &str, hint| Error::BadModel {
            path: self.path.clone(),
            expected: format!("{SINGLE} or {INDEX} with its files"),
            found: found.into(),
            hint,
        };
        let files: BTreeSet<String> = if self.path.join(SINGLE).exists() {
            [SINGLE.to_owned()].into()
        } else if let Some(index) = read_json(&self.path.join(INDEX), limits::INDEX)? {
            let map = index["weight_map"]
                .as_object()
                .ok_or_else(|| bad("no weight_map in the index", DOWNLOAD_AGAIN))?;
            map.values().filter_map(|file| file.as_str().map(str::to_owned)).collect()
        } else {
            return Err(bad("neither", "Choose a folder that holds safetensors weights."));
        };
        for file in &files {
            // An index names files in its own folder; reject paths that lead elsewhere.
            if Path::new(file).components().count() != 1 || !self.path.join(file).is_file() {
                return Err(bad(&format!("no {file}"), DOWNLOAD_AGAIN));
            }
        }
        Ok(files)
    }
}

/// First words of a file that Git LFS left in the place of the real one.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/";

/// Returns true if a file that begins with `start` is a pointer of Git LFS.
pub(super) fn is_lfs_pointer(start: &[u8]) -> bool {
    start.starts_with(LFS)
}

/// Reads a JSON document of at most `limit` bytes; `None` if the file does not exist.
fn read_json(path: &Path, limit: usize) -> Result<Option<Json>> {
    let Some(text) = read_document(path, limit)? else { return Ok(None) };
    if is_lfs_pointer(&text) {
        return Err(Error::LfsPointer(path.to_owned()));
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| Error::BadModel {
        path: path.to_owned(),
        expected: "a JSON document".into(),
        found: error.to_string(),
        hint: DOWNLOAD_AGAIN,
    })
}

/// Reads the bytes of a document of at most `limit` bytes; `None` if the file does not exist.
pub(super) fn read_document(path: &Path, limit: usize) -> Result<Option<Vec<u8>>> {
    match WeightFile::open(path) {
        Ok(file) => {
            at_most(path, "bytes", file.len(), limit).and_then(|()| file.read(0..file.len())).map(Some)
        }
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Adds the tensors of `file`, which the caller then appends to `tensors.files`.
fn locate(
    path: &Path,
    file: &WeightFile,
    config: &ModelConfig,
    names: &Names<'_>,
    tensors: &mut Tensors,
) -> Result<()> {
    let family = config.family;
    let bad = |expected: String, found: String, hint| Error::BadModel {
        path: path.to_owned(),
        expected,
        found,
        hint,
    };
    let (data, metadata) = read_header(path, file)?;
    for (name, info) in metadata.tensors() {
        // Buffers in files of old writers; the configuration implies them.
        if name.ends_with("rotary_emb.inv_freq") || is_beside(&name) {
            continue;
        }
        at_most(path, "tensors", tensors.count(), limits::TENSORS)?;
        let mtp = names.canonical_of_mtp(&name);
        // Copies of the target's tensors, used in training.
        if family.head == Some(HeadFamily::Block) && name.starts_with("verifier_") {
            continue;
        }
        let (start, end) = info.data_offsets;
        let bytes = data + start..data + end;
        if family.head.is_some() && TABLES.contains(&name.as_str()) {
            if name == TOKEN_TABLE && info.dtype == Dtype::I64 {
                let (file, width) = (tensors.files.len(), size_of::<i64>());
                tensors.token_table = Some(TokenTable { file, bytes, width, offsets: true });
            }
            continue;
        }
        if family.head == Some(HeadFamily::Assistant) && is_order(&name) {
            let width = match info.dtype {
                Dtype::I32 => size_of::<i32>(),
                Dtype::I64 => size_of::<i64>(),
                other => {
                    let expected = format!("{name} in I32 or I64");
                    return Err(bad(expected, format!("{other:?}"), "Choose another file of this model."));
                }
            };
            tensors.order = Some(TokenTable { file: tensors.files.len(), bytes, width, offsets: false });
            continue;
        }
        let Some(canonical) = mtp.clone().or_else(|| names.canonical(&of_language(&name))) else {
            let expected = format!("only the tensors of {}", family.name);
            return Err(bad(expected, format!("{name} as well"), "Choose another model."));
        };
        if info.dtype == Dtype::U8 && mtp.is_none() && experts::is_raw(&canonical) {
            let raw = Raw { shape: info.shape.clone(), file: tensors.files.len(), bytes };
            if tensors.raw.insert(canonical, raw).is_some() {
                return Err(bad("each tensor once".into(), format!("{name} twice"), DOWNLOAD_AGAIN));
            }
            continue;
        }
        let format = match of_numbers(path, &name, info.dtype) {
            // The model runs without its MTP block.
            Err(_) if mtp.is_some() => continue,
            format => format?,
        };
        let shape = unfolded(&canonical, &info.shape).unwrap_or_else(|| info.shape.clone());
        let meaning = meaning(&canonical, &shape, family);
        let tensor =
            Stored { format, shape, file: tensors.files.len(), bytes, meaning, gathered: None, factor: None };
        let among = if mtp.is_some() { &mut tensors.mtp } else { &mut tensors.stored };
        if among.insert(canonical, tensor).is_some() {
            return Err(bad("each tensor once".into(), format!("{name} twice"), DOWNLOAD_AGAIN));
        }
    }
    Ok(())
}

/// Format of a tensor's numbers.
///
/// # Errors
/// `Error::BadModel` for another type.
fn of_numbers(path: &Path, name: &str, dtype: Dtype) -> Result<Format> {
    match dtype {
        Dtype::F32 => Ok(Format::F32),
        Dtype::F16 => Ok(Format::F16),
        Dtype::BF16 => Ok(Format::Bf16),
        other => Err(Error::BadModel {
            path: path.to_owned(),
            expected: format!("{name} in F32, F16 or BF16"),
            found: format!("{other:?}"),
            hint: "Choose another file of this model.",
        }),
    }
}

/// Reads the header of a safetensors file: where its data begins, and its tensors. Checks that the
/// file is complete.
fn read_header(path: &Path, file: &WeightFile) -> Result<(usize, Metadata)> {
    let damaged = |found: String| Error::BadModel {
        path: path.to_owned(),
        expected: "a complete safetensors file".into(),
        found,
        hint: DOWNLOAD_AGAIN,
    };
    let cut_short = || damaged(format!("{} bytes: the file is cut short", file.len()));
    if file.len() == 0 {
        return Err(Error::Empty(path.to_owned()));
    }
    if is_lfs_pointer(&file.read(0..LFS.len().min(file.len()))?) {
        return Err(Error::LfsPointer(path.to_owned()));
    }
    let length = file.read(0..LENGTH_PREFIX.min(file.len()))?;
    let length = u64::from_le_bytes(length.try_into().map_err(|_| cut_short())?);
    let length = usize::try_from(length).ok().filter(|&length| length <= limits::SAFETENSORS_HEADER);
    let length = length
        .ok_or_else(|| damaged(format!("a header of more than {} bytes", limits::SAFETENSORS_HEADER)))?;
    let data = LENGTH_PREFIX + length;
    if data > file.len() {
        return Err(cut_short());
    }
    let header = file.read(LENGTH_PREFIX..data)?;
    let metadata: Metadata = serde_json::from_slice(&header).map_err(|error| damaged(error.to_string()))?;
    match data.checked_add(metadata.data_len()) {
        Some(expected) if expected > file.len() => {
            let (expected, found) = (expected as u64, file.len() as u64);
            return Err(Error::Incomplete { path: path.to_owned(), expected, found });
        }
        Some(expected) if expected == file.len() => {}
        _ => return Err(damaged(format!("{} bytes", file.len()))),
    }
    Ok((data, metadata))
}

/// Returns how stored numbers map to weights.
fn meaning(canonical: &str, shape: &[usize], family: &Family) -> Meaning {
    let above_one = match family.norms_above_one {
        NormsAboveOne::None => false,
        NormsAboveOne::All => true,
        NormsAboveOne::OfLayers => canonical.starts_with("blk."),
        NormsAboveOne::AroundLayers => canonical.ends_with("norm.weight") && !canonical.contains(".ssm_"),
    };
    match shape.len() {
        1 if above_one => Meaning::AboveOne,
        1 if canonical.ends_with(DECAY) => Meaning::MinusExp,
        _ => Meaning::Themselves,
    }
}

/// Returns whether a tensor belongs to a vision or audio encoder, which text does not need.
fn is_beside(name: &str) -> bool {
    let name = name.strip_prefix("model.").unwrap_or(name);
    [
        "vision_tower.",
        "vision_model.",
        "connector.",
        "visual.",
        "multi_modal_projector.",
        "vision_adapter.",
        "vision_projection.",
        "vision_embedder.",
        "embed_vision.",
        "audio_tower.",
        "embed_audio.",
    ]
    .iter()
    .any(|part| name.starts_with(part))
}

/// Strips the prefix that a multimodal model puts before the names of its text model.
fn of_language(name: &str) -> Cow<'_, str> {
    let prefixes = ["model.language_model.", "model.text_model."];
    match prefixes.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        Some(rest) => format!("model.{rest}").into(),
        None => name.strip_prefix("language_model.").unwrap_or(name).into(),
    }
}
