//! Tables of numbers beside H. Pang, J. Zhang, K. Mouratidis, *Scalable Verification for Outsourced Dynamic Databases*,
//! VLDB 2009.
//!
//! ```text
//! counterfoil-bench-publish table1                       heights of index trees
//! counterfoil-bench-publish table3                       what signing, adding up, checking and hashing take
//! counterfoil-bench-publish table4 [RECORDS]             the EMB- tree one transaction at a time (1,000,000 unless told)
//! counterfoil-bench-publish figure6 [LEVELS [FOLDER]]    the cache of signatures over 2^LEVELS records (20 unless told)
//! counterfoil-bench-publish figure11 [FOLDER]            proofs of joins: boundary values against filters
//! counterfoil-bench-publish totals [ROWS]                an aggregate by signed nodes and by rows (525,600 unless told)
//! ```
//! Every table begins with the machine, the date and the command. A figure is drawn where a FOLDER is given.
#![forbid(unsafe_code)]

mod emb_table;
mod embedded;
#[path = "../../bench-device/src/figure.rs"]
#[allow(dead_code, reason = "not every figure has curves of all looks")]
mod figure;
mod figure6;
mod heights;
mod join;
mod join_table;
#[path = "../../bench/src/machine.rs"]
mod machine;
mod primitives;
mod random;
mod sigcache;
mod totals;

use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

fn run(words: &[&str]) -> Result<(), Failure> {
    machine::print();
    match words {
        ["table1"] => heights::print(),
        ["table3"] => primitives::print()?,
        ["table4"] => emb_table::print(1_000_000)?,
        ["table4", records] => emb_table::print(records.parse()?)?,
        ["figure6"] => figure6::print(20, None)?,
        ["figure6", levels] => figure6::print(levels.parse()?, None)?,
        ["figure6", levels, folder] => figure6::print(levels.parse()?, Some(folder.as_ref()))?,
        ["figure11"] => join_table::print(None)?,
        ["figure11", folder] => join_table::print(Some(folder.as_ref()))?,
        ["totals"] => totals::print(525_600)?,
        ["totals", rows] => totals::print(rows.parse()?)?,
        _ => {
            return Err(
                "usage: counterfoil-bench-publish table1 | table3 | table4 [RECORDS] | figure6 [LEVELS [FOLDER]] | figure11 [FOLDER] | totals [ROWS]"
                    .into(),
            );
        }
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
