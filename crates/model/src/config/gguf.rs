//! Settings in the header of a GGUF file, and what only the file's tensors say.

mod draft_head;

use super::super::family::{Family, Gating, HeadFamily};
use super::super::gguf::Header;
use super::super::tables::block_head::MARKOV_BEFORE;
use super::super::tables::experts::SELECTION_BIAS;
use super::super::tables::outer::{LONG_FACTORS, OUTPUT, ROPE_FACTORS, SHORT_FACTORS};
use super::super::tables::recurrent::CONVOLUTION_BIAS;
use super::keys::{Keys, List, Source};
use super::{ModelConfig, layers, size};
use crate::error::Result;

/// Loads a vector from the file's tensors by name; `None` if there is no such tensor.
pub type Vectors<'a> = &'a dyn Fn(&str) -> Result<Option<Vec<f32>>>;

/// Number of layers of Gemma 3 27B, the only Gemma 3 whose queries are not scaled by the head size.
const GEMMA3_27B_LAYERS: u64 = 62;

impl ModelConfig {
    /// Reads the configuration from a GGUF header. `has` returns whether the file has a tensor;
    /// `vectors` loads the divisors of rotary frequencies.
    ///
    /// # Errors
    /// `Error::Architecture` for another family, `Error::BadModel` for missing or unusable numbers.
    pub(crate) fn from_gguf(
        header: &Header,
        vectors: Vectors<'_>,
        has: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let architecture = header.string("general.architecture")?.unwrap_or("none");
        let family = Family::named(architecture, header.path())?;
        let source = Settings { header, family, vectors, has: &has };
        let keys = Keys { family, source: &source };
        let name = header.string("general.name").ok().flatten().map(str::to_owned);
        let mut config = Self::read(keys, name, !has(OUTPUT))?;
        config.draft_head = source.draft_head(keys, &config)?;
        Ok(config)
    }
}

/// A header and its tensors.
struct Settings<'a> {
    header: &'a Header,
    family: &'static Family,
    vectors: Vectors<'a>,
    /// Returns whether the file has a tensor.
    has: &'a dyn Fn(&str) -> bool,
}

impl Source for Settings<'_> {
    fn path(&self) -> &std::path::Path {
        self.header.path()
    }

    fn is_gguf(&self) -> bool {
        true
    }

    fn name(&self, key: &str) -> String {
        match divisors(key) {
            Some(tensor) => tensor.to_owned(),
            None => format!("{}.{key}", self.family.name),
        }
    }

    fn integer(&self, key: &str) -> Result<Option<u64>> {
        match key {
            "block_count" => self.layers().map(Some),
            "vocab_size" => Ok(self.stored_integer(key)?.or(self.listed_tokens()?)),
            _ => self.stored_integer(key),
        }
    }

    fn number(&self, key: &str) -> Result<Option<f64>> {
        match key {
            "attention.query_scalar" => self.query_scalar(),
            _ => self.header.number(&self.name(key)),
        }
    }

    fn boolean(&self, key: &str) -> Result<Option<bool>> {
        match key {
            "expert_selection_bias" => self.any_layer_has(SELECTION_BIAS).map(Some),
            "ssm.conv_bias" => self.any_layer_has(CONVOLUTION_BIAS).map(Some),
            "attention.values_are_keys" => self.lacks_values().map(Some),
            // llama.cpp reads this key for the families whose gating function is in the file.
            "expert_weights_norm" if self.always_normalises() => Ok(Some(true)),
            _ => self.header.boolean(&self.name(key)),
        }
    }

    fn text(&self, key: &str) -> Result<Option<&str>> {
        self.header.string(&self.name(key))
    }

    fn list(&self, key: &str) -> Result<Option<List>> {
        if let Some(tensor) = divisors(key) {
            let wide = |narrow: Vec<f32>| List::Numbers(narrow.into_iter().map(f64::from).collect());
            return Ok((self.vectors)(tensor)?.map(wide));
        }
        let Some(listed) = self.header.list(&self.name(key)).ok().flatten() else { return Ok(None) };
        let booleans = || listed.booleans().map(List::Booleans);
        let integers = || listed.integers().map(List::Integers);
        Ok(Some(booleans().or_else(integers).unwrap_or(List::Other)))
    }
}

/// Returns the tensor with the rotary divisors that `key` stands for.
fn divisors(key: &str) -> Option<&'static str> {
    match key {
        "rope.divisors" => Some(ROPE_FACTORS),
        "rope.long_divisors" => Some(LONG_FACTORS),
        "rope.short_divisors" => Some(SHORT_FACTORS),
        _ => None,
    }
}

impl Settings<'_> {
    fn stored_integer(&self, key: &str) -> Result<Option<u64>> {
        self.header.integer(&self.name(key))
    }

    /// Returns the number of layers. Some writers count the multi-token prediction (MTP) blocks
    /// after the layers among them, others do not, and some leave the blocks out.
    fn layers(&self) -> Result<u64> {
        let (path, name) = (self.path(), self.name("block_count"));
        let counted = layers(path, size(path, &name, self.stored_integer("block_count")?.unwrap_or(0))?)?;
        if self.family.head == Some(HeadFamily::Assistant) {
            // Assistants use the MTP key for all of their own layers.
            return Ok(counted as u64);
        }
        let mtp_layers = self.stored_integer("nextn_predict_layers")?.unwrap_or(0);
        let mtp_layers = layers(path, usize::try_from(mtp_layers).unwrap_or(usize::MAX))?;
        let tensor = |block: usize, name: &str| (self.has)(&format!("blk.{block}.{name}.weight"));
        let joins =
            |block| ["nextn.eh_proj", "nextn.enorm", "nextn.hnorm"].iter().any(|name| tensor(block, name));
        let is_mtp = |block| joins(block) || !tensor(block, "attn_norm");
        let most = if joins(counted) { 0 } else { mtp_layers.min(counted) };
        let among = (0..most).take_while(|back| is_mtp(counted - 1 - back)).count();
        Ok((counted - among) as u64)
    }

    /// Returns the number of tokens of the vocabulary in the file, if there are any.
    fn listed_tokens(&self) -> Result<Option<u64>> {
        let tokens = self.header.list("tokenizer.ggml.tokens")?.map_or(0, |tokens| tokens.len());
        Ok(Some(tokens as u64).filter(|&tokens| tokens > 0))
    }

    /// Returns whether a layer has a tensor.
    fn any_layer_has(&self, name: &str) -> Result<bool> {
        Ok((0..self.layers()?).any(|layer| (self.has)(&format!("blk.{layer}.{name}"))))
    }

    /// Returns whether a layer has keys and no values.
    fn lacks_values(&self) -> Result<bool> {
        let has = |layer: u64, part: &str| (self.has)(&format!("blk.{layer}.{part}.weight"));
        Ok((0..self.layers()?).any(|layer| has(layer, "attn_k") && !has(layer, "attn_v")))
    }

    fn always_normalises(&self) -> bool {
        self.family.experts.is_some_and(|options| options.gating != Gating::Stated)
    }

    /// Returns the number whose inverse square root scales queries, where it is not the head size.
    fn query_scalar(&self) -> Result<Option<f64>> {
        Ok(match self.family.name {
            "gemma3" if self.layers()? == GEMMA3_27B_LAYERS => {
                let [width, heads] = ["embedding_length", "attention.head_count"];
                let (width, heads) = (self.stored_integer(width)?, self.stored_integer(heads)?);
                width.zip(heads).and_then(|(width, heads)| width.checked_div(heads)).map(|size| size as f64)
            }
            "gemma4" | "gemma4-assistant" => Some(1.0),
            _ => None,
        })
    }
}
