//! What a person may set about drafting, and whether the values make sense.

use serde::{Deserialize, Serialize};
use ts_rs::TS;

use crate::accept::Verification;
use crate::error::{Error, Result};
use crate::trace::DrafterKind;

/// The longest draft: tokens on a path, and tokens of a tree.
pub const LONGEST_DRAFT: usize = 16;

/// The widest tree: guesses that follow one token.
pub const WIDEST_TREE: usize = 4;

/// Who drafts, how far ahead, and in what shape. The defaults let the governor choose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Speculation {
    pub drafter: DrafterChoice,
    pub length: DraftLength,
    pub threshold: Threshold,
    pub tree: Tree,
    /// Whether the draft model is itself drafted for, by repetition.
    pub staged: Staged,
    pub verification: Verification,
}

impl Default for Speculation {
    fn default() -> Self {
        Self {
            drafter: DrafterChoice::Combined,
            length: DraftLength::Auto,
            threshold: Threshold::Off,
            tree: Tree::Auto,
            staged: Staged::Auto,
            verification: Verification::Block,
        }
    }
}

impl Speculation {
    /// Plain decoding.
    pub fn off() -> Self {
        Self::fixed(0)
    }

    /// Chains of always `length` tokens.
    pub fn fixed(length: usize) -> Self {
        Self {
            length: DraftLength::Fixed(length as u32),
            tree: Tree::Off,
            staged: Staged::Off,
            ..Self::default()
        }
    }

    /// Whether anybody may draft at all.
    pub fn is_off(&self) -> bool {
        self.length == DraftLength::Fixed(0)
    }

    /// # Errors
    /// `Error::Setting` naming the first value that is out of its range.
    pub fn validate(&self) -> Result<()> {
        let check = |name, found: f64, expected, ok: bool| {
            if ok { Ok(()) } else { Err(Error::Setting { name, expected, found: found.to_string() }) }
        };
        if let DraftLength::Fixed(length) = self.length {
            let ok = length as usize <= LONGEST_DRAFT;
            check("draft length", f64::from(length), "0 to 16, or auto", ok)?;
        }
        if let Threshold::Fixed(least) = self.threshold {
            let ok = (0.0..=1.0).contains(&least);
            check("threshold", f64::from(least), "0 to 1, or auto", ok)?;
        }
        if let Tree::Width(width) = self.tree {
            let ok = (1..=WIDEST_TREE).contains(&(width as usize));
            check("tree width", f64::from(width), "1 (a chain) to 4, or auto", ok)?;
        }
        Ok(())
    }
}

/// Who may draft, of those that are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DrafterChoice {
    /// All of them: in every round who promises most.
    #[default]
    Combined,
    /// The draft model alone.
    Model,
    /// Repetition of the conversation alone.
    Ngram,
    /// What the target thought of the same token before, alone.
    Recycling,
}

impl DrafterChoice {
    pub fn allows(self, kind: DrafterKind) -> bool {
        match self {
            Self::Combined => true,
            Self::Model => kind == DrafterKind::Model,
            Self::Ngram => kind == DrafterKind::Ngram,
            Self::Recycling => kind == DrafterKind::Recycling,
        }
    }

    pub fn allows_only(self, kind: DrafterKind) -> bool {
        self != Self::Combined && self.allows(kind)
    }
}

/// How many tokens to draft a round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type", content = "tokens")]
#[ts(export)]
pub enum DraftLength {
    /// As many as promise most tokens per second, which may be none.
    #[default]
    Auto,
    /// 0 to [`LONGEST_DRAFT`].
    Fixed(u32),
}

/// When a draft ends before its length is reached: as soon as the chance that all of it is accepted is
/// below a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type", content = "chance")]
#[ts(export)]
pub enum Threshold {
    #[default]
    Off,
    /// The value at which a further token costs as much time as it promises to save.
    Auto,
    /// 0 to 1.
    Fixed(f32),
}

impl Threshold {
    /// Whether a draft ends where the governor says, and not where a person does.
    pub fn is_governed(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }
}

/// Whether several guesses may follow one token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type", content = "guesses")]
#[ts(export)]
pub enum Tree {
    #[default]
    Off,
    /// Where that promises more tokens per second.
    Auto,
    /// Up to so many, 1 to [`WIDEST_TREE`].
    Width(u32),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Staged {
    #[default]
    Off,
    /// Where that drafts faster.
    Auto,
    On,
}
