//! What a draft head has that attends to its target's keys and values: Gemma 4's assistants.

/// See the module. Its layers compute queries alone, all of them at the position after the text, whichever token is
/// guessed. What it gives for the token after is a state as wide as the target's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assistant {
    /// Of each of its kinds of attention the target's layer whose keys and values it sees; none as long as the target is
    /// not known.
    pub sees: Vec<usize>,
    /// Numbers of a token's keys and values in these layers.
    pub seen: usize,
    /// Its output matrix is looked at in part.
    pub clusters: Option<Clusters>,
}

/// Clusters of as many tokens each: those of the ones that a state is nearest to are scored, and the others get one score
/// less than the lowest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clusters {
    pub count: usize,
    /// The ones that are looked at.
    pub nearest: usize,
}

impl Clusters {
    /// As many as are looked at where a file does not say.
    pub const USUAL: usize = 32;

    /// Tokens in each.
    pub fn size(&self, tokens: usize) -> usize {
        tokens / self.count
    }
}
