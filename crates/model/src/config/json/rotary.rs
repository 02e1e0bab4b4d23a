//! Rotary positions of a config.json.

use serde_json::{Value as Json, json};

use super::{ConfigJson, Settings};
use crate::config::rotary::magnitude;
use crate::error::Result;

const ORIGINAL: &str = "original_max_position_embeddings";

/// Settings of a rotary embedding with the same meaning in both formats: key after the prefix, and
/// name in config.json.
const RENAMED: [(&str, &str); 9] = [
    ("dimension_sections", "mrope_section"),
    ("scaling.factor", "factor"),
    ("scaling.low_freq_factor", "low_freq_factor"),
    ("scaling.high_freq_factor", "high_freq_factor"),
    ("scaling.original_context_length", ORIGINAL),
    ("scaling.rotated_part", "partial_rotary_factor"),
    ("scaling.truncate", "truncate"),
    ("scaling.yarn_beta_fast", "beta_fast"),
    ("scaling.yarn_beta_slow", "beta_slow"),
];

/// Returns the name in config.json of a key of [`RENAMED`] with its prefix.
pub fn name(key: &str) -> Option<&'static str> {
    let (_, key) = key.split_once('.')?;
    RENAMED.iter().find(|(renamed, _)| *renamed == key).map(|(_, name)| *name)
}

impl ConfigJson<'_> {
    /// Adds the rotary embeddings. The newest files describe them per kind of layer, older ones
    /// give a base for layers with a window, the others one description for all layers.
    pub fn rename_ropes(&self, settings: &mut Settings) -> Result<()> {
        let rope = match &self.json["rope_parameters"] {
            Json::Null => &self.json["rope_scaling"],
            parameters => parameters,
        };
        self.rename_rotated_part(rope, settings)?;
        if self.family.latent {
            let weight = rope["mscale_all_dim"].as_f64().unwrap_or(0.0);
            settings.set("rope.scaling.yarn_log_multiplier", "mscale_all_dim", json!(0.1 * weight));
        }
        match &rope["full_attention"] {
            full @ Json::Object(_) => {
                self.rename_rope("rope_swa", &rope["sliding_attention"], settings)?;
                self.rename_rope("rope", full, settings)
            }
            _ => self.rename_rope("rope", rope, settings),
        }
    }

    /// Adds the number of rotated components of heads of which only a part is rotated.
    fn rename_rotated_part(&self, rope: &Json, settings: &mut Settings) -> Result<()> {
        const NAME: &str = "partial_rotary_factor";
        let part = rope[NAME].as_f64().or(self.value(NAME).as_f64());
        let Some(part) = part.filter(|_| !self.family.latent) else { return Ok(()) };
        let rotated = |size: usize| json!((size as f64 * part).max(0.0) as u64);
        let size = self.size_or("head_dim", self.size("hidden_size")? / self.size("num_attention_heads")?)?;
        let global = match self.family.default("global_head_dim") {
            Some(_) => self.size("global_head_dim")?,
            None => size,
        };
        settings.set("rope.dimension_count", NAME, rotated(global));
        settings.set("rope.dimension_count_swa", NAME, rotated(size));
        Ok(())
    }

    /// Adds the rotary embedding that `rope` describes.
    fn rename_rope(&self, prefix: &str, rope: &Json, settings: &mut Settings) -> Result<()> {
        let mut set = |key: &str, name, value| settings.set(format!("{prefix}.{key}"), name, value);
        let base = rope["rope_theta"].as_f64().or(self.value("rope_theta").as_f64());
        set("freq_base", "rope_theta", json!(base.unwrap_or(10_000.0)));
        for (key, name) in RENAMED.into_iter().filter(|(_, name)| !rope[name].is_null()) {
            // Writers of YaRN's betas write 0 for the defaults.
            if !(name.starts_with("beta_") && rope[name] == 0) {
                set(key, name, rope[name].clone());
            }
        }
        let kind = rope["rope_type"].as_str().or_else(|| rope["type"].as_str()).unwrap_or("default");
        // Early files call LongRoPE `su`, or `yarn` with a list of factors.
        let kind = match kind {
            "default" => "none",
            "su" => "longrope",
            "yarn" if !rope["long_factor"].is_null() => "longrope",
            kind => kind,
        };
        set("scaling.type", "rope_type", json!(kind));
        let needed: &[&str] = match kind {
            "linear" => &["factor"],
            "llama3" => &["factor", "low_freq_factor", "high_freq_factor", ORIGINAL],
            "yarn" => &["factor", ORIGINAL],
            _ => &[],
        };
        if let Some(name) = needed.iter().find(|name| !rope[**name].is_number()) {
            let expected = format!("a number for {name} in the rotary scaling");
            return Err(self.bad(&expected, rope[*name].to_string()));
        }
        if kind == "longrope" {
            set("scaling.attn_factor", "attention_factor", rope["attention_factor"].clone());
            set("short_divisors", "short_factor", numbers(&rope["short_factor"]));
            set("long_divisors", "long_factor", numbers(&rope["long_factor"]));
            if !self.json[ORIGINAL].is_null() {
                set("scaling.original_context_length", ORIGINAL, self.json[ORIGINAL].clone());
            }
        }
        if kind == "yarn" {
            set("scaling.magnitude", "attention_factor", json!(attention_factor(rope)));
        }
        if let Some(beta) = rope["llama_4_scaling_beta"].as_f64() {
            let key = if prefix == "rope" { "temperature_scale" } else { "temperature_scale_swa" };
            settings.set(format!("attention.{key}"), "llama_4_scaling_beta", json!(beta));
        }
        Ok(())
    }
}

/// Returns a list of numbers; an empty one for anything else.
fn numbers(listed: &Json) -> Json {
    let listed = listed.as_array().map_or(&[][..], Vec::as_slice);
    let numbers: Option<Vec<f64>> = listed.iter().map(Json::as_f64).collect();
    json!(numbers.unwrap_or_default())
}

/// Factor of cosines and sines with YaRN.
fn attention_factor(rope: &Json) -> f64 {
    let given = |name: &str| rope[name].as_f64().filter(|&number| number != 0.0);
    let of = |weight| magnitude(rope["factor"].as_f64().unwrap_or(1.0), weight);
    let usual = match (given("mscale"), given("mscale_all_dim")) {
        (Some(one), Some(all)) => of(one) / of(all),
        _ => of(1.0),
    };
    rope["attention_factor"].as_f64().unwrap_or(usual)
}
