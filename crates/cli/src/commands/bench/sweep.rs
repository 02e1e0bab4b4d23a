//! Settings of speculation to compare with the requested ones.

use clap::ValueEnum;
use foretoken_engine::speculation::{
    DraftLength, DrafterChoice, Speculation, Staged, Threshold, Tree, Verification,
};

/// Groups of settings to compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Sweep {
    /// Fixed draft lengths of 1 to 8.
    Lengths,
    /// Each drafter alone.
    Drafters,
    /// Chains, trees, staged drafts, a threshold, each drafter alone, both acceptance rules.
    Ways,
}

impl Sweep {
    /// The settings with their names, all other fields as in `base`.
    pub fn ways(self, base: &Speculation) -> Vec<(String, Speculation)> {
        match self {
            Self::Lengths => (1..=8).map(|length| fixed(base, length)).collect(),
            Self::Drafters => drafters(base).into(),
            Self::Ways => ways(base),
        }
    }
}

fn fixed(base: &Speculation, length: u32) -> (String, Speculation) {
    (format!("at {length}"), Speculation { length: DraftLength::Fixed(length), ..base.clone() })
}

fn drafters(base: &Speculation) -> [(String, Speculation); 3] {
    let alone = [
        ("model", DrafterChoice::Model),
        ("n-gram", DrafterChoice::Ngram),
        ("recycling", DrafterChoice::Recycling),
    ];
    alone.map(|(name, drafter)| (name.to_owned(), Speculation { drafter, ..base.clone() }))
}

fn ways(base: &Speculation) -> Vec<(String, Speculation)> {
    let chain = || Speculation { tree: Tree::Off, staged: Staged::Off, ..base.clone() };
    let of_five = || Speculation { length: DraftLength::Fixed(5), ..chain() };
    let ways = [
        ("chain", chain()),
        ("tree auto", Speculation { tree: Tree::Auto, ..chain() }),
        ("tree of 3", Speculation { tree: Tree::Width(3), ..chain() }),
        ("staged auto", Speculation { staged: Staged::Auto, ..chain() }),
        ("staged", Speculation { staged: Staged::On, ..chain() }),
        ("threshold", Speculation { threshold: Threshold::Auto, ..chain() }),
        ("5 by block", Speculation { verification: Verification::Block, ..of_five() }),
        ("5 by token", Speculation { verification: Verification::Token, ..of_five() }),
    ];
    ways.map(|(name, way)| (name.to_owned(), way)).into_iter().chain(drafters(&chain())).collect()
}
