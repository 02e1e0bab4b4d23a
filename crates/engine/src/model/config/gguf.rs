//! A model's numbers from the header of a GGUF file.

use super::super::block_tensors::MARKOV_BEFORE;
use super::super::family::{Family, Windowed, unsupported};
use super::super::gguf::Header;
use super::super::weights::{LONG_FACTORS, OUTPUT, ROPE_FACTORS, SHORT_FACTORS};
use super::block_keys::{Written, checked_layers};
use super::rotary::{LongRope, plain_frequencies};
use super::{
    AttentionKind, BlockHead, DraftHead, Experts, FusedNorms, ModelConfig, Rotary, attention_kinds, bad,
    bad_scaling, divide, query_scale, size, window,
};
use crate::error::{Error, Result};

/// Gives the numbers of a vector among the tensors, `None` where there is none of that name.
pub type Vectors<'a> = &'a dyn Fn(&str) -> Result<Option<Vec<f32>>>;

impl ModelConfig {
    /// From a GGUF header. `has` tells which tensors the file has, `vectors` gives those that hold divisors of rotary
    /// frequencies.
    ///
    /// # Errors
    /// `Error::Architecture` for another family, `Error::BadModel` for missing or unusable numbers.
    pub(in crate::model) fn from_gguf(
        header: &Header,
        vectors: Vectors<'_>,
        has: impl Fn(&str) -> bool,
    ) -> Result<Self> {
        let architecture = header.string("general.architecture")?.unwrap_or("none");
        let family = Family::named(architecture, header.path())?;
        let keys = Keys { header, family, has_markov: has(MARKOV_BEFORE) };
        let experts = keys.experts()?;
        keys.refuse("final_logit_softcapping", "logits without soft-capping")?;
        let hidden = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let head_size = keys.size_or("attention.key_length", hidden / heads)?;
        keys.must_equal("attention.value_length", head_size)?;
        let tokens = header.list("tokenizer.ggml.tokens")?.map_or(0, |tokens| tokens.len());
        let layers = super::layers(header.path(), keys.size("block_count")?)?;
        let context = keys.size("context_length")?;
        let (attention_kinds, attention_kind_of) =
            keys.attention_kinds(layers, head_size, context, vectors)?;
        let config = Self {
            family,
            name: header.string("general.name").ok().flatten().map(str::to_owned),
            vocabulary: keys.size_or("vocab_size", tokens)?,
            hidden,
            intermediate: keys.size("feed_forward_length")?,
            experts,
            layers,
            heads,
            kv_heads: keys.size_or("attention.head_count_kv", heads)?,
            head_size,
            context,
            norm_epsilon: keys.number("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-5),
            query_scale: query_scale(keys.query_scalar(layers, hidden, heads, head_size) as f64),
            attention_kinds,
            attention_kind_of,
            tied_embeddings: !has(OUTPUT),
            draft_head: keys.draft_head(hidden, tokens, layers)?,
        };
        config.validated(header.path())
    }
}

/// Reads one family's keys from a header.
struct Keys<'a> {
    header: &'a Header,
    family: &'static Family,
    /// Whether the file has the tensors of a Markov head.
    has_markov: bool,
}

impl Written for Keys<'_> {
    fn whole(&self, key: &str) -> Result<Option<u64>> {
        self.integer(key)
    }
}

impl Keys<'_> {
    fn key(&self, name: &str) -> String {
        format!("{}.{name}", self.family.name)
    }

    fn bad(&self, expected: String, found: String) -> Error {
        bad(self.header.path(), expected, found)
    }

    fn integer(&self, name: &str) -> Result<Option<u64>> {
        self.header.integer(&self.key(name))
    }

    fn size(&self, name: &str) -> Result<usize> {
        self.size_or(name, 0)
    }

    /// The value of a key that may be missing; 0 as default means that it may not.
    fn size_or(&self, name: &str, default: usize) -> Result<usize> {
        let found = self.integer(name)?;
        size(self.header.path(), &self.key(name), found.unwrap_or(default as u64))
    }

    fn number(&self, name: &str) -> Result<Option<f64>> {
        self.header.number(&self.key(name))
    }

    fn must_equal(&self, name: &str, head_size: usize) -> Result<()> {
        match self.integer(name)? {
            Some(found) if found != head_size as u64 => {
                let expected = format!("{} equal to the head size {head_size}", self.key(name));
                Err(self.bad(expected, found.to_string()))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a number that is set and not 0.
    fn refuse(&self, name: &str, expected: &str) -> Result<()> {
        match self.number(name)? {
            Some(found) if found != 0.0 => {
                Err(self.bad(expected.into(), format!("{} = {found}", self.key(name))))
            }
            _ => Ok(()),
        }
    }

    /// Those of a family that has them. A Mixtral calls itself a Llama.
    fn experts(&self) -> Result<Option<Experts>> {
        match (self.family.experts, self.integer("expert_count")?) {
            (None, Some(found)) if found > 0 => {
                let found = format!("{}, a mixture of {found} experts", self.family.name);
                Err(unsupported(self.header.path(), found))
            }
            (None, _) => Ok(None),
            (Some(options), _) => {
                self.refuse("expert_shared_count", "no expert that every token goes through")?;
                Ok(Some(Experts {
                    count: self.size("expert_count")?,
                    used: self.size("expert_used_count")?,
                    intermediate: self.size("expert_feed_forward_length")?,
                    normalised: options.normalised,
                }))
            }
        }
    }

    /// Of a family of draft heads.
    fn draft_head(&self, hidden: usize, tokens: usize, layers: usize) -> Result<Option<DraftHead>> {
        if !self.family.is_draft_head {
            return Ok(None);
        }
        if self.family.drafts_blocks {
            return self.block_head(hidden, tokens, layers).map(Some);
        }
        let key = self.key("target_layers");
        let listed = self.header.list(&key)?.and_then(|layers| layers.integers());
        let entering: Vec<usize> =
            listed.iter().flatten().filter_map(|&layer| usize::try_from(layer).ok()).collect();
        if entering.len() != DraftHead::STATES || !entering.is_sorted_by(|left, right| left < right) {
            let found = listed.map_or_else(|| "none".to_owned(), |layers| format!("{layers:?}"));
            return Err(self.bad(format!("{} layers, ascending, in {key}", DraftHead::STATES), found));
        }
        let flag = |name| self.header.boolean(&self.key(name)).map(|flag| flag == Some(true));
        Ok(Some(DraftHead {
            entering: Some(entering),
            target_hidden: self.size("target_hidden_size")?,
            tokens: self.size_or("vocab_size", tokens)?,
            fused_norms: if flag("norm_before_fc")? { FusedNorms::Whole } else { FusedNorms::None },
            normed_residual: flag("norm_before_residual")?,
            normed_output: false,
            block: None,
        }))
    }

    /// Of a family that guesses blocks.
    fn block_head(&self, hidden: usize, tokens: usize, layers: usize) -> Result<DraftHead> {
        for name in ["embedding_scale", "attention.value_scale", "logit_scale"] {
            if let Some(found) = self.number(name)?.filter(|&scale| scale != 1.0 && scale != 0.0) {
                return Err(self.bad(format!("{} of 1", self.key(name)), found.to_string()));
            }
        }
        for name in ["attention.scale", "hidden_activation", "hyper_connection_count"] {
            if self.header.has(&self.key(name)) {
                return Err(self.bad(format!("no {}", self.key(name)), "some".to_owned()));
            }
        }
        let tokens = self.size_or("vocab_size", tokens)?;
        let key = self.key("target_layers");
        let listed = self.header.list(&key)?.and_then(|layers| layers.integers());
        let entering: Option<Vec<u64>> =
            listed.iter().flatten().map(|&layer| u64::try_from(layer).ok()).collect();
        let entering = checked_layers(entering.as_deref().unwrap_or_default()).ok_or_else(|| {
            let found = listed.map_or_else(|| "none".to_owned(), |layers| format!("{layers:?}"));
            self.bad(format!("layers, ascending, in {key}"), found)
        })?;
        let causal = match self.header.boolean(&self.key("attention.causal"))? {
            Some(causal) => vec![causal; layers],
            None => self.windowed(layers)?,
        };
        let mask = self.header.integer("tokenizer.ggml.mask_token_id")?;
        // Tensors tell what else a head has; those of DSpark guess from the text's last token on, unless they say no.
        let from_anchor = self.header.boolean(&self.key("sample_from_anchor"))?;
        let from_anchor = from_anchor.unwrap_or(self.has_markov);
        Ok(DraftHead {
            entering: Some(entering),
            target_hidden: self.size_or("target_hidden_size", hidden)?,
            tokens,
            fused_norms: FusedNorms::None,
            normed_residual: false,
            normed_output: false,
            block: Some(BlockHead::of(self.header.path(), self, (mask, tokens), from_anchor, causal)?),
        })
    }

    /// What queries are divided by the square root of. GGUF has no key for it: Gemma 3 27B, told by its
    /// 62 layers, is the one model where it is not the head size.
    fn query_scalar(&self, layers: usize, hidden: usize, heads: usize, head_size: usize) -> usize {
        if self.family.name == "gemma3" && layers == 62 { hidden / heads } else { head_size }
    }

    fn attention_kinds(
        &self,
        layers: usize,
        head_size: usize,
        context: usize,
        vectors: Vectors<'_>,
    ) -> Result<(Vec<AttentionKind>, Vec<usize>)> {
        let found = self.integer("rope.dimension_count")?.unwrap_or(head_size as u64);
        let rotated = super::rotary_size(self.header.path(), found as usize, head_size)?;
        let rotary = self.rotary(rotated, context, vectors)?;
        let windowed = self.windowed(layers)?;
        let found = self.integer("attention.sliding_window")?.unwrap_or(0);
        let window = window(found.try_into().unwrap_or(usize::MAX), context);
        let local = match self.family.default("rope_local_base_freq") {
            Some(base) => {
                let base = self.number("rope.freq_base_swa")?.unwrap_or(base);
                Rotary::new(rotary.layout, plain_frequencies(base, rotated), 1.0)
            }
            None => rotary.clone(),
        };
        Ok(attention_kinds(
            &windowed,
            AttentionKind { window: None, rotary },
            AttentionKind { window, rotary: local },
        ))
    }

    /// Of every layer whether it has the window.
    fn windowed(&self, layers: usize) -> Result<Vec<bool>> {
        let pattern = self.key("attention.sliding_window_pattern");
        let every = match self.family.windowed {
            Windowed::All | Windowed::InClass(_) => return Ok(vec![true; layers]),
            Windowed::Last => return Ok(vec![false; layers]),
            Windowed::Listed if self.header.has(&pattern) => 1,
            Windowed::Listed => return Ok(vec![false; layers]),
            Windowed::AllButEvery(every) => every,
        };
        if let Ok(Some(listed)) = self.header.list(&pattern) {
            return listed.booleans().filter(|listed| listed.len() == layers).ok_or_else(|| {
                self.bad(format!("{pattern} for every layer"), "a different kind of list".into())
            });
        }
        let every =
            size(self.header.path(), &pattern, self.header.integer(&pattern)?.unwrap_or(every as u64))?;
        Ok((1..=layers).map(|layer| !layer.is_multiple_of(every)).collect())
    }

    /// Rotates `rotated` components of a head.
    fn rotary(&self, rotated: usize, context: usize, vectors: Vectors<'_>) -> Result<Rotary> {
        let path = self.header.path();
        let default = self.family.default("rope_theta").unwrap_or(10_000.0);
        let base = self.number("rope.freq_base")?.unwrap_or(default);
        let kind = self.header.string(&self.key("rope.scaling.type"))?.unwrap_or("none");
        let factor = match kind {
            "none" | "longrope" => 1.0,
            "linear" => self.number("rope.scaling.factor")?.unwrap_or(1.0),
            other => return Err(bad_scaling(path, other)),
        };
        // The key of files made before scaling had a type.
        let factor = self.number("rope.scale_linear")?.unwrap_or(factor);
        let mut frequencies = plain_frequencies(base, rotated);
        let wide = |factors: Vec<f32>| factors.into_iter().map(f64::from).collect::<Vec<_>>();
        if let Some(factors) = vectors(ROPE_FACTORS)? {
            divide(path, ROPE_FACTORS, &mut frequencies, &wide(factors))?;
        }
        let mut scale = 1.0;
        let (long, short) = (vectors(LONG_FACTORS)?, vectors(SHORT_FACTORS)?);
        if kind == "longrope" || long.is_some() || short.is_some() {
            let original_context = self.size("rope.scaling.original_context_length")?;
            let rope = LongRope { context, original_context };
            let (name, factors) = if rope.is_long() { (LONG_FACTORS, long) } else { (SHORT_FACTORS, short) };
            divide(path, name, &mut frequencies, &wide(factors.unwrap_or_default()))?;
            scale = self.number("rope.scaling.attn_factor")?.unwrap_or(rope.attention_factor());
        }
        frequencies.iter_mut().for_each(|f| *f /= factor);
        Ok(Rotary::new(self.family.gguf_layout, frequencies, scale))
    }
}
