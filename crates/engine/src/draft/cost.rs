//! What asking a drafter for a draft costs, as far as it can say so itself.

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
}

impl Cost {
    /// Of one that drafts token by token.
    pub const BY_TOKEN: Self = Self::Measured { lengths: &[1, 4] };

    pub fn is_free(self) -> bool {
        self == Self::Free
    }
}
