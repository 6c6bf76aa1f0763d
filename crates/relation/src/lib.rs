//! Tables: rows in append-only containers, unique and secondary indexes in sorted runs, constraints.
//!
//! This crate is the house's floor for relations. It knows columns, rows, keys and references; it knows no SQL
//! (defaults, checks and views are texts it keeps for the caller), no Arrow, no pages and no medium. Everything it
//! stores lies in containers and records of `counterfoil-log`, so a transaction is the log's, and so is a snapshot.
//!
//! - [`Relations`] is the face: one per open database, shared by readers and the one writer.
//! - [`Table`] says what is known of a table; [`NewTable`] and its kin ask for one.
//! - A row holds the rows at the end of each path of foreign keys that begins at its table ([`Table::joins`]).
//! - [`RowBatch`] carries rows in; [`RowBlock`] carries rows out, a [`Scan`] gives them by the thousand.
//! - [`Source`]s with [`Test`]s are a question to a table and what its rows join: [`Relations::candidates_of_root`] asks the
//!   indexes, [`Relations::read_joined`] the rows.
//! - [`Storage`] is what is needed of the log's writer; reading needs only a `View`.
//!
//! ```
//! use counterfoil_log::{View, Writer};
//! use counterfoil_relation::{Error, NewColumn, NewKey, NewTable, Relations, RowBuilder, Type, ValueRef};
//!
//! /// Makes a table with one row, inside a transaction that the caller began and will commit.
//! fn airports(relations: &Relations, writer: &mut Writer) -> Result<u64, Error> {
//!     let table = relations.create_table(writer, &NewTable {
//!         name: "airports".into(),
//!         columns: vec![NewColumn::new("faa", Type::Char(3)), NewColumn::new("altitude", Type::Integer)],
//!         primary_key: Some(NewKey { name: None, columns: vec!["faa".into()] }),
//!         ..NewTable::default()
//!     })?;
//!     let mut rows = RowBuilder::new(table.layout());
//!     rows.push(&[ValueRef::Text("JFK"), ValueRef::Integer(13)])?;
//!     relations.insert(writer, &table, &rows.finish())?;
//!     relations.count(writer, &table)
//! }
//! ```
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;

mod access;
mod alter;
mod alter_column;
mod batch;
mod block;
mod bloom;
mod bounds;
mod careful;
mod catalog;
mod change;
mod constrain;
#[cfg(not(feature = "small"))]
mod counted;
mod define;
mod definitions;
mod entries;
mod error;
mod fetch;
mod figures;
mod files;
mod found;
mod fresh;
mod gathered;
mod grain;
mod heads;
mod identity;
mod index;
mod insert;
mod join;
mod key;
mod layout;
mod mean;
mod merge;
mod path;
mod presence;
mod query;
mod read;
mod reference;
mod rejoin;
mod relations;
mod reorganize;
mod request;
mod room;
mod rules;
mod run;
mod salvage;
mod scan;
mod settle;
mod shape;
mod sorted;
mod state;
mod statement;
mod table;
mod vacuum;
mod value;
mod verify;
mod wide;

/// What is looked at together: few where memory is little.
const fn few_or_many(few: usize, many: usize) -> usize {
    if cfg!(feature = "small") { few } else { many }
}

pub use alter_column::{ColumnChange, Retype};
pub use batch::{RowBatch, RowBuilder, VALUE_BYTES_MAX};
pub use block::{RowBlock, RowIds};
pub use catalog::{COLUMNS_MAX, NAME_BYTES_MAX};
pub use constrain::NewConstraint;
pub use counterfoil_log::Storage;
pub use error::{Cause, Error, Rule, Violation};
pub use figures::{IndexUse, RunUse, TableUse};
pub use fresh::FRESH_ROWS;
pub use key::{KeyBound, KeyRange};
pub use layout::{INLINE_BYTES, Layout, LayoutColumn, WIDE_CHARACTERS_MAX};
pub use mean::{mean, mean_digits};
pub use query::{
    Access, Answer, BUDGET_BYTES_MIN, Candidates, Comparison, Condition, Constant, ContainerScratch, Function,
    JoinedRows, KeptRows, NO_ROW, NamedRows, NoScratch, Order, Output, PLAN_BYTES_MAX, Place, Plan, Progress,
    RecordSorter, Scratch, Selection, Side, SortedRecords, Source, Test, select,
};
#[cfg(not(feature = "small"))]
pub use query::{Count, Passes};
pub use relations::{Named, Relations};
pub use reorganize::Vacuum;
pub use request::{NewCheck, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable};
pub use room::{Lack, StepUse};
pub use salvage::Salvage;
pub use scan::Scan;
pub use statement::{Observer, Statement};
pub use table::{
    Action, Check, Column, ColumnId, Engine, ForeignKey, ForeignKeyId, Identity, IndexDef, IndexId, IndexOrigin, Join,
    JoinId, KeyDef, RowId, Step, StoredView, Table, TableId,
};
pub use value::{Type, Value, ValueRef};
pub use verify::{LostRows, Problem, TableReport, VerifyProgress, VerifyReport};
