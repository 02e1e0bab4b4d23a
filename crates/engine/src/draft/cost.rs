//! What asking a drafter for a draft costs, as far as it can say so itself.

use crate::speculation::MAX_DRAFT_LENGTH;

/// Whether a drafter's drafts take time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// Next to none: it is asked in every round, and its best guesses are compared with what others promise.
    Free,
    /// Some, which is measured: the governor plans what it shall draft.
    Measured {
        /// The draft lengths that are measured, ascending; the costs of others lie on straight lines between and
        /// beyond them.
        lengths: &'static [usize],
    },
    /// Some, which is measured, too; but all of a draft is there at once, so that one which ends early has cost as much
    /// as was asked for.
    AtOnce {
        /// Tokens it drafts at most.
        longest: usize,
    },
}

impl Cost {
    /// Of one that drafts token by token.
    pub const BY_TOKEN: Self = Self::Measured { lengths: &[1, 4] };

    pub fn is_free(self) -> bool {
        self == Self::Free
    }

    /// The draft lengths to be measured, ascending; none where there is nothing to measure.
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

    /// Most tokens of a draft that comes at once; `None` of one that comes token by token.
    pub(super) fn at_once(self) -> Option<usize> {
        if let Self::AtOnce { longest } = self { Some(longest) } else { None }
    }
}
