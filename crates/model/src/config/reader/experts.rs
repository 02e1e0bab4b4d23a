//! Reads the settings of experts.

use super::Keys;
use crate::config::{Experts, SigmoidGating};
use crate::error::Result;
use crate::family::{ExpertOptions, Gating, SharedWeighting, unsupported};

/// Values of llama.cpp's `llama_expert_gating_func_type`.
const SOFTMAX: u64 = 1;
const SIGMOID: u64 = 2;

impl Keys<'_> {
    /// Reads the settings of the experts, or rejects experts in a dense family: a Mixtral declares
    /// the architecture `llama`.
    pub fn experts(&self) -> Result<Option<(ExpertOptions, Experts)>> {
        let count = self.integer("expert_count")?;
        let Some(options) = self.family.experts else {
            return match count.filter(|&count| count > 0) {
                None => Ok(None),
                Some(count) => {
                    let found = format!("{}, a mixture of {count} experts", self.family.name);
                    Err(unsupported(self.path(), found))
                }
            };
        };
        if options.optional && count.unwrap_or(0) == 0 {
            return Ok(None);
        }
        self.refuse_shared(options)?;
        self.refuse_groups()?;
        let has_bias = self.boolean("expert_selection_bias")? == Some(true);
        let scale = match options.gating {
            Gating::Softmax => None,
            _ => self.factor("expert_weights_scale")?,
        };
        let experts = Experts {
            count: self.size("expert_count")?,
            top_k: self.size("expert_used_count")?,
            width: match options.shared {
                // Granite's files give the width of the shared expert a key of its own.
                Some(SharedWeighting::Whole) if self.integer("expert_feed_forward_length")?.is_none() => {
                    self.size("feed_forward_length")?
                }
                _ => self.size("expert_feed_forward_length")?,
            },
            normalised: self.boolean("expert_weights_norm")? == Some(true),
            biases: options.biases,
            scale: scale.unwrap_or(1.0) as f32,
            sigmoid: self.takes_sigmoids(options, has_bias)?.then(|| SigmoidGating {
                selection_bias: has_bias,
                sum_epsilon: SigmoidGating::default_epsilon(options),
            }),
        };
        Ok(Some((options, experts)))
    }

    /// Returns whether the gating function is a sigmoid, and rejects functions that the family does
    /// not have. A file without the key has sigmoid gating if it has a selection bias and the
    /// family allows both.
    fn takes_sigmoids(&self, options: ExpertOptions, has_bias: bool) -> Result<bool> {
        const KEY: &str = "expert_gating_func";
        let found = self.integer(KEY)?.filter(|&found| found != 0);
        let (usual, known, words) = match options.gating {
            Gating::Softmax => (SOFTMAX, &[SOFTMAX][..], "1"),
            Gating::Sigmoid => (SIGMOID, &[SIGMOID][..], "2"),
            Gating::Stated => (if has_bias { SIGMOID } else { SOFTMAX }, &[SOFTMAX, SIGMOID][..], "1 or 2"),
        };
        match found.filter(|found| !known.contains(found)) {
            Some(found) => Err(self.bad(format!("{} of {words}", self.name(KEY)), found.to_string())),
            None => Ok(found.unwrap_or(usual) == SIGMOID),
        }
    }

    /// Rejects more shared experts than the family has. Those of latent attention's families are
    /// stored as one.
    fn refuse_shared(&self, options: ExpertOptions) -> Result<()> {
        const KEY: &str = "expert_shared_count";
        let shared = self.integer(KEY)?.unwrap_or(0);
        if self.family.latent || shared <= u64::from(options.shared.is_some()) {
            return Ok(());
        }
        let expected = if options.shared.is_some() { "one expert" } else { "no expert" };
        let found = format!("{} = {shared}", self.name(KEY));
        Err(self.bad(format!("{expected} that every token goes through"), found))
    }

    /// Rejects group-limited routing, which selects experts only from the best groups.
    fn refuse_groups(&self) -> Result<()> {
        const KEY: &str = "expert_group_count";
        match self.integer(KEY)?.filter(|&groups| groups > 1) {
            Some(groups) => {
                Err(self.bad("experts without groups".into(), format!("{} = {groups}", self.name(KEY))))
            }
            None => Ok(()),
        }
    }
}
