//! One SQL over every table kind.
#![forbid(unsafe_code)]

mod absent;
mod aggregates;
mod alter_column;
mod answered;
mod argument_types;
mod aside;
mod asked;
mod assign;
mod begun_side;
mod bin;
mod by_keys;
mod cast;
mod catalog;
mod change;
mod changes_explained;
mod clock;
mod coerce;
mod columns;
mod constrain;
mod control;
mod copy;
mod cursors;
mod date_bin;
mod date_parts;
mod define;
pub mod delimited;
mod described;
mod description;
mod dialect;
mod direct;
mod dispersed;
mod distinct;
mod engine;
mod error;
mod evaluate;
mod executor;
mod explain;
mod extremes;
mod far_limit;
mod figured;
mod filter;
mod folding;
mod frugal;
mod functions;
mod gathering;
mod grammar;
mod group;
mod growing;
mod historian;
mod idioms;
mod incidents;
mod information;
mod inner_node;
mod insert;
mod interrupt;
mod interval_order;
mod interval_times;
mod joined;
mod joining;
mod late_scan;
mod leaf_node;
mod limits;
mod lists;
mod little;
mod load;
mod means;
mod memory;
mod met;
mod modes;
mod multisets;
mod naming;
mod narrow_scan;
mod nesting;
mod no_row;
mod null_equal;
mod nulls;
mod on_conflict;
mod on_rollback;
mod one_row;
mod operators;
mod outer_keys;
mod outer_names;
mod outer_values;
mod parameters;
mod patience;
mod pieces;
mod planner;
mod provider;
mod published;
mod publishing;
mod quotient;
mod ram;
mod read_ahead;
mod rewriting;
mod rights;
mod row_bytes;
mod rows;
mod running;
mod scan;
mod scan_below;
mod schemas;
mod series;
mod session;
mod settings;
mod sharing;
mod shortcut;
mod show;
mod sliding;
mod slot;
mod slots;
mod spill;
mod sqlstate;
mod statement;
mod steps;
mod store;
pub mod text;
mod time_patterns;
mod times;
mod together;
mod tokens;
mod transaction;
mod truncate;
pub mod types;
mod unordered;
mod using;
mod uuids;
pub mod value;
mod view_order;
mod views;
mod waiting;
mod windows;
mod wording;

/// The version of PostgreSQL whose ways these are: clients go by it when they ask the catalogue.
macro_rules! server_version {
    () => {
        "15.0"
    };
}
/// The version of PostgreSQL whose ways these are.
pub const SERVER_VERSION: &str = server_version!();
/// What `version()` answers.
pub(crate) const VERSION: &str =
    concat!("PostgreSQL ", server_version!(), " (Counterfoil ", env!("CARGO_PKG_VERSION"), ")");

/// Names that begin with this are ours: columns and tables that planning needs and nobody sees.
pub(crate) const HIDDEN: &str = "__counterfoil";
/// The one schema.
pub(crate) const SCHEMA: &str = "public";
/// The schema of the views that describe the database.
pub(crate) const INFORMATION: &str = "information_schema";
/// The schema of what only this database has.
pub(crate) const OWN: &str = "counterfoil";
/// The one catalog.
pub(crate) const CATALOG: &str = "counterfoil";

pub use catalog::TYPE_OF;
pub use clock::Clock;
pub use copy::CopyOut;
pub use description::Description;
pub use direct::{ColumnName, Condition, Question, column};
pub use dispersed::{
    AtClouds, BroughtBack, CloudSecret, Clouds, Lost, Owner, clouds_sql, for_clause, is_dispersed,
    leave_tables_to_the_other, lost_tables, rows_elsewhere, secrets_of_before,
};
pub use engine::{Engine, EngineOptions, LITTLE_BYTES_MIN, MEMORY_BYTES_DEFAULT, Rows};
pub use error::{Error, Named, Position, Result};
pub use filter::{Comparison, Constant, Test};
pub use incidents::{Incident, IncidentKind, incidents, next_record as next_incident};
pub use interrupt::Interrupt;
pub use load::{table_batch, table_schema};
pub use memory::MEMORY_BYTES_MIN;
pub use on_rollback::OnRollback;
pub use patience::Patience;
pub use published::{
    Answer, Asking, Defined, Planned, SortBy, Source, Verdict, Verified, VerifiedTable, Verifier, Wanted, is_published,
};
pub use publishing::{
    Publish, Published, Publisher, Publishing, Signing, is_hidden, ledger_name, publications,
    record_name as publication_record,
};
pub use ram::Ram;
pub use rights::Rights;
pub use series::{
    Appended, Cursor, NewField, NewPoints, PointWriter, Reason, SeriesReader, TIME_COLUMN, Written,
    count as series_count, count_apart, error as series_error, is_series, kept_apart, newest as series_newest,
    survey as series_survey,
};
pub use session::{Outcome, Session, TransactionState};
pub use settings::LOCK_TIMEOUT;
pub use show::with_clause;
pub use slot::{Chore, OpenWriter, WriterSlot};
pub use spill::Spill;
pub use statement::{Piece, kept_apart_name, split};
pub use store::{Lease, LocalStore, Store};
pub use types::{
    TYPE_KEY, UTC, arrow as arrow_type, field_name, from_arrow as column_type, is_uuid, name as type_name, result_name,
    with_uuid,
};
pub use value::Value;
pub use view_order::views_in_order;

pub use counterfoil_log as log;
pub use counterfoil_relation as relation;
pub use counterfoil_relation::Function;
pub use counterfoil_series as series_engine;
pub use datafusion::arrow;
