//! Reads latent attention from a config.json, and the experts of models that have it.

use serde_json::Value as Json;

use super::Keys;
use crate::error::Result;
use crate::model::config::rotary::magnitude;
use crate::model::config::{Experts, Latent, layers, query_scale, size};
use crate::model::family::DEEPSEEK_V2;

impl Keys<'_> {
    /// Sizes of latent attention; `None` for other families.
    pub fn latent(&self) -> Result<Option<Latent>> {
        if !self.family.latent {
            return Ok(None);
        }
        let queries = "q_lora_rank";
        let latent = Latent {
            size: self.size("kv_lora_rank")?,
            turned: self.size("qk_rope_head_dim")?,
            plain: self.size("qk_nope_head_dim")?,
            value: self.size("v_head_dim")?,
            queries: (!self.json[queries].is_null()).then(|| self.size(queries)).transpose()?,
        };
        self.refuse_groups()?;
        Ok(Some(latent.validated(self.path)?))
    }

    /// Factor of the products of queries and keys.
    pub fn latent_scale(&self, latent: Latent) -> f32 {
        let rope = self.rope();
        let number = |key: &str, default| rope[key].as_f64().unwrap_or(default);
        let by = magnitude(number("factor", 1.0), number("mscale_all_dim", 0.0));
        query_scale(latent.query() as f64) * by.powi(2) as f32
    }

    /// Rejects group-limited routing, which selects experts only from the best groups.
    fn refuse_groups(&self) -> Result<()> {
        match self.json["n_group"].as_u64().filter(|&groups| groups > 1) {
            Some(groups) => Err(self.bad("experts without groups", format!("{groups} groups"))),
            None => Ok(()),
        }
    }

    /// Returns whether the gating function of the experts is a sigmoid.
    pub fn takes_sigmoids(&self) -> bool {
        match self.json["scoring_func"].as_str() {
            Some(function) => function == "sigmoid",
            None => self.json["architectures"][0] != DEEPSEEK_V2,
        }
    }

    /// Number of leading dense layers. The newest files list the kind of every layer.
    pub fn first_dense(&self) -> Result<usize> {
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
        layers(self.path, first)
    }

    /// Feed-forward width of each layer: of the dense network, or of the shared experts, which are
    /// stored as one.
    pub fn latent_intermediates(&self, layers: usize, experts: &Experts) -> Result<Vec<usize>> {
        let (dense, shared) = (self.size("intermediate_size")?, self.size("n_shared_experts")?);
        let shared = size(self.path, "n_shared_experts", (shared * experts.intermediate) as u64)?;
        Ok((0..layers).map(|layer| if layer < experts.leading_dense { dense } else { shared }).collect())
    }

    /// Key of the number of multi-token prediction blocks.
    pub fn mtp_layers_key(&self) -> &'static str {
        if self.family.latent { "num_nextn_predict_layers" } else { "mtp_num_hidden_layers" }
    }
}
