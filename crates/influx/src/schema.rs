//! What a store already knows about the columns of a measurement.

use crate::problem::Problem;
use crate::value::FieldType;

/// What a column of a table is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A part of the key.
    Tag,
    /// A field of this type.
    Field(FieldType),
}

/// The columns that a store has, asked once for each table and column of a batch. Between the question and the write
/// another batch may change the answer: the store checks again, and this only lets most conflicts be told early.
pub trait Schema: Send + Sync {
    /// A column of a measurement's table; none where there is none yet.
    fn column(&self, measurement: &str, name: &str) -> Option<Kind>;

    /// Whether lines of this measurement are taken.
    ///
    /// # Errors
    /// [`Problem::NoTable`] where there is no table and none may be made.
    fn takes(&self, _measurement: &str) -> Result<(), Problem> {
        Ok(())
    }
}

/// A store that has nothing yet and takes everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoSchema;

impl Schema for NoSchema {
    fn column(&self, _measurement: &str, _name: &str) -> Option<Kind> {
        None
    }
}
