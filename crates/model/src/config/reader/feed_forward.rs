//! Reads the feed-forward networks of the layers.

use super::Keys;
use crate::config::{Experts, FeedForwardSpec, SharedExpert, layers, size};
use crate::error::Result;
use crate::family::{ExpertOptions, SharedWeighting};

/// Width of dense networks.
const DENSE: &str = "feed_forward_length";

/// Width of the shared expert. In Granite 4's dense models it is the width of the only network.
const SHARED: &str = "expert_shared_feed_forward_length";

impl Keys<'_> {
    /// Feed-forward network of each layer.
    pub fn feed_forwards(&self, layers: usize) -> Result<Vec<FeedForwardSpec>> {
        let Some((options, experts)) = self.experts()? else {
            return self.dense_networks(layers);
        };
        let leading = self.leading_dense(options, layers)?;
        let dense = if leading > 0 { self.each(DENSE, layers, 0)? } else { Vec::new() };
        let routed = self.routed_networks(layers, options, &experts)?;
        let leading = dense[..leading].iter().map(|&width| FeedForwardSpec::Dense { width });
        Ok(leading.clone().chain(routed.into_iter().skip(leading.len())).collect())
    }

    fn dense_networks(&self, layers: usize) -> Result<Vec<FeedForwardSpec>> {
        let is_shared = self.family.multipliers && self.integer(SHARED)?.is_some_and(|size| size > 0);
        let widths = self.each(if is_shared { SHARED } else { DENSE }, layers, 0)?;
        Ok(widths.into_iter().map(|width| FeedForwardSpec::Dense { width }).collect())
    }

    /// Network of each layer, as if all had experts.
    fn routed_networks(
        &self,
        layers: usize,
        options: ExpertOptions,
        experts: &Experts,
    ) -> Result<Vec<FeedForwardSpec>> {
        let experts = || experts.clone();
        if options.beside_dense {
            let beside = |width| FeedForwardSpec::BesideDense { experts: experts(), width };
            return Ok(self.each(DENSE, layers, 0)?.into_iter().map(beside).collect());
        }
        let Some(weighting) = options.shared else {
            return Ok(vec![FeedForwardSpec::Experts(experts()); layers]);
        };
        let with_shared = |width| {
            let shared = SharedExpert { width, gated: weighting == SharedWeighting::Gated };
            FeedForwardSpec::WithShared { experts: experts(), shared }
        };
        let widths = match self.family.latent {
            true => vec![self.joined_shared_width(&experts())?; layers],
            false => self.each(SHARED, layers, 0)?,
        };
        Ok(widths.into_iter().map(with_shared).collect())
    }

    /// Width of the shared experts of latent attention's families, which are stored as one.
    fn joined_shared_width(&self, experts: &Experts) -> Result<usize> {
        const COUNT: &str = "expert_shared_count";
        let width = (self.size(COUNT)? * experts.width) as u64;
        size(self.path(), &self.name(COUNT), width)
    }

    /// Number of leading dense layers; fewer than `count`.
    fn leading_dense(&self, options: ExpertOptions, count: usize) -> Result<usize> {
        const KEY: &str = "leading_dense_block_count";
        let found = self.integer(KEY)?.unwrap_or(0);
        if found > 0 && !options.leading_dense {
            return Err(self.bad(format!("{} of 0", self.name(KEY)), found.to_string()));
        }
        let found = layers(self.path(), usize::try_from(found).unwrap_or(usize::MAX))?;
        if found >= count {
            let expected = format!("experts after fewer than {count} layers");
            return Err(self.bad(expected, format!("{found} layers without")));
        }
        Ok(found)
    }
}
