//! Tables of numbers for series: ours beside the Chronos paper, and beside what one would pick instead, in one run.
//!
//! ```text
//! counterfoil-bench-series                        run, counts and stick, at the sizes of the default
//! counterfoil-bench-series run [OPTIONS]          the benchmark of section 4.2: Tables 3 to 6
//! counterfoil-bench-series report FILE ...        the same tables from results that were saved
//! counterfoil-bench-series counts [OPTIONS]       what is written: pages, bytes, distances
//! counterfoil-bench-series bytes [OPTIONS]        bytes a point on storage, of all systems
//! counterfoil-bench-series instructions [N ...]   instructions of an insert, with so many points there
//! counterfoil-bench-series stick                  Figures 2 and 3 on the simulated stick
//! counterfoil-bench-series plots FOLDER FILE ...  Figures 2, 3 and 8 to 12 as SVG, from results that were saved
//! ```
//! Every table begins with the machine, the date and the command. Nothing here asserts a time.
#![forbid(unsafe_code)]

mod counted;
mod counts;
mod influxdb;
mod instructions;
mod ours;
mod paper;
#[cfg(feature = "peers")]
mod peers;
mod plots;
mod query;
mod remote;
mod results;
mod run;
mod sizes;
mod stick;
mod store;
mod system;
mod tables;
mod workload;

use std::process::ExitCode;

use counterfoil_bench_figures::machine;
use results::Results;
use sizes::Sizes;

type Failure = Box<dyn std::error::Error>;

fn run(words: &[&str]) -> Result<(), Failure> {
    match words {
        [instructions::COUNT, points, folder] => return instructions::count(points.parse()?, folder.as_ref()),
        ["plots", folder, files @ ..] => {
            stick::draw(folder.as_ref())?;
            return if files.is_empty() { Ok(()) } else { plots::draw(&read(files)?, folder.as_ref()) };
        }
        _ => machine::print(),
    }
    println!();
    match words {
        [] => {
            measure(&Sizes::default())?;
            count(&Sizes { points: 1_000_000, ..Sizes::default() })?;
            stick::print()
        }
        ["run", options @ ..] => measure(&Sizes::parse(options)?),
        ["report", files @ ..] => {
            tables::print(&read(files)?);
            Ok(())
        }
        ["counts", options @ ..] => count(&Sizes::parse(options)?),
        ["bytes", options @ ..] => counts::bytes(&Sizes::parse(options)?),
        ["instructions", sizes @ ..] => instructions::print(sizes, ".".as_ref()),
        ["stick"] => stick::print(),
        _ => Err(format!(
            "usage: counterfoil-bench-series [run | counts | bytes {}] | report FILE ... | instructions [N ...] | stick \
             | plots FOLDER FILE ...",
            sizes::USAGE
        )
        .into()),
    }
}

fn measure(sizes: &Sizes) -> Result<(), Failure> {
    tables::print(&run::run(sizes)?);
    Ok(())
}

fn count(sizes: &Sizes) -> Result<(), Failure> {
    counts::writing(sizes)?;
    counts::pages()
}

/// All results of some files together.
fn read(files: &[&str]) -> Result<Results, Failure> {
    let all = files.iter().map(|file| Results::read(file.as_ref())).collect::<Result<Vec<_>, _>>()?;
    Ok(Results(all.into_iter().flat_map(|results| results.0).collect()))
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
