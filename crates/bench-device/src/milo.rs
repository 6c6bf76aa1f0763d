//! MILo-DB's section 7 on the counted clock: its schema, its token, its 18 queries.
//!
//! What is measured here is our engine as it is. Of its memory, the entries of fresh rows and the positions of deletes and updates are
//! not yet held to 64 KB; the heads of index runs are read anew each time, and four pages are kept.

mod cost;
#[path = "../../bench/src/relation/figure7.rs"]
mod figure7;
mod figure8;
mod paper;
pub mod plots;
mod schemes;
#[path = "../../bench/src/relation/table1.rs"]
mod table1;
mod token;

use counterfoil_flash_sim::Meters;

use crate::Failure;
use cost::Cost;
use figure7::TABLES;
use table1::Query;
use token::Token;

/// Rows of T0 unless told otherwise.
pub const ROWS: u64 = 50_000;
/// The paper's.
pub const ROWS_IN_FULL: u64 = figure7::ROWS;
/// Rows that are inserted one by one, of each table.
const SINGLE: u64 = 20_000;
/// Milliseconds on the counted clock, the co-processor's among them.
fn milliseconds(meters: &Meters) -> f64 {
    Cost::sealed(*meters).milliseconds()
}

/// Rows of the table of section 7.3.
pub use figure8::ROWS_IN_FULL as INDEXED_ROWS_IN_FULL;

/// Prints section 7.3 for a table of so many rows.
pub fn indexes(rows: u64) -> Result<(), Failure> {
    println!("\n### MILo-DB's Figure 8, {rows} rows, counted clock of its token");
    figure8::print(rows)
}

/// Prints all tables for a T0 of so many rows.
pub fn print(rows: u64) -> Result<(), Failure> {
    println!("\n### MILo-DB's section 7, {rows} rows in T0, counted clock of its token\n");
    let mut token = Token::loaded(rows)?;
    inserts(&mut token)?;
    for fresh in [0, rows / 100, rows / 10] {
        let mut token = Token::loaded(rows - fresh)?;
        token.grow(fresh)?;
        token.wear(3000 * rows / figure7::ROWS)?;
        queries(&mut token, fresh)?;
        let before = token.meters();
        token.reorganize()?;
        let spent = token.meters().since(&before);
        println!(
            "reorganized: {:.1} s, {:.1} MB written\n",
            milliseconds(&spent) / 1e3,
            spent.program_bytes as f64 / 1e6
        );
    }
    Ok(())
}

/// Sections 7.1 and 7.2: rows one by one.
fn inserts(token: &mut Token) -> Result<(), Failure> {
    println!(
        "| a row and its commit | ms, mean | pages read | pages written | blocks erased | the paper, ms | goal, ms |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, paper, goal) in [("t2", 1.5, 0.5), ("t0", 8.0, 1.5)] {
        let before = token.meters();
        for _ in 0..SINGLE {
            token.insert(name)?;
        }
        let spent = token.meters().since(&before);
        let each = |count: u64| count as f64 / SINGLE as f64;
        println!(
            "| {name} | {:.2} | {:.2} | {:.2} | {:.3} | {paper} | {goal} |",
            milliseconds(&spent) / SINGLE as f64,
            each(spent.reads),
            each(spent.programs),
            each(spent.erases)
        );
    }
    println!();
    Ok(())
}

/// Section 7.4: Table 1.
fn queries(token: &mut Token, fresh: u64) -> Result<(), Failure> {
    println!("| fresh {fresh} | rows | the paper's, of a million | ms | pages read | rows of T0 in question | by |");
    println!("|---|---|---|---|---|---|---|");
    for query in table1::all(token.rows()) {
        let before = token.meters();
        let token::Answer { rows, candidates, by } = token.ask(&query)?;
        let spent = token.meters().since(&before);
        let (Query { name, paper_rows, .. }, by) = (query, by.join(", "));
        let time = milliseconds(&spent);
        println!("| {name} | {rows} | {paper_rows} | {time:.1} | {} | {candidates} | {by} |", spent.reads);
    }
    println!();
    Ok(())
}
