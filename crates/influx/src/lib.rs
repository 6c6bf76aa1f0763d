//! Line protocol, and a listener that Telegraf and other clients of InfluxDB write to.
//!
//! ```text
//! bytes -> Lines -> Parser -> Batch        Listener -> Sink
//!          lines    fields    tables       HTTP        whatever keeps them
//! ```
//!
//! - [`Lines`] cuts a stream into lines, [`Parser`] reads one without copying, [`Batch`] gathers them by measurement as
//!   columns that a table writer takes over; [`gather()`] does all three in memory that does not grow with the stream.
//! - [`listener`] (feature `listener`) answers `/write`, `/api/v2/write`, `/query`, `/ping` and `/health` as InfluxDB does,
//!   in bounded memory, and acknowledges what its [`Sink`](listener::Sink) has made durable.
//! - [`quality`] says which numbers stand for the qualities of OPC UA.
//!
//! It keeps nothing and knows no table store, and it is no query language: `docs/influx.md` says what is left out.
//!
//! ```
//! use counterfoil_influx::{NoSchema, Reading, gather};
//!
//! let text = "cpu,host=a usage=0.5 1700000000000000000\ncpu,host=a usage=high\n";
//! let mut tables = Vec::new();
//! let gathered = gather(text.as_bytes(), &Reading::default(), &NoSchema, 1 << 20, |batch| {
//!     tables.extend(batch.into_tables());
//!     Ok::<(), std::convert::Infallible>(())
//! })?;
//! assert_eq!(tables[0].times, [1_700_000_000_000_000_000]);
//! assert_eq!(gathered.rejects.shown()[0].line, 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
mod column;
mod ending;
mod gather;
pub mod limits;
mod line;
mod lines;
#[cfg(feature = "listener")]
pub mod listener;
mod precision;
mod problem;
pub mod quality;
mod schema;
mod table;
mod tags;
mod text;
mod value;

pub use batch::{Batch, Reading};
pub use column::{Column, Texts, Values};
pub use gather::{Gathered, Stopped, gather};
pub use line::{Line, Parser};
pub use lines::{Lines, Piece};
pub use precision::Precision;
pub use problem::{Fault, Problem, Reject, Rejects};
pub use schema::{Kind, NoSchema, Schema};
pub use table::Table;
pub use tags::TagSets;
pub use text::Text;
pub use value::{FieldType, Value};
