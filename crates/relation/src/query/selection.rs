//! Which rows of a batch are wanted.

use alloc::vec::Vec;

/// Which rows of a batch are wanted.
#[derive(Clone, Debug)]
pub enum Selection {
    /// All, from the first to the last.
    All(usize),
    /// Those at these places.
    At(Vec<u32>),
}

impl Selection {
    /// How many rows are wanted.
    #[must_use]
    pub fn count(&self) -> usize {
        match self {
            Selection::All(count) => *count,
            Selection::At(places) => places.len(),
        }
    }

    /// Calls `visit` with every place wanted, in order.
    pub fn each(&self, mut visit: impl FnMut(usize)) {
        match self {
            Selection::All(count) => (0..*count).for_each(visit),
            Selection::At(places) => places.iter().for_each(|place| visit(*place as usize)),
        }
    }

    /// The places wanted, in order.
    #[must_use]
    pub fn into_places(self) -> Vec<u32> {
        match self {
            Selection::All(count) => (0..count as u32).collect(),
            Selection::At(places) => places,
        }
    }
}
