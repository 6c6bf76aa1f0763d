//! An SQL database in one sealed file.
//!
//! Whoever holds the file cannot read it, cannot change it unnoticed, and cannot put back yesterday's copy unnoticed.
//!
//! ```
//! use counterfoil::{Database, Key, Options};
//!
//! # let folder = tempfile::tempdir().expect("a folder");
//! # let path = folder.path().join("birds.db");
//! let key = Key::generate()?;
//! let database = Database::create(Options::path(&path).key(key))?;
//! let mut connection = database.connect()?;
//! connection.execute("CREATE TABLE birds (name TEXT PRIMARY KEY, wings INTEGER)", &[])?;
//! connection.execute("INSERT INTO birds VALUES ($1, $2)", &["wren".into(), 2.into()])?;
//! for batch in connection.query("SELECT name FROM birds WHERE wings = 2", &[])? {
//!     assert_eq!(batch?.num_rows(), 1);
//! }
//! # Ok::<(), counterfoil::Error>(())
//! ```
//!
//! What it is not: a place where a key is kept; and a server, but for rows that come in ([`Database::serve_influx`]). No
//! counter is looked for or kept unless [`Options::counter`] says where, but for a database that is bound to a TPM's: that
//! is asked ([`Options::tpm`]).
#![forbid(unsafe_code)]

#[cfg(feature = "publish")]
pub mod asking;
#[cfg(feature = "disperse")]
mod clouds;
mod connection;
mod convert;
mod copies;
mod counters;
mod create;
mod database;
mod device_image;
mod ending;
mod error;
mod house;
mod idle;
mod incidents;
mod influx;
mod inspect;
mod key;
mod medium;
mod options;
mod owner;
mod position;
#[cfg(feature = "publish")]
pub mod publishing;
mod records;
mod relation;
mod restore_device;
mod rollback;
mod rule;
mod salvage;
mod schema;
mod select;
mod series;
mod slots;
mod sqlstate;
pub mod statements;
mod store;
mod time;
mod tpm;
mod users;
mod verify;
mod volume;

pub use connection::{
    Connection, CopyOut, Description, Interrupt, Outcome, Prepared, Rows, Transaction, TransactionState, Value,
};
pub use copies::Progress;
pub use counterfoil_log::Room;
pub use counterfoil_relation::{IndexUse, Lack, RunUse, StepUse, TableUse};
pub use counterfoil_sql::{
    AtClouds, SERVER_VERSION, TYPE_OF, Verdict, Verified, field_name, is_uuid, result_name, value, with_uuid,
};
pub use counters::CounterInfo;
pub use database::Database;
pub use datafusion::arrow;
pub use device_image::{DeviceImage, DeviceShape, ImageInspection, ImageVerification};
pub use ending::Ending;
pub use error::{Error, Kind, Result};
pub use house::Purged;
pub use incidents::Incident;
pub use influx::{InfluxListener, InfluxOptions, LinePrecision, Lines, LinesImported};
pub use inspect::{Container, Extent, Inspection, Region, SeriesPage, SeriesUse, Source};
pub use key::{Key, Secret, random};
pub use options::{Cipher, Counter, Options, Place};
pub use owner::{BroughtBack, CloudAddress};
pub use position::Position;
pub use records::Records;
pub use relation::{ColumnInfo, Relation};
pub use rule::BrokenRule;
pub use salvage::{Missing, Salvage};
pub use schema::{quoted, sql_type, write_cell};
pub use select::{ColumnName, Condition, Select, column};
pub use series::{Cursor, Series, SeriesRows, SeriesWriter, Written};
pub use slots::SlotInfo;
pub use time::utc;
pub use tpm::Tpm;
pub use users::{Login, Role, Scram, UserInfo, Users};
pub use verify::{TableCheck, Verification};
