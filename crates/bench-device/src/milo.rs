//! MILo-DB's section 7 on the counted clock: its schema, its token, its tables and figures.
//!
//! Beside our engine as it is stand the paper's own design, rebuilt ([`paper`]), and B+-trees over a translation layer ([`tree`]), on
//! the same simulated part. Of our engine's memory, the entries of fresh rows and the positions of deletes and updates are not
//! yet held to 64 KB; the heads of index runs are read anew each time, and four pages are kept.

mod cost;
mod data;
#[path = "../../bench/src/relation/figure7.rs"]
mod figure7;
mod figure8;
mod ftl;
mod insertion;
mod paper;
pub mod plots;
mod schemes;
mod section7;
#[path = "../../bench/src/relation/table1.rs"]
mod table1;
mod token;
mod tree;

use crate::Failure;

/// Rows of T0 unless told otherwise.
pub const ROWS: u64 = 50_000;
/// The paper's.
pub const ROWS_IN_FULL: u64 = figure7::ROWS;
/// Rows of the table of section 7.3.
pub use figure8::ROWS_IN_FULL as INDEXED_ROWS_IN_FULL;

/// Prints section 7.3 for a table of so many rows.
pub fn indexes(rows: u64) -> Result<(), Failure> {
    println!("\n### MILo-DB's Figure 8, {rows} rows, counted clock of its token");
    figure8::print(rows)
}

/// Prints sections 7.1, 7.2, 7.4 and 7.5 for a T0 of so many rows.
pub fn print(rows: u64) -> Result<(), Failure> {
    println!("\n### MILo-DB's section 7, {rows} rows in T0, counted clock of its token");
    insertion::print(rows)?;
    section7::print(rows)
}
