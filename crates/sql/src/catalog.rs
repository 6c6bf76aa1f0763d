//! `pg_catalog`: what clients of PostgreSQL ask to learn what is there, made of the snapshot when a query names it.
//!
//! ```text
//! statement -> words, casts, constants, nothing     what PostgreSQL writes there, in words that the query library reads
//!           -> functions over facts                 pg_get_constraintdef(oid) and its kin
//!           -> tables                               pg_class and its kin, as batches
//! ```
//!
//! | here | what |
//! |---|---|
//! | [`shape`] | names and columns of all tables; most are empty, as no database here has what they tell of |
//! | [`numbers`] | oids of our objects |
//! | [`types`], [`relations`], [`keys`], [`server`] | rows |
//! | [`facts`], [`functions`] | functions, and what they answer from |
//! | [`words`], [`from`], [`casts`], [`constants`], [`subqueries`], [`nothing`], [`introspection`] | statements rewritten |

mod arrays;
mod casts;
mod constants;
mod facts;
mod from;
mod functions;
mod functions_list;
mod held;
mod introspection;
mod keys;
mod nothing;
mod numbers;
mod relations;
mod server;
pub(crate) mod set_config;
mod shape;
mod subqueries;
mod texts;
mod types;
mod words;

use std::sync::Arc;

use counterfoil_log::Snapshot;
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::Schema;

use crate::error::Result;
use crate::planner::Planner;
use held::Held;
use shape::{Rows, Shape};

pub(crate) use arrays::parameters as array_parameters;
pub(crate) use facts::Facts;
pub(crate) use functions::all as functions;
pub(crate) use words::{Said, adapt, wants_facts};

/// The schema of these tables.
pub(crate) const SCHEMA: &str = "pg_catalog";

/// In the metadata of a column of a result: the name of its type in PostgreSQL, where that does not follow from the Arrow type.
pub const TYPE_OF: &str = "counterfoil.postgresql_type";

/// Whether there is such a table here.
pub(crate) fn is_table(name: &str) -> bool {
    shape::shape(name).is_some()
}

/// One of the tables by name.
///
/// # Errors
/// Those of reading.
pub(crate) fn table(name: &str, planner: &mut Planner, snapshot: &Snapshot) -> Result<Option<RecordBatch>> {
    let Some(shape) = shape::shape(name) else { return Ok(None) };
    // While a view is described its columns alone matter, and a view of the catalogue would describe itself for ever.
    if planner.is_describing() || is_always_empty(name) {
        return shape::nothing(shape).map(Some);
    }
    let held = Held::of(planner, snapshot)?;
    let mut rows = Rows::of(shape);
    fill(shape, &mut rows, &held, (planner, snapshot))?;
    rows.batch().map(Some)
}

fn fill(shape: &Shape, rows: &mut Rows, held: &Held, (planner, snapshot): (&mut Planner, &Snapshot)) -> Result<()> {
    match shape.name {
        "pg_class" => relations::classes(rows, held, &relations::viewed(held, planner, snapshot)),
        "pg_attribute" => relations::attributes(rows, held, &relations::viewed(held, planner, snapshot)),
        "pg_attrdef" => relations::defaults(rows, held),
        "pg_tables" => relations::tables(rows, held),
        "pg_views" => relations::views(rows, held),
        "pg_sequence" => relations::sequences(rows, held),
        "pg_index" => keys::indexes(rows, held),
        "pg_indexes" => keys::shown_indexes(rows, held),
        "pg_constraint" => keys::constraints(rows, held),
        "pg_type" => types::rows(rows),
        "pg_settings" => server::settings(rows, planner.said()),
        name => server::fill(name, rows),
    }
    Ok(())
}

/// Whether a table has no rows, whatever the database holds.
fn is_always_empty(name: &str) -> bool {
    const FILLED: &[&str] = &[
        "pg_am",
        "pg_attrdef",
        "pg_attribute",
        "pg_authid",
        "pg_class",
        "pg_constraint",
        "pg_database",
        "pg_get_keywords",
        "pg_index",
        "pg_indexes",
        "pg_language",
        "pg_namespace",
        "pg_roles",
        "pg_sequence",
        "pg_settings",
        "pg_shadow",
        "pg_tables",
        "pg_tablespace",
        "pg_type",
        "pg_user",
        "pg_views",
    ];
    is_table(name) && !FILLED.contains(&name)
}

/// A view and its columns.
type Viewed = Vec<(String, Option<Arc<Schema>>)>;
