//! MILo-DB's section 7 on the counted clock: its schema, its token, its tables and figures.
//!
//! Beside our engine as it is stand the paper's own design, rebuilt ([`paper`]), and B+-trees over a translation layer ([`tree`]), on
//! the same simulated part. Our queries are answered in 64 KB; the entries of fresh rows and the positions of deletes and updates are held
//! to them where that is asked for. The heads of index runs are read anew each time, and four pages are kept.

mod cost;
mod data;
#[path = "../../bench/src/relation/figure7.rs"]
mod figure7;
mod figure8;
mod ftl;
mod insertion;
mod paper;
mod plots;
mod schemes;
mod section7;
#[path = "../../bench/src/relation/table1.rs"]
mod table1;
mod token;
mod tree;

use std::path::Path;

use crate::Failure;
pub use token::Held;

/// Rows of T0 unless told otherwise.
pub const ROWS: u64 = 50_000;
/// The paper's.
pub const ROWS_IN_FULL: u64 = figure7::ROWS;
/// Rows of the table of section 7.3.
pub use figure8::ROWS_IN_FULL as INDEXED_ROWS_IN_FULL;

/// Prints section 7.3 for a table of so many rows, and draws Figure 8 into a folder.
pub fn indexes(rows: u64, folder: Option<&Path>) -> Result<(), Failure> {
    println!("\n### MILo-DB's Figure 8, {rows} rows, counted clock of its token");
    let points = figure8::measured(rows)?;
    figure8::print(rows, &points)?;
    folder.map_or(Ok(()), |folder| plots::indexes(rows, &points, folder))
}

/// Prints sections 7.1, 7.2, 7.4 and 7.5 for a T0 of so many rows, and draws Figures 9 and 10 into a folder.
pub fn print(rows: u64, held: Held, folder: Option<&Path>) -> Result<(), Failure> {
    let all = if held == Held::Everything { ", all of ours in 64 KB" } else { "" };
    println!("\n### MILo-DB's section 7, {rows} rows in T0, counted clock of its token{all}");
    insertion::print(rows, held)?;
    let settings = section7::print(rows, held)?;
    folder.map_or(Ok(()), |folder| plots::section7(&settings, folder))
}

/// Prints what is worked off in section 7.5 without a VACUUM.
pub fn maintained(rows: u64) -> Result<(), Failure> {
    println!("\n### MILo-DB's section 7.5, {rows} rows in T0, counted clock of its token");
    section7::print_maintained(rows, Held::Answers)
}

/// Draws all figures into a folder.
pub fn draw(folder: &Path) -> Result<(), Failure> {
    plots::indexes(INDEXED_ROWS_IN_FULL, &figure8::measured(INDEXED_ROWS_IN_FULL)?, folder)?;
    plots::section7(&section7::measured(ROWS_IN_FULL, Held::Answers)?, folder)
}
