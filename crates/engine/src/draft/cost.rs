//! Cost model of a drafter.

use crate::speculation::MAX_DRAFT_LENGTH;

/// How a drafter's time grows with the length of its draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Negligible: the drafter is asked in every round, and its best draft is compared with the
    /// expected speed of the others.
    Free,
    /// Measured per draft length; the governor plans the draft.
    Measured {
        /// Draft lengths to measure, ascending. The costs of other lengths are interpolated and
        /// extrapolated linearly.
        lengths: &'static [usize],
    },
    /// Measured, with all tokens of a draft in one pass: a draft that ends early costs as much as
    /// the requested length.
    AtOnce {
        /// Maximum number of tokens per draft.
        longest: usize,
    },
}

impl Cost {
    /// Cost of drafting token by token.
    pub const BY_TOKEN: Self = Self::Measured { lengths: &[1, 4] };

    pub fn is_free(self) -> bool {
        self == Self::Free
    }

    /// Draft lengths to measure, ascending; empty if drafts are free.
    pub(super) fn lengths(self) -> Vec<usize> {
        match self {
            Self::Free => Vec::new(),
            Self::Measured { lengths } => lengths.to_vec(),
            Self::AtOnce { longest } => {
                let longest = longest.clamp(1, MAX_DRAFT_LENGTH);
                let mut lengths = vec![1, longest.div_ceil(2), longest];
                lengths.dedup();
                lengths
            }
        }
    }

    /// Maximum length of a draft made in one pass; `None` for drafting token by token.
    pub(super) fn at_once(self) -> Option<usize> {
        if let Self::AtOnce { longest } = self { Some(longest) } else { None }
    }
}
