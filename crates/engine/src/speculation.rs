//! Drafting settings and their validation.

use foretoken_model::error::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize};
use ts_rs::TS;

use crate::drafter_kind::DrafterKind;

/// Longest draft: tokens on a path, and tokens of a tree.
pub const MAX_DRAFT_LENGTH: usize = 16;

/// Widest tree: guesses that follow one token.
pub const MAX_TREE_WIDTH: usize = 4;

/// Drafting settings: drafters, draft length and shape. By default, the governor chooses.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, TS)]
#[serde(default)]
#[ts(export)]
pub struct Speculation {
    pub drafter: DrafterChoice,
    pub length: DraftLength,
    pub threshold: Threshold,
    pub tree: Tree,
    /// Staged drafting: repetition drafts for the draft model.
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

    /// Chains of a fixed `length`; plain decoding for 0.
    pub fn fixed(length: usize) -> Self {
        Self {
            length: DraftLength::tokens(length as u32),
            tree: Tree::Off,
            staged: Staged::Off,
            ..Self::default()
        }
    }

    /// Returns true if drafting is off.
    pub fn is_off(&self) -> bool {
        self.length == DraftLength::Off
    }

    /// Rule that verifies sampled drafts. Where drawn tokens may have siblings, a draft is verified
    /// token by token, also one that became a chain: its shape depends on what was drawn, and a
    /// rule that depended on it would bias the text.
    pub fn rule(&self) -> Verification {
        match self.tree {
            Tree::Width(2..) => Verification::Token,
            _ => self.verification,
        }
    }

    /// # Errors
    /// `Error::Setting` naming the first value that is out of its range.
    pub fn validate(&self) -> Result<()> {
        let check = |name, found: f64, expected, ok: bool| {
            if ok { Ok(()) } else { Err(Error::Setting { name, expected, found: found.to_string() }) }
        };
        if let DraftLength::Fixed(length) = self.length {
            let ok = (1..=MAX_DRAFT_LENGTH).contains(&(length as usize));
            check("draft length", f64::from(length), "1 to 16, auto or off", ok)?;
        }
        if let Threshold::Fixed(least) = self.threshold {
            let ok = (0.0..=1.0).contains(&least);
            check("threshold", f64::from(least), "0 to 1, or auto", ok)?;
        }
        if let Tree::Width(width) = self.tree {
            let ok = (1..=MAX_TREE_WIDTH).contains(&(width as usize));
            check("tree width", f64::from(width), "1 (a chain) to 4, or auto", ok)?;
        }
        Ok(())
    }
}

/// Drafters that may draft.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum DrafterChoice {
    /// All drafters: in each round the one with the highest expected value.
    #[default]
    Combined,
    /// Only the draft model or the draft head.
    Model,
    /// Only repetition of the conversation.
    Ngram,
    /// Only recycling: the target's earlier candidates after the same token.
    Recycling,
}

impl DrafterChoice {
    /// Returns true if a drafter of this kind may draft. Forced tokens are certain, so there is no
    /// choice to make.
    pub fn allows(self, kind: DrafterKind) -> bool {
        match self {
            _ if kind == DrafterKind::Forced => true,
            Self::Combined => true,
            Self::Model => matches!(kind, DrafterKind::Model | DrafterKind::Head),
            Self::Ngram => kind == DrafterKind::Ngram,
            Self::Recycling => kind == DrafterKind::Recycling,
        }
    }
}

/// Draft length.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, TS)]
#[serde(rename_all = "snake_case", tag = "type", content = "tokens")]
#[ts(export)]
pub enum DraftLength {
    /// Length with the highest expected speed, possibly 0.
    #[default]
    Auto,
    /// 1 to [`MAX_DRAFT_LENGTH`].
    Fixed(u32),
    /// None: plain decoding.
    Off,
}

impl DraftLength {
    /// Fixed length of `tokens`; off for 0.
    pub fn tokens(tokens: u32) -> Self {
        if tokens == 0 { Self::Off } else { Self::Fixed(tokens) }
    }
}

impl<'de> Deserialize<'de> for DraftLength {
    /// Stored settings and traces may contain "off" as a fixed length of 0.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "snake_case", tag = "type", content = "tokens")]
        enum Stored {
            Auto,
            Fixed(u32),
            Off,
        }
        Ok(match Stored::deserialize(deserializer)? {
            Stored::Auto => Self::Auto,
            Stored::Fixed(tokens) => Self::tokens(tokens),
            Stored::Off => Self::Off,
        })
    }
}

/// Room for drafts in the rest of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Room {
    left: usize,
    longest: usize,
}

impl Room {
    /// Room of a reply that may have `left` more tokens.
    pub fn new(left: usize) -> Self {
        Self { left, longest: MAX_DRAFT_LENGTH }
    }

    /// Limits drafts to `longest` tokens.
    #[must_use]
    pub fn limited(self, longest: usize) -> Self {
        Self { longest: self.longest.min(longest), ..self }
    }

    /// Number of tokens that may still be written.
    pub fn left(self) -> usize {
        self.left
    }

    /// Longest draft: every round emits one token beyond it.
    pub fn longest(self) -> usize {
        self.left.saturating_sub(1).min(self.longest)
    }

    /// Maximum draft length for the setting `length`.
    pub fn fit(self, length: DraftLength) -> usize {
        match length {
            DraftLength::Auto => self.longest(),
            DraftLength::Fixed(length) => self.longest().min(length as usize),
            DraftLength::Off => 0,
        }
    }

    /// Returns true if the room is too small for `length`.
    pub fn cuts(self, length: DraftLength) -> bool {
        matches!(length, DraftLength::Fixed(length) if length as usize > self.longest())
    }
}

/// Early end of a draft: once the chance that all of it is accepted is below a value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type", content = "chance")]
#[ts(export)]
pub enum Threshold {
    #[default]
    Off,
    /// Value at which a further token costs as much time as it is expected to save.
    Auto,
    /// 0 to 1.
    Fixed(f32),
}

impl Threshold {
    /// Returns true if the governor decides where a draft ends.
    pub fn is_governed(self) -> bool {
        !matches!(self, Self::Fixed(_))
    }
}

/// Draft trees: several guesses may follow one token.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case", tag = "type", content = "guesses")]
#[ts(export)]
pub enum Tree {
    #[default]
    Off,
    /// When a tree is expected to be faster.
    Auto,
    /// Up to this many guesses per token, 1 to [`MAX_TREE_WIDTH`].
    Width(u32),
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Staged {
    #[default]
    Off,
    /// When staged drafting is faster.
    Auto,
    On,
}

/// Verification of sampled drafts. Both rules keep exactly the target's distribution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, TS)]
#[serde(rename_all = "snake_case")]
#[ts(export)]
pub enum Verification {
    /// Verifies the draft as a block; accepts at least as many tokens.
    #[default]
    Block,
    /// Verifies token by token.
    Token,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fixed_length_of_zero_is_read_as_off_and_never_written() {
        let read = |text: &str| serde_json::from_str::<DraftLength>(text).unwrap();
        assert_eq!(read(r#"{"type":"fixed","tokens":0}"#), DraftLength::Off);
        assert_eq!(Speculation::fixed(0).length, DraftLength::Off);
        for (length, text) in [
            (DraftLength::Auto, r#"{"type":"auto"}"#),
            (DraftLength::Fixed(4), r#"{"type":"fixed","tokens":4}"#),
            (DraftLength::Off, r#"{"type":"off"}"#),
        ] {
            assert_eq!(serde_json::to_string(&length).unwrap(), text);
            assert_eq!(read(text), length);
        }
    }

    #[test]
    fn lengths_out_of_range_are_rejected() {
        let with = |length| Speculation { length, ..Speculation::default() }.validate();
        let fits = [DraftLength::Auto, DraftLength::Off, DraftLength::Fixed(1), DraftLength::Fixed(16)];
        assert!(fits.into_iter().all(|length| with(length).is_ok()));
        assert!([0, 17].into_iter().all(|length| with(DraftLength::Fixed(length)).is_err()));
    }
}
