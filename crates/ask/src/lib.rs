//! A reader's SQL: one SELECT of a published table becomes a question, and verified rows become its result.
//!
//! - [`Asked::parse`] understands a text and plans it: the [`Question`](counterfoil_proof::Question) goes to a mirror.
//! - [`Asked::answer`] makes a [`Table`] of the rows that [`counterfoil_proof::check`] let through.
//! - [`AskedJoin`] is the same of two tables: rows of the first one say what is asked of the second.
//! - [`Scan`] is the same for programs with an SQL of their own: a condition, columns, an order and a number of rows, without a
//!   text.
//! - [`text()`] and [`parse_value`] are values as people write them.
//!
//! No engine and no network: what is not done here is refused by name, never answered in part. The reader builds the
//! question from its own text, so that nothing a mirror sends decides what was asked.
//!
//! ```
//! use counterfoil_ask::{Asked, text};
//! use counterfoil_proof::{Column, Definition, Scheme, Type, Value};
//!
//! let definition = Definition {
//!     table: [7; 16],
//!     name: "fares".into(),
//!     columns: vec![
//!         Column { name: "line".into(), kind: Type::Text },
//!         Column { name: "price".into(), kind: Type::Numeric(10, 2) },
//!     ],
//!     orders: vec![vec![0, 1]],
//!     scheme: Scheme::PerRecord,
//!     nodes: Vec::new(),
//!     filters: Vec::new(),
//! };
//! let asked = Asked::parse("SELECT price FROM fares WHERE line = 'U6' AND price < 10.005", &definition)?;
//! assert_eq!(asked.plan(), "order 0 by (line, price), intervals: 1, exactly");
//! let rows = vec![vec![Value::Text("U6".into()), Value::Numeric(240)]];
//! let table = asked.answer(rows)?;
//! assert_eq!(text(table.kinds[0], &table.rows[0][0]).as_deref(), Some("2.40"));
//! # Ok::<(), counterfoil_ask::Error>(())
//! ```
#![forbid(unsafe_code)]

mod asked;
mod calendar;
mod condition;
mod decimal;
mod error;
mod groups;
mod join;
mod like;
mod literal;
mod names;
mod plan;
mod result;
mod scan;
mod select;
mod set;
mod shape;
mod statement;
mod text;
mod totals;

pub use asked::Asked;
pub use error::{Error, type_name};
pub use join::AskedJoin;
pub use literal::Comparison;
pub use result::Table;
pub use scan::{Filter, Scan, Wanted};
pub use select::SortKey;
pub use statement::TEXT_BYTES_MAX;
pub use text::{parse_value, text};
