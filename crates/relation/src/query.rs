//! Questions to a table and to the tables that its rows join along foreign keys (MILo-DB, sections 3.1 and 4.2).
//!
//! ```text
//! tests of each source -- indexes --> rows of each source -- paths, backwards --> rows of the root (candidates)
//!                                                                                      |
//!              rows of the answer <-- tests, asked again <-- what each of them joins --+
//! ```
//!
//! A [`Condition`] says so of several sources at once: alternatives are the union of the rows that each of them names.
//!
//! Indexes decide how much is read and never what is answered: every test is asked of the rows themselves. Rows that are only counted
//! are an exception, where one index says all that is asked and nothing has happened to them since (counting.rs).

mod answer;
mod candidates;
mod compiled;
mod condition;
#[cfg(not(feature = "small"))]
mod counting;
mod ends;
mod fold;
mod joined;
mod kept;
mod named;
mod outermost;
mod packed;
mod parts;
#[cfg(not(feature = "small"))]
mod passes;
mod plan;
mod put_aside;
mod ranges;
mod records;
mod rows;
mod scratch;
mod selection;
mod sorter;
mod stage;
mod test;
mod told;
mod windows;

use alloc::sync::Arc;
use alloc::vec::Vec;

pub use answer::{Answer, BUDGET_BYTES_MIN, Progress};
pub use candidates::Candidates;
pub use compiled::PLAN_BYTES_MAX;
pub use condition::Condition;
#[cfg(not(feature = "small"))]
pub use counting::Count;
pub use joined::{JoinedRows, NO_ROW, Side};
pub use kept::KeptRows;
pub use named::NamedRows;
#[cfg(not(feature = "small"))]
pub use passes::Passes;
pub(crate) use plan::PRECISION_MAX;
pub use plan::{Access, Function, Order, Output, Place, Plan};
pub use records::{RecordSorter, SortedRecords};
pub use scratch::{ContainerScratch, NoScratch, Scratch};
pub use selection::Selection;
pub use test::{Comparison, Constant, Test, select};

use crate::Table;
use counterfoil_log::Order as _;

/// Ends of a path that are looked up together.
const PIECE_ENDS: usize = 256;

/// A table that a question reads.
#[derive(Clone)]
pub struct Source {
    /// The table.
    pub table: Arc<Table>,
    /// The path by which rows of the root join it, by its place among the root's joins; none for the root.
    pub path: Option<usize>,
    /// What must be true of its rows.
    pub tests: Vec<Test>,
    /// Whether rows stay that join none of its rows, or only one of which the tests are not true: they have [`NO_ROW`] there.
    pub is_optional: bool,
}

impl Source {
    /// The columns that its tests look at, by their places, each once.
    #[must_use]
    pub fn tested_columns(&self) -> Vec<usize> {
        let mut columns = Vec::new();
        self.tests.iter().for_each(|test| test.columns(&mut columns));
        columns.order();
        columns.dedup();
        columns
    }
}
