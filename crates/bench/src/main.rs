//! Tables of numbers: ours beside a peer's, measured in one run on one machine.
//!
//! ```text
//! counterfoil-bench first [FLIGHTS.csv]     the first database beside SQLite
//! counterfoil-bench series [POINTS]         a series table through the library's doors, beside SQLite
//! counterfoil-bench postgres [ROWS]         the door for clients of PostgreSQL, beside the library
//! counterfoil-bench python PYTHON [ROWS]    the Python package beside the library (scripts/bench-python)
//! counterfoil-bench linked [FLIGHTS.csv]    flights with all their foreign keys, beside SQLite
//! counterfoil-bench relation [ROWS]         MILo-DB's schema and queries, beside SQLite and SQLCipher
//! counterfoil-bench relation ROWS ours [QUERY...]
//!                                           ours alone, each query for two seconds: for a profiler
//! counterfoil-bench movies [ROWS [FOLDER]]  StealthDB's million movies over clouds, beside SQLite; plots go into the folder
//! ```
//! Every table begins with the machine, the date and the command. Nothing here asserts a time.
#![forbid(unsafe_code)]

mod first;
mod flights;
mod linked;
mod movies;
mod postgres;
mod python;
mod relation;
mod series;
mod stopwatch;

use std::process::ExitCode;

type Failure = Box<dyn std::error::Error>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        [] | ["first"] => first::run(std::env::var_os("COUNTERFOIL_FLIGHTS").map(Into::into)),
        ["first", flights] => first::run(Some(flights.into())),
        [first::WRITER, database, key] => first::write_until_killed(database.as_ref(), key.as_ref()),
        [first::SQLITE_WRITER, database] => first::sqlite_write_until_killed(database.as_ref()),
        ["linked"] => linked::run(std::env::var_os("COUNTERFOIL_FLIGHTS").map(Into::into)),
        ["linked", flights] => linked::run(Some(flights.into())),
        ["series"] => series::run(series::POINTS),
        ["series", points] => points.parse().map_err(Failure::from).and_then(series::run),
        ["postgres"] => postgres::run(postgres::ROWS),
        ["postgres", rows] => rows.parse().map_err(Failure::from).and_then(postgres::run),
        ["python", interpreter] => python::run(interpreter.as_ref(), python::ROWS),
        ["python", interpreter, rows] => {
            rows.parse().map_err(Failure::from).and_then(|rows| python::run(interpreter.as_ref(), rows))
        }
        ["relation"] => relation::run(relation::ROWS),
        ["relation", rows] => rows.parse().map_err(Failure::from).and_then(relation::run),
        ["relation", rows, "ours", ref queries @ ..] => {
            rows.parse().map_err(Failure::from).and_then(|rows| relation::ours_alone(rows, queries))
        }
        ["movies"] => movies::run(movies::ROWS, None),
        ["movies", rows] => rows.parse().map_err(Failure::from).and_then(|rows| movies::run(rows, None)),
        ["movies", rows, plots] => {
            rows.parse().map_err(Failure::from).and_then(|rows| movies::run(rows, Some(plots.as_ref())))
        }
        [movies::PROVIDER, folder] => movies::provide(folder.as_ref()),
        _ => Err(
            "usage: counterfoil-bench first [FLIGHTS.csv], linked [FLIGHTS.csv], series [POINTS], postgres [ROWS], python PYTHON [ROWS], \
                  relation [ROWS [ours [QUERY...]]], movies [ROWS [FOLDER]]"
                .into(),
        ),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
