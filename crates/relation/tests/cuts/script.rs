//! A script: tables, and what becomes of them step by step.

use std::collections::BTreeMap;

use counterfoil_log::Writer;
use counterfoil_relation::{Error, Relations, RowId, Value};

/// The rows of a table by their numbers.
pub type Rows = BTreeMap<RowId, Vec<Value>>;
/// Those of all tables that are compared, by name.
pub type Model = BTreeMap<&'static str, Rows>;

pub trait Script {
    /// The tables that are compared.
    fn tables(&self) -> &'static [&'static str];

    /// Makes them, without a row.
    fn create(&self, relations: &Relations, writer: &mut Writer) -> Result<(), Error>;

    /// One transaction. The same step does the same to the same rows.
    fn change(&self, relations: &Relations, writer: &mut Writer, model: &mut Model, step: i32) -> Result<(), Error>;
}
