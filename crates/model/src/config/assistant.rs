//! Assistants: Gemma 4's draft heads, which attend to their target's keys and values.

/// Options of an assistant. Its layers compute only queries, all at the position after the text,
/// whichever draft token is computed. Its output state is as wide as the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assistant {
    /// For each kind of attention, the target's layer whose cache is read; empty until the target
    /// is known.
    pub sees: Vec<usize>,
    /// Cached numbers per token in these layers.
    pub seen: usize,
    /// Clustering of the output matrix, so that only part of it is scored.
    pub clusters: Option<Clusters>,
}

/// Clusters of equally many tokens. Tokens of the clusters nearest to a state are scored; all
/// others get one score below the lowest of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clusters {
    pub count: usize,
    /// Number of clusters to score.
    pub nearest: usize,
}

impl Clusters {
    /// Default of `nearest`, for files without the key.
    pub const USUAL: usize = 32;

    /// Number of tokens in a cluster.
    pub fn size(&self, tokens: usize) -> usize {
        tokens / self.count
    }
}
