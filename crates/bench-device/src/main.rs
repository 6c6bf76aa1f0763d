//! Tables of numbers for devices: the store that stands alone beside the GnatDb paper, relations beside the MILo-DB paper, and both
//! papers' designs rebuilt.
//!
//! ```text
//! counterfoil-bench-device                   all tables, wear over 20,000 commits
//! counterfoil-bench-device drm               the DRM benchmark: 1,000 transactions for each fill and part
//! counterfoil-bench-device profile           where our own costs come from
//! counterfoil-bench-device prices            single operations, and memory
//! counterfoil-bench-device wear [COMMITS]    how evenly blocks wear (1,000,000 commits unless told)
//! counterfoil-bench-device milo [ROWS [FOLDER]]          MILo-DB: inserts, 18 queries, reorganization (1,000,000 rows in T0 unless told)
//! counterfoil-bench-device milo-held [ROWS]              the same with all that ours keeps in 64 KB
//! counterfoil-bench-device milo-maintained [ROWS]        the bounded steps of a reorganization alone
//! counterfoil-bench-device milo-indexes [ROWS [FOLDER]]  MILo-DB's four index schemes and ours (300,000 rows unless told)
//! counterfoil-bench-device plots FOLDER      the curves of both papers, as SVG; those of MILo-DB alone where a FOLDER is given above
//! ```
//! Every table begins with the machine, the date and the command. Times are of the counted clock: operations on a simulated
//! part at the prices that the papers name. They are the same on every machine, and nothing here asserts one.
#![forbid(unsafe_code)]

mod board;
mod case;
mod drm;
mod drm_table;
mod milo;
mod observed;
mod ours;
mod plots;
mod prices_table;
mod profile;
mod subject;
mod wear;
mod work;
mod yardstick;

use std::process::ExitCode;

use counterfoil_bench_figures::machine;

type Failure = Box<dyn std::error::Error>;

/// Commits after which wear is told where nobody asks for more: one takes some 30 microseconds.
const COMMITS: u64 = 20_000;
const COMMITS_IN_FULL: u64 = 1_000_000;

fn run(words: &[&str]) -> Result<(), Failure> {
    if let ["plots", folder] = words {
        return plots::draw(folder.as_ref());
    }
    machine::print();
    match words {
        [] => {
            drm_table::print();
            profile::print();
            prices_table::print();
            wear::print(COMMITS);
            milo::print(milo::ROWS, milo::Held::Answers, None)?;
        }
        ["drm"] => drm_table::print(),
        ["profile"] => profile::print(),
        ["prices"] => prices_table::print(),
        ["wear"] => wear::print(COMMITS_IN_FULL),
        ["wear", commits] => wear::print(commits.parse()?),
        ["milo-indexes"] => milo::indexes(milo::INDEXED_ROWS_IN_FULL, None)?,
        ["milo-indexes", rows] => milo::indexes(rows.parse()?, None)?,
        ["milo-indexes", rows, folder] => milo::indexes(rows.parse()?, Some(folder.as_ref()))?,
        ["milo"] => milo::print(milo::ROWS_IN_FULL, milo::Held::Answers, None)?,
        ["milo", rows] => milo::print(rows.parse()?, milo::Held::Answers, None)?,
        ["milo", rows, folder] => milo::print(rows.parse()?, milo::Held::Answers, Some(folder.as_ref()))?,
        ["milo-held"] => milo::print(milo::ROWS_IN_FULL, milo::Held::Everything, None)?,
        ["milo-held", rows] => milo::print(rows.parse()?, milo::Held::Everything, None)?,
        ["milo-maintained"] => milo::maintained(milo::ROWS_IN_FULL)?,
        ["milo-maintained", rows] => milo::maintained(rows.parse()?)?,
        _ => {
            return Err("usage: counterfoil-bench-device [drm | profile | prices | wear [COMMITS] | milo [ROWS [FOLDER]] | milo-held [ROWS] | milo-maintained [ROWS] | milo-indexes [ROWS [FOLDER]] | plots FOLDER]"
                .into());
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
