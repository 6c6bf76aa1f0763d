//! What an answer is to be above all (the paper's OPTIMIZE FOR, section II.D).

/// What an answer is to be above all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Goal {
    /// Right, if no more clouds fail than were declared to, and there as soon as that is known.
    #[default]
    Ordinary,
    /// The same from so many clouds for each column and each sum; of none said: from most of those that have it. All are asked, and
    /// whoever shows something else is named.
    Reliability(Option<usize>),
    /// There soon: what the first cloud says of a condition or a sum is believed, though it may leave rows out, or lie.
    Performance,
}

impl Goal {
    /// How many of those that have something are to show the same; none: as many as it takes to be right.
    #[must_use]
    pub fn quorum(self, holders: usize) -> Option<usize> {
        match self {
            Self::Reliability(asked) => Some(asked.unwrap_or(holders / 2 + 1)),
            Self::Ordinary | Self::Performance => None,
        }
    }
}
