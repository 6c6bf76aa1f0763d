//! Tables of numbers beside H. Pang, J. Zhang, K. Mouratidis, *Scalable Verification for Outsourced Dynamic Databases*,
//! VLDB 2009.
//!
//! ```text
//! counterfoil-bench-publish table1                       heights of index trees
//! counterfoil-bench-publish table3                       what signing, adding up, checking and hashing take
//! counterfoil-bench-publish table4 [RECORDS]             BAS, the EMB- tree, condensed RSA one transaction at a time
//! counterfoil-bench-publish figure7 [RECORDS [FOLDER]]   Figures 7 and 9: the same under load
//! counterfoil-bench-publish goals [RECORDS]              what we go for
//! counterfoil-bench-publish served [RECORDS [FOLDER]]    these three of one load (1,000,000 records unless told)
//! counterfoil-bench-publish figure4 [FOLDER]             where filters are smaller than boundary values
//! counterfoil-bench-publish figure6 [LEVELS [FOLDER]]    the cache of signatures over 2^LEVELS records (20 unless told)
//! counterfoil-bench-publish figure8 [FOLDER]             bytes of summaries of changes
//! counterfoil-bench-publish figure10 [LEVELS [FOLDER]]   response time with the cache of signatures
//! counterfoil-bench-publish figure11 [FOLDER]            proofs of joins: boundary values against filters
//! counterfoil-bench-publish holdings [ROWS]              the same with its tables loaded and signed (894,000 unless told)
//! counterfoil-bench-publish totals [ROWS]                an aggregate by signed nodes and by rows (525,600 unless told)
//! counterfoil-bench-publish year [READINGS]              a year of a series, a period a day (288 readings a day unless told)
//! counterfoil-bench-publish schemes [ROWS]               a signature a record, a value or a group (10,000 unless told)
//! ```
//! Every table begins with the machine, the date and the command. A figure is drawn where a FOLDER is given.
#![forbid(unsafe_code)]

mod breakdown;
mod figure10;
mod figure4;
mod figure6;
mod goals;
mod heights;
mod holdings;
mod join;
mod join_table;
mod load;
mod primitives;
mod random;
mod response;
mod scheme;
mod schemes;
mod sigcache;
mod summaries;
mod table4;
mod totals;
mod year;

use std::path::Path;
use std::process::ExitCode;

use counterfoil_bench_figures::machine;

type Failure = Box<dyn std::error::Error + Send + Sync>;

fn run(words: &[&str]) -> Result<(), Failure> {
    machine::print();
    if matches!(words, ["table3"] | ["figure10", ..]) {
        print_load();
    }
    match words {
        ["table1"] => heights::print(),
        ["table3"] => primitives::print()?,
        [part @ ("table4" | "figure7" | "goals" | "served"), rest @ ..] if rest.len() < 3 => {
            let records = rest.first().map_or(Ok(1_000_000), |records| records.parse())?;
            served(part, records, rest.get(1).map(Path::new))?;
        }
        ["figure4"] => figure4::print(None)?,
        ["figure4", folder] => figure4::print(Some(folder.as_ref()))?,
        ["figure6"] => figure6::print(20, None)?,
        ["figure6", levels] => figure6::print(levels.parse()?, None)?,
        ["figure6", levels, folder] => figure6::print(levels.parse()?, Some(folder.as_ref()))?,
        ["figure8"] => summaries::print(None)?,
        ["figure8", folder] => summaries::print(Some(folder.as_ref()))?,
        ["figure10"] => figure10::print(20, None)?,
        ["figure10", levels] => figure10::print(levels.parse()?, None)?,
        ["figure10", levels, folder] => figure10::print(levels.parse()?, Some(folder.as_ref()))?,
        ["figure11"] => join_table::print(None)?,
        ["figure11", folder] => join_table::print(Some(folder.as_ref()))?,
        ["holdings"] => holdings::print(894_000)?,
        ["holdings", rows] => holdings::print(rows.parse()?)?,
        ["totals"] => totals::print(525_600)?,
        ["totals", rows] => totals::print(rows.parse()?)?,
        ["year"] => year::print(288)?,
        ["year", readings] => year::print(readings.parse()?)?,
        ["schemes"] => schemes::print(10_000)?,
        ["schemes", rows] => schemes::print(rows.parse()?)?,
        _ => {
            return Err(
                "usage: counterfoil-bench-publish table1 | table3 | table4 [RECORDS] | figure7 [RECORDS [FOLDER]] | goals [RECORDS] | served [RECORDS [FOLDER]] | figure4 [FOLDER] | figure6 [LEVELS [FOLDER]] | figure8 [FOLDER] | figure10 [LEVELS [FOLDER]] | figure11 [FOLDER] | holdings [ROWS] | totals [ROWS] | year [READINGS A DAY] | schemes [ROWS]"
                    .into(),
            );
        }
    }
    Ok(())
}

/// How many threads of whomever wanted a core before: times on a machine that does other work are not its own.
fn print_load() {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load:    {}", load.split(' ').next().unwrap_or_default());
}

/// A part of what is measured of three schemes with one load, or all of it.
fn served(part: &str, records: u32, folder: Option<&Path>) -> Result<(), Failure> {
    let mut all = table4::All::load(records)?;
    print_load();
    if matches!(part, "table4" | "served") {
        table4::print(&mut all, records)?;
    }
    if matches!(part, "figure7" | "served") {
        response::print(&all, records, folder)?;
    }
    if matches!(part, "goals" | "served") {
        goals::print(&all, records)?;
    }
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
