//! Reads a model's configuration from the header of a GGUF file.

mod attention;
mod latent;
mod recurrence;

use super::super::block_tensors::MARKOV_BEFORE;
use super::super::expert_tensors::SELECTION_BIAS;
use super::super::family::{ExpertOptions, Family, Gating, Mixer, SharedExpert, unsupported};
use super::super::gguf::Header;
use super::super::weights::OUTPUT;
use super::block_keys::{Written, checked_layers};
use super::{
    BlockHead, DraftHead, Experts, FusedNorms, ModelConfig, Multipliers, Scoring, SigmoidGating, bad,
    largest, query_scale, size,
};
use crate::error::{Error, Result};

/// Loads a vector from the file's tensors by name; `None` if there is no such tensor.
pub type Vectors<'a> = &'a dyn Fn(&str) -> Result<Option<Vec<f32>>>;

impl ModelConfig {
    /// Reads the configuration from a GGUF header. `has` returns whether the file has a tensor;
    /// `vectors` loads the divisors of rotary frequencies.
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
        let keys = Keys { header, family, has: &has };
        let hidden = keys.size("embedding_length")?;
        let heads = keys.size("attention.head_count")?;
        let head_size = keys.size_or("attention.key_length", hidden / heads)?;
        let latent = keys.latent()?;
        if latent.is_none() {
            keys.must_equal("attention.value_length", head_size)?;
        }
        if family.default("global_head_dim").is_some() {
            keys.must_equal(
                "attention.value_length_swa",
                keys.size_or("attention.key_length_swa", head_size)?,
            )?;
        }
        let tokens = header.list("tokenizer.ggml.tokens")?.map_or(0, |tokens| tokens.len());
        let (layers, mtp_layers) = keys.layers(&has)?;
        let experts = keys.experts()?;
        let context = keys.size("context_length")?;
        let (attention_kinds, attention_kind_of) =
            keys.attention_kinds(layers, (heads, head_size, latent), context, vectors)?;
        let intermediates = keys.intermediates(layers, experts.as_ref())?;
        let (mixers, recurrence) = keys.recurrence(layers, hidden)?;
        let norm_epsilon = keys.number("attention.layer_norm_rms_epsilon")?.unwrap_or(1e-5);
        let mut config = Self {
            family,
            name: header.string("general.name").ok().flatten().map(str::to_owned),
            vocabulary: keys.size_or("vocab_size", tokens)?,
            hidden,
            intermediate: intermediates.iter().copied().max().unwrap_or_default(),
            intermediates,
            experts,
            layers,
            heads,
            kv_heads: largest(&attention_kinds, |keys| keys.count),
            head_size: largest(&attention_kinds, |keys| keys.size),
            layers_with_kv: keys.layers_with_kv(layers)?,
            per_layer: keys.per_layer()?,
            context,
            norm_epsilon,
            post_norm_epsilon: family.default("post_norm_eps").unwrap_or(norm_epsilon),
            embedding_scale: family.embedding_scale(hidden),
            state_scale: 1.0,
            query_norm: family.default("qk_scale_factor").unwrap_or(1.0) as f32,
            latent,
            query_scale: match latent {
                Some(latent) => keys.latent_scale(latent)?,
                None => query_scale(keys.query_scalar(layers, hidden, heads, head_size) as f64),
            },
            scoring: keys.scoring()?,
            attention_kinds,
            attention_kind_of,
            mixers,
            recurrence,
            mtp_layers,
            tied_embeddings: !has(OUTPUT),
            draft_head: keys.draft_head(hidden, tokens, layers)?,
        };
        if let Some(multipliers) = keys.multipliers()? {
            multipliers.apply(header.path(), &mut config)?;
        }
        config.validated(header.path())
    }
}

/// Reads one family's keys from a header.
struct Keys<'a> {
    header: &'a Header,
    family: &'static Family,
    /// Returns whether the file has a tensor.
    has: &'a dyn Fn(&str) -> bool,
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

    /// The size in a key, or `default` if the key is missing; a `default` of 0 makes the key
    /// required.
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

    /// Rejects a key whose value is neither missing nor 0.
    fn refuse(&self, name: &str, expected: &str) -> Result<()> {
        match self.number(name)? {
            Some(found) if found != 0.0 => {
                Err(self.bad(expected.into(), format!("{} = {found}", self.key(name))))
            }
            _ => Ok(()),
        }
    }

    /// Feed-forward width of each layer; for Granite 4's dense models, the width of the shared
    /// expert. Models whose experts replace the feed-forward network need no key for it.
    fn intermediates(&self, layers: usize, experts: Option<&Experts>) -> Result<Vec<usize>> {
        if let Some(experts) = experts.filter(|_| self.family.latent) {
            return self.latent_intermediates(layers, experts);
        }
        let shared = "expert_shared_feed_forward_length";
        let is_needed = experts.is_some_and(|experts| experts.shared.is_some());
        let is_there = self.integer(shared)?.is_some_and(|size| size > 0);
        let is_shared = is_needed || self.family.multipliers && is_there;
        let replaced = experts.filter(|experts| !is_needed && experts.leading_dense == 0);
        let default = replaced.map_or(0, |experts| experts.intermediate);
        self.each(if is_shared { shared } else { "feed_forward_length" }, layers, default)
    }

    /// A size for each layer, from a key with a list or with one value for all layers. A `default`
    /// of 0 makes the key required.
    fn each(&self, name: &str, layers: usize, default: usize) -> Result<Vec<usize>> {
        let key = self.key(name);
        let Some(listed) = self.header.list(&key).ok().flatten() else {
            return Ok(vec![self.size_or(name, default)?; layers]);
        };
        let listed = listed.integers().filter(|listed| listed.len() == layers);
        let listed = listed.ok_or_else(|| {
            self.bad(format!("a number for each of {layers} layers in {key}"), "others".into())
        })?;
        let size = |found: i64| size(self.header.path(), &key, u64::try_from(found).unwrap_or_default());
        listed.into_iter().map(size).collect()
    }

    /// Numbers of key heads: in layers with full attention and in layers with a window.
    fn kv_heads(&self, windowed: &[bool], heads: usize) -> Result<[usize; 2]> {
        const NAME: &str = "attention.head_count_kv";
        let counts = match self.family.recurrent {
            Mixer::Attention => self.each(NAME, windowed.len(), heads)?,
            _ => vec![self.attending_kv_heads(windowed.len(), heads)?; windowed.len()],
        };
        let differs = self.family.default("global_head_dim").is_some();
        let of = |window: bool| {
            let own = counts.iter().zip(windowed).filter(|(_, windowed)| !differs || **windowed == window);
            let mut own = own.map(|(count, _)| *count);
            let first = own.next().unwrap_or(heads);
            let others = if differs { "of a kind" } else { "" };
            let expected = || format!("the same number for all layers {others} in {}", self.key(NAME));
            own.all(|count| count == first)
                .then_some(first)
                .ok_or_else(|| self.bad(expected(), "others".into()))
        };
        Ok([of(false)?, of(true)?])
    }

    /// Number of leading layers that have keys and values of their own.
    fn layers_with_kv(&self, layers: usize) -> Result<usize> {
        const NAME: &str = "attention.shared_kv_layers";
        if self.family.assists {
            return Ok(0);
        }
        let shared = self.integer(NAME)?.filter(|_| self.family.value_norms).unwrap_or(0);
        let caching = usize::try_from(shared).ok().and_then(|shared| layers.checked_sub(shared));
        caching
            .filter(|&caching| caching > 0)
            .ok_or_else(|| self.bad(format!("{} below {layers}", self.key(NAME)), shared.to_string()))
    }

    /// Width of the per-layer input embedding, if the model has one.
    fn per_layer(&self) -> Result<Option<usize>> {
        const NAME: &str = "embedding_length_per_layer_input";
        match self.integer(NAME)? {
            None | Some(0) => Ok(None),
            Some(_) if !self.family.value_norms => Ok(None),
            Some(_) => self.size(NAME).map(Some),
        }
    }

    fn multipliers(&self) -> Result<Option<Multipliers>> {
        if !self.family.multipliers {
            return Ok(None);
        }
        // A value of 0 means that the key is unset.
        let given = |name| Result::Ok(self.number(name)?.filter(|&number| number != 0.0));
        Ok(Some(Multipliers {
            embeddings: given("embedding_scale")?.unwrap_or(1.0),
            branches: given("residual_scale")?.unwrap_or(1.0),
            products: given("attention.scale")?,
            logits: given("logit_scale")?.unwrap_or(1.0),
        }))
    }

    fn scoring(&self) -> Result<Scoring> {
        if !self.family.logit_softcap {
            self.refuse("final_logit_softcapping", "logits without soft-capping")?;
            return Ok(Scoring::PLAIN);
        }
        let cap = self.number("final_logit_softcapping")?.filter(|&cap| cap != 0.0);
        let scale = self.number("logit_scale")?.unwrap_or(1.0);
        Ok(Scoring { scale: scale as f32, cap: cap.map(|cap| cap as f32) })
    }

    /// Reads the expert settings, or rejects experts in a dense family: a Mixtral declares the
    /// architecture `llama`.
    fn experts(&self) -> Result<Option<Experts>> {
        const INTERMEDIATE: &str = "expert_feed_forward_length";
        match (self.family.experts, self.integer("expert_count")?) {
            (None, Some(found)) if found > 0 => {
                let found = format!("{}, a mixture of {found} experts", self.family.name);
                Err(unsupported(self.header.path(), found))
            }
            (None, _) => Ok(None),
            (Some(options), None | Some(0)) if options.optional => Ok(None),
            (Some(options), _) => {
                let shared = self.integer("expert_shared_count")?.unwrap_or(0);
                if shared > u64::from(options.shared.is_some()) && !self.family.latent {
                    let expected = if options.shared.is_some() { "one expert" } else { "no expert" };
                    let found = format!("{} = {shared}", self.key("expert_shared_count"));
                    return Err(self.bad(format!("{expected} that every token goes through"), found));
                }
                self.refuse_groups()?;
                let leading_dense = self.leading_dense(options)?;
                let has_bias = (self.has)(&format!("blk.{leading_dense}.{SELECTION_BIAS}"));
                let sigmoid = self.takes_sigmoids(options, has_bias)?;
                Ok(Some(Experts {
                    count: self.size("expert_count")?,
                    top_k: self.size("expert_used_count")?,
                    intermediate: match options.shared {
                        // Granite's files give the width of the shared expert a key of its own.
                        Some(SharedExpert::Whole) if !self.header.has(&self.key(INTERMEDIATE)) => {
                            self.size("feed_forward_length")?
                        }
                        _ => self.size(INTERMEDIATE)?,
                    },
                    normalised: options.gating != Gating::Stated
                        || self.header.boolean(&self.key("expert_weights_norm"))? == Some(true),
                    biases: options.biases,
                    beside_dense: options.beside_dense,
                    shared: options.shared,
                    scale: match options.gating {
                        Gating::Softmax => 1.0,
                        _ => {
                            self.number("expert_weights_scale")?.filter(|&scale| scale != 0.0).unwrap_or(1.0)
                                as f32
                        }
                    },
                    sigmoid: sigmoid.then(|| SigmoidGating {
                        selection_bias: has_bias,
                        sum_epsilon: SigmoidGating::default_epsilon(options),
                    }),
                    leading_dense,
                }))
            }
        }
    }

    /// Returns whether the gating function is a sigmoid, and rejects functions that the family does
    /// not have. A file without the key has sigmoid gating if it has a selection bias and the
    /// family allows both.
    fn takes_sigmoids(&self, options: ExpertOptions, has_bias: bool) -> Result<bool> {
        const NAME: &str = "expert_gating_func";
        // Values of llama.cpp's `llama_expert_gating_func_type`.
        const SOFTMAX: u64 = 1;
        const SIGMOID: u64 = 2;
        let found = self.integer(NAME)?.filter(|&found| found != 0);
        let (usual, known, words) = match options.gating {
            Gating::Softmax => (SOFTMAX, &[SOFTMAX][..], "1"),
            Gating::Sigmoid => (SIGMOID, &[SIGMOID][..], "2"),
            Gating::Stated => (if has_bias { SIGMOID } else { SOFTMAX }, &[SOFTMAX, SIGMOID][..], "1 or 2"),
        };
        match found.filter(|found| !known.contains(found)) {
            Some(found) => Err(self.bad(format!("{} of {words}", self.key(NAME)), found.to_string())),
            None => Ok(found.unwrap_or(usual) == SIGMOID),
        }
    }

    /// Rejects group-limited routing, which selects experts only from the best groups.
    fn refuse_groups(&self) -> Result<()> {
        match self.integer("expert_group_count")?.filter(|&groups| groups > 1) {
            Some(groups) => Err(self.bad("experts without groups".into(), format!("{groups} groups"))),
            None => Ok(()),
        }
    }

    /// Number of leading dense layers.
    fn leading_dense(&self, options: ExpertOptions) -> Result<usize> {
        const NAME: &str = "leading_dense_block_count";
        let found = self.integer(NAME)?.unwrap_or(0);
        if found > 0 && !options.leading_dense {
            return Err(self.bad(format!("{} of 0", self.key(NAME)), found.to_string()));
        }
        super::layers(self.header.path(), usize::try_from(found).unwrap_or(usize::MAX))
    }

    /// Options of a draft head; `None` for other families.
    fn draft_head(&self, hidden: usize, tokens: usize, layers: usize) -> Result<Option<DraftHead>> {
        if !self.family.is_draft_head || self.family.assists {
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
            mtp: false,
            assistant: None,
        }))
    }

    /// Options of a draft head that drafts blocks.
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
        // Other options follow from the tensors. DSpark heads sample from the anchor by default.
        let from_anchor = self.header.boolean(&self.key("sample_from_anchor"))?;
        let from_anchor = from_anchor.unwrap_or_else(|| (self.has)(MARKOV_BEFORE));
        Ok(DraftHead {
            entering: Some(entering),
            target_hidden: self.size_or("target_hidden_size", hidden)?,
            tokens,
            fused_norms: FusedNorms::None,
            normed_residual: false,
            normed_output: false,
            block: Some(BlockHead::of(self.header.path(), self, (mask, tokens), from_anchor, causal)?),
            mtp: false,
            assistant: None,
        })
    }

    /// Returns the number whose inverse square root scales queries. GGUF has no key for it. It is 1
    /// for Gemma 4; Gemma 3 27B, recognised by its 62 layers, is the only other exception to the
    /// head size.
    fn query_scalar(&self, layers: usize, hidden: usize, heads: usize, head_size: usize) -> usize {
        match self.family.name {
            "gemma3" if layers == 62 => hidden / heads,
            "gemma4" | "gemma4-assistant" => 1,
            _ => head_size,
        }
    }
}
