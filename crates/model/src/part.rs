//! Partial models: the first layers of a model and the first rows of its vocabulary. Their output
//! is useless; they serve to measure the speed of the whole at a fraction of the loading time.

use std::sync::Arc;

use super::tables::outer::{EMBEDDING, OUTPUT, PER_LAYER_PROJECTION};
use super::{Device, ModelSource};
use crate::error::Result;

/// A partial model, and its ratio to the whole.
pub struct Part {
    pub source: ModelSource,
    /// Layers of the whole divided by those of the part, at least 1.
    pub layers: f64,
    /// Rows of the vocabulary of the whole divided by those of the part.
    pub vocabulary: f64,
}

impl ModelSource {
    /// Returns a part with the fewest layers that take `bytes` of memory, and the fewest rows of
    /// the output matrix that take half of that. Returns `None` for a draft head, which does not
    /// run by itself.
    ///
    /// # Errors
    /// As [`Self::config`].
    pub fn part(&self, bytes: u64) -> Result<Option<Part>> {
        let whole = self.config()?;
        if whole.draft_head.is_some() {
            return Ok(None);
        }
        let weights = self.weights(&Device::Cpu)?;
        let taken = |prefix: &str| -> u64 {
            let stored = self.tensors.stored.iter().filter(|(name, _)| name.starts_with(prefix));
            stored.map(|(_, stored)| weights.loaded_bytes(stored)).sum()
        };
        // At least one layer with experts is kept.
        let dense = whole.layers.iter().take_while(|layer| layer.feed_forward.experts().is_none()).count();
        let dense = if dense < whole.depth() { dense } else { 0 };
        let layers = least(whole.depth(), taken("blk."), bytes).max(dense + 1);
        let output = if whole.tied_embeddings { EMBEDDING } else { OUTPUT };
        let vocabulary = least(whole.vocabulary.div_ceil(ROWS), taken(output), bytes / 2) * ROWS;
        let vocabulary = vocabulary.min(whole.vocabulary);

        let mut tensors = (*self.tensors).clone();
        for name in [EMBEDDING, OUTPUT] {
            let Some(stored) = tensors.stored.get_mut(name) else { continue };
            let row = stored.bytes.len() / stored.shape[0].max(1);
            stored.bytes.end = stored.bytes.start + vocabulary * row;
            stored.shape[0] = vocabulary;
        }
        let inputs = whole.per_layer_input().zip(tensors.stored.get_mut(PER_LAYER_PROJECTION));
        if let Some((width, stored)) = inputs {
            let row = stored.bytes.len() / stored.shape[0].max(1);
            stored.shape[0] = layers * width;
            stored.bytes.end = stored.bytes.start + stored.shape[0] * row;
        }
        let mut config = whole.clone();
        config.vocabulary = vocabulary;
        config.layers.truncate(layers);
        let source = Self { tensors: Arc::new(tensors), config: Some(config), watcher: None, ..self.clone() };
        let times = |whole: usize, part: usize| whole as f64 / part.max(1) as f64;
        Ok(Some(Part {
            source,
            layers: times(whole.depth(), layers),
            vocabulary: times(whole.vocabulary, vocabulary),
        }))
    }
}

/// Granularity of the part's vocabulary: a whole number of panels in every engine.
const ROWS: usize = 64;

/// Returns the smallest number of items that takes `bytes`, where `count` items take `all` bytes
/// together; between 1 and `count`.
fn least(count: usize, all: u64, bytes: u64) -> usize {
    let one = (all / count.max(1) as u64).max(1);
    (bytes.div_ceil(one) as usize).clamp(1, count.max(1))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn a_part_has_what_was_asked_for_and_says_how_often_the_whole_has_it() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../starter/starter-target-Q8_0.gguf");
        let whole = ModelSource::open(&path).unwrap();
        let all = whole.part(u64::MAX).unwrap().unwrap();
        assert_eq!((all.layers, all.vocabulary), (1.0, 1.0));
        assert_eq!(all.source.config().unwrap(), whole.config().unwrap());

        let part = whole.part(1_000_000).unwrap().unwrap();
        let (found, of) = (part.source.config().unwrap(), whole.config().unwrap());
        assert!(found.depth() < of.depth() && found.vocabulary < of.vocabulary, "{found:?}");
        assert_eq!(part.layers, of.depth() as f64 / found.depth() as f64);
        let bytes = part.source.read_bytes().unwrap();
        assert!(bytes < whole.read_bytes().unwrap());
        let one = whole.part(1).unwrap().unwrap();
        assert_eq!(
            (one.source.config().unwrap().depth(), one.source.config().unwrap().vocabulary),
            (1, ROWS)
        );
    }

    #[test]
    fn so_few_things_are_taken_as_take_the_bytes() {
        assert_eq!(least(30, 3000, 250), 3);
        assert_eq!(least(30, 3000, 1_000_000), 30);
        assert_eq!(least(30, 0, 10), 10);
        assert_eq!(least(0, 0, 10), 1);
    }
}
