//! Experts of a config.json.

use serde_json::{Value as Json, json};

use super::{ConfigJson, Settings};
use crate::error::Result;
use crate::family::{DEEPSEEK_V2, ExpertOptions, Gating};

impl ConfigJson<'_> {
    /// Adds the settings of experts, if the model has any.
    pub fn rename_experts(&self, settings: &mut Settings) -> Result<()> {
        let Some(options) = self.family.experts else { return Ok(()) };
        let has_none = match options.beside_dense {
            true => self.json["enable_moe_block"] != true,
            false => self.json["num_local_experts"] == 0,
        };
        if options.optional && has_none {
            return Ok(());
        }
        let in_every_layer = self.json["mlp_only_layers"].as_array().is_none_or(Vec::is_empty)
            && self.json["decoder_sparse_step"].as_u64().is_none_or(|step| step == 1);
        if !in_every_layer {
            return Err(self.bad("experts in every layer", "layers without".into()));
        }
        let count = match self.family.latent {
            true => "n_routed_experts",
            false if self.json["num_experts"].is_null() && !self.json["num_local_experts"].is_null() => {
                "num_local_experts"
            }
            false => "num_experts",
        };
        settings.set("expert_count", count, json!(self.size(count)?));
        let normalised = self.normalises(options);
        settings.set("expert_weights_norm", "norm_topk_prob", json!(normalised));
        if options.gating == Gating::Stated {
            let function = if self.takes_sigmoids() { 2 } else { 1 };
            settings.set("expert_gating_func", "scoring_func", json!(function));
        }
        let has_bias = self.json["use_expert_bias"] != false;
        settings.set("expert_selection_bias", "use_expert_bias", json!(has_bias));
        if options.leading_dense {
            let (name, leading) = match self.family.latent {
                true => ("first_k_dense_replace", self.first_dense()?),
                false => ("num_dense_layers", self.whole_or("num_dense_layers", 2)?),
            };
            settings.set("leading_dense_block_count", name, json!(leading));
        }
        Ok(())
    }

    /// Returns whether the weights of a token's experts are normalised.
    fn normalises(&self, options: ExpertOptions) -> bool {
        const NAME: &str = "norm_topk_prob";
        match options.gating {
            _ if options.declares_norm_topk => self.json[NAME] == true,
            Gating::Softmax => true,
            // transformers' default for these families is true.
            Gating::Sigmoid => self.json[NAME] != false,
            Gating::Stated => self.json[NAME].as_bool().unwrap_or(self.takes_sigmoids()),
        }
    }

    /// Returns whether the gating function of the experts is a sigmoid.
    fn takes_sigmoids(&self) -> bool {
        match self.json["scoring_func"].as_str() {
            Some(function) => function == "sigmoid",
            None => !self.is_class(DEEPSEEK_V2),
        }
    }

    /// Number of leading dense layers. The newest files list the kind of every layer.
    fn first_dense(&self) -> Result<usize> {
        let every = self.json["moe_layer_freq"].as_u64().unwrap_or(1);
        let kinds: Option<Vec<bool>> = match &self.json["mlp_layer_types"] {
            Json::Array(listed) => Some(listed.iter().map(|kind| kind == "dense").collect()),
            _ => None,
        };
        let first = match &kinds {
            Some(dense) => dense.iter().take_while(|&&dense| dense).count(),
            None if self.json["first_k_dense_replace"].is_null() => {
                return Err(self.bad("first_k_dense_replace or mlp_layer_types", "neither".into()));
            }
            None => self.whole_or("first_k_dense_replace", 0)?,
        };
        let of_all = self.json["num_hidden_layers"].as_u64();
        let is_uneven = |dense: &Vec<bool>| {
            dense[first..].contains(&true) || of_all.is_some_and(|layers| dense.len() as u64 != layers)
        };
        if every != 1 || kinds.as_ref().is_some_and(is_uneven) {
            return Err(self.bad("experts in every layer after the first ones", "layers without".into()));
        }
        Ok(first)
    }

    /// An integer that may be 0.
    fn whole_or(&self, name: &str, default: usize) -> Result<usize> {
        let found = self.number_or(name, default as f64)?;
        match found.fract() == 0.0 && found >= 0.0 {
            true => Ok(found as usize),
            false => Err(self.bad(&format!("a whole number for {name}"), found.to_string())),
        }
    }
}
