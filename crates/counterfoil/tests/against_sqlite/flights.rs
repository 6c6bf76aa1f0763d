//! Questions about real flights. January by default; with `COUNTERFOIL_PROOF=full` and `COUNTERFOIL_FLIGHTS` naming
//! the complete file, all 336,776.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use counterfoil::Error;
use counterfoil::arrow::array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};

use super::cell::{Ours, Peer, Sqlite, difference};

/// Columns of a table: name and type, `i` whole number, `r` number with a fraction, `t` text.
pub struct Table {
    name: &'static str,
    file: &'static str,
    columns: &'static str,
}

pub const TABLES: [Table; 5] = [
    Table { name: "airlines", file: "airlines.csv", columns: "carrier t, name t" },
    Table {
        name: "airports",
        file: "airports.csv",
        columns: "faa t, name t, lat r, lon r, alt i, tz i, dst t, tzone t",
    },
    Table {
        name: "planes",
        file: "planes.csv",
        columns: "tailnum t, year i, type t, manufacturer t, model t, engines i, seats i, speed i, engine t",
    },
    Table {
        name: "weather",
        file: "weather.csv.gz",
        columns: "origin t, year i, month i, day i, hour i, temp r, dewp r, humid r, wind_dir i, wind_speed r, \
                  wind_gust r, precip r, pressure r, visib r, time_hour t",
    },
    Table {
        name: "flights",
        file: "flights-2013-01.csv.gz",
        columns: "year i, month i, day i, dep_time i, sched_dep_time i, dep_delay i, arr_time i, sched_arr_time i, \
                  arr_delay i, carrier t, flight i, tailnum t, origin t, dest t, air_time i, distance i, hour i, \
                  minute i, time_hour t",
    },
];

const BATCH_ROWS: usize = 8192;

fn file_of(table: &Table) -> PathBuf {
    let complete = std::env::var_os("COUNTERFOIL_FLIGHTS");
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    match complete {
        Some(path) if full && table.name == "flights" => path.into(),
        _ => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data/nycflights13").join(table.file),
    }
}

fn columns_of(table: &Table) -> Vec<(&'static str, char)> {
    let parse = |column: &'static str| {
        let (name, kind) = column.trim().split_once(' ').unwrap();
        (name, kind.chars().next().unwrap())
    };
    table.columns.split(',').map(parse).collect()
}

fn records(table: &Table) -> Vec<csv::StringRecord> {
    let path = file_of(table);
    let file = std::fs::File::open(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let reader: Box<dyn Read> = match path.extension() {
        Some(extension) if extension == "gz" => Box::new(flate2::read::GzDecoder::new(file)),
        _ => Box::new(file),
    };
    csv::Reader::from_reader(reader).into_records().map(Result::unwrap).collect()
}

/// A field; `NA` is nothing.
fn field(record: &csv::StringRecord, column: usize) -> Option<&str> {
    record.get(column).filter(|text| *text != "NA")
}

fn batch(columns: &[(&'static str, char)], rows: &[csv::StringRecord]) -> RecordBatch {
    let array = |(column, (name, kind)): (usize, &(&'static str, char))| {
        let fields = rows.iter().map(|row| field(row, column));
        let array: ArrayRef = match kind {
            'i' => Arc::new(fields.map(|text| text.map(|text| text.parse::<i64>().unwrap())).collect::<Int64Array>()),
            'r' => Arc::new(fields.map(|text| text.map(|text| text.parse::<f64>().unwrap())).collect::<Float64Array>()),
            _ => Arc::new(fields.collect::<StringArray>()),
        };
        (*name, array, true)
    };
    RecordBatch::try_from_iter_with_nullable(columns.iter().enumerate().map(array)).unwrap()
}

fn create(columns: &[(&'static str, char)], table: &str, kinds: [&str; 3]) -> String {
    let kind = |kind: char| {
        kinds[match kind {
            'i' => 0,
            'r' => 1,
            _ => 2,
        }]
    };
    let columns: Vec<String> = columns.iter().map(|(name, of)| format!("{name} {}", kind(*of))).collect();
    format!("CREATE TABLE {table} ({})", columns.join(", "))
}

fn load(ours: &mut Ours, sqlite: &mut Sqlite, table: &Table) -> usize {
    let columns = columns_of(table);
    ours.run(&create(&columns, table.name, ["BIGINT", "DOUBLE PRECISION", "TEXT"])).unwrap();
    sqlite.run(&create(&columns, table.name, ["INTEGER", "REAL", "TEXT"])).unwrap();
    load_rows(ours, sqlite, table)
}

/// Loads the rows into tables that are there; how many.
pub fn load_rows(ours: &mut Ours, sqlite: &mut Sqlite, table: &Table) -> usize {
    let columns = columns_of(table);
    let rows = records(table);
    let names: Vec<String> = columns.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut batches = rows.chunks(BATCH_ROWS).map(|rows| Ok::<_, Error>(batch(&columns, rows)));
    assert_eq!(ours.connection().load(table.name, &names, &mut batches).unwrap(), rows.len() as u64);

    let marks = vec!["?"; columns.len()].join(",");
    let transaction = sqlite.0.transaction().unwrap();
    {
        let mut insert = transaction.prepare(&format!("INSERT INTO {} VALUES ({marks})", table.name)).unwrap();
        for row in &rows {
            let values: Vec<Option<&str>> = (0..columns.len()).map(|column| field(row, column)).collect();
            insert.execute(rusqlite::params_from_iter(values)).unwrap();
        }
    }
    transaction.commit().unwrap();
    rows.len()
}

#[test]
fn questions_about_flights_are_answered_as_sqlite_answers_them() {
    let (mut ours, mut sqlite) = (Ours::new(), Sqlite::new());
    let rows: usize = TABLES.iter().map(|table| load(&mut ours, &mut sqlite, table)).sum();
    let questions = include_str!("queries.sql").lines().filter(|line| !line.starts_with("--") && !line.is_empty());
    let (mut asked, mut wrong) = (0, Vec::new());
    for question in questions {
        asked += 1;
        let theirs = sqlite.run(question).unwrap_or_else(|error| panic!("{question}: SQLite: {error}"));
        match ours.run(question) {
            Ok(ours) => wrong.extend(difference(&ours, &theirs).map(|what| format!("{question}\n  {what}"))),
            Err(error) => wrong.push(format!("{question}\n  {error}")),
        }
    }
    println!("{asked} questions about {rows} rows");
    assert!(asked >= 45);
    assert!(wrong.is_empty(), "{} of {asked}:\n{}", wrong.len(), wrong.join("\n"));
}
