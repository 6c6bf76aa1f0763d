//! Figure 9: from how many rows on it pays to have clouds add up what one would else fetch, over a line of 1 GBit/s and others.
//!
//! An average is computed twice: of a column that clouds add up, and of one that is fetched and opened here. Providers run on this machine, so
//! what a line adds is computed from the bytes that they answered with.

use counterfoil::arrow::array::RecordBatch;
use counterfoil::{Connection, Database};

use super::{Cloud, RUNS, declare, load};
use crate::Failure;
use crate::stopwatch::{median, seconds};

const ROWS: [usize; 7] = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000];
/// The paper's line, and a home's, in bits a second.
pub const LINES: [(&str, f64); 2] = [("1 GBit/s", 1e9), ("50 MBit/s", 5e7)];

/// An average of so many rows.
pub struct Spot {
    pub rows: usize,
    /// Seconds and bytes where clouds add up.
    pub added: (f64, f64),
    /// Where values are fetched.
    pub fetched: (f64, f64),
}

/// Seconds with a line of so many bits a second.
pub fn over(line: f64, (seconds, bytes): (f64, f64)) -> f64 {
    seconds + 8.0 * bytes / line
}

pub fn measure(database: &Database, clouds: &[Cloud], batches: &[RecordBatch]) -> Result<Vec<Spot>, Failure> {
    let mut connection = database.connect()?;
    declare(&mut connection, clouds)?;
    let mut spots = Vec::new();
    let whole: usize = batches.iter().map(RecordBatch::num_rows).sum();
    for rows in ROWS.into_iter().filter(|rows| *rows <= whole) {
        let mut average = |uses: &str| -> Result<(f64, f64), Failure> {
            connection.run(
                &format!(
                    "CREATE TABLE movies (id BIGINT NOT NULL{uses}, name TEXT) \
                     WITH (engine = 'dispersed', clouds = 'a, b, c', key_backup = 'none')"
                ),
                &[],
            )?;
            load(&mut connection, &first(batches, rows))?;
            let sql = "SELECT avg(id) FROM movies";
            let taken = median(RUNS, || Ok(seconds(|| super::ask(&mut connection, sql))?.0))?;
            let bytes = bytes(&mut connection, sql)?;
            connection.run("DROP TABLE movies", &[])?;
            Ok((taken, bytes))
        };
        spots.push(Spot { rows, added: average(" FOR (sum)")?, fetched: average("")? });
    }
    Ok(spots)
}

/// The first of some rows.
fn first(batches: &[RecordBatch], rows: usize) -> Vec<RecordBatch> {
    let mut left = rows;
    let cut = batches.iter().map(|batch| {
        let own = batch.num_rows().min(left);
        left -= own;
        batch.slice(0, own)
    });
    cut.filter(|batch| batch.num_rows() > 0).collect()
}

/// Bytes that clouds answered a query with, as EXPLAIN ANALYZE counts them.
fn bytes(connection: &mut Connection, sql: &str) -> Result<f64, Failure> {
    let mut told = String::new();
    for batch in connection.query(&format!("EXPLAIN ANALYZE {sql}"), &[])? {
        told += &format!("{:?}", batch?);
    }
    let counted: f64 = told.split("_bytes=").skip(1).map(number).sum();
    if counted > 0.0 { Ok(counted) } else { Err(format!("no bytes are told of: {told}").into()) }
}

/// A number as plans tell it: `12`, `99.0 B`, `3.4 KB`, and of what is no size `3.4 K`.
fn number(text: &str) -> f64 {
    let end = text.find(|of: char| !of.is_ascii_digit() && of != '.').unwrap_or(text.len());
    let unit: String = text[end..].trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    let times = match unit.as_str() {
        "KB" => 1024.0,
        "MB" => 1024.0 * 1024.0,
        "GB" => 1024.0 * 1024.0 * 1024.0,
        "K" => 1e3,
        "M" => 1e6,
        _ => 1.0,
    };
    text[..end].parse::<f64>().unwrap_or(0.0) * times
}

pub fn print(spots: &[Spot]) {
    println!("\nSELECT avg(id), milliseconds: added up by clouds | fetched and added up here");
    println!("{:>10} {:>24} {}", "rows", "no line", LINES.map(|(name, _)| format!("{name:>24}")).concat());
    for Spot { rows, added, fetched } in spots {
        let pair = |line: f64| format!("{:>11.2} |{:>11.2}", 1e3 * over(line, *added), 1e3 * over(line, *fetched));
        println!("{rows:>10} {} {}", pair(f64::INFINITY), LINES.map(|(_, line)| pair(line)).join(" "));
    }
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn numbers_of_plans_are_read() {
        for (text, expected) in [
            ("12, a", 12.0),
            ("99.0 B, c", 99.0),
            ("3.5 KB, b", 3584.0),
            ("3.4 K, b", 3400.0),
            ("2.0 MB]", 2_097_152.0),
            ("7", 7.0),
            ("", 0.0),
        ] {
            assert_eq!(number(text), expected, "{text}");
        }
    }
}
