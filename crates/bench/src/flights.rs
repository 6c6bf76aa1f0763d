//! The flights as SQLite takes them.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::Failure;

/// Columns of the flights: those that are text.
const TEXT: [&str; 4] = ["carrier", "tailnum", "origin", "dest"];

/// Imports the file into a new table in one transaction, as our import does; the number of rows.
pub fn import_into_sqlite(connection: &mut rusqlite::Connection, file: &Path) -> Result<u64, Failure> {
    let mut reader = csv::Reader::from_reader(open(file)?);
    let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let kind = |name: &String| match name.as_str() {
        "time_hour" => "TEXT",
        name if TEXT.contains(&name) => "TEXT",
        _ => "INTEGER",
    };
    let definitions: Vec<String> = columns.iter().map(|name| format!("{name} {}", kind(name))).collect();
    let transaction = connection.transaction()?;
    transaction.execute_batch(&format!("CREATE TABLE flights ({})", definitions.join(", ")))?;
    let rows = insert(&transaction, "flights", &mut reader)?;
    transaction.commit()?;
    Ok(rows)
}

/// Loads a file with a header into a table that has its columns; the number of rows.
pub fn load_into_sqlite(connection: &mut rusqlite::Connection, table: &str, file: &Path) -> Result<u64, Failure> {
    let mut reader = csv::Reader::from_reader(open(file)?);
    reader.headers()?;
    let transaction = connection.transaction()?;
    let rows = insert(&transaction, table, &mut reader)?;
    transaction.commit()?;
    Ok(rows)
}

fn insert(
    transaction: &rusqlite::Transaction<'_>,
    table: &str,
    reader: &mut csv::Reader<Box<dyn Read>>,
) -> Result<u64, Failure> {
    let columns: Vec<String> = reader.headers()?.iter().map(str::to_owned).collect();
    let marks = vec!["?"; columns.len()].join(",");
    let mut insert = transaction.prepare(&format!("INSERT INTO {table} ({}) VALUES ({marks})", columns.join(", ")))?;
    let mut record = csv::StringRecord::new();
    let mut rows = 0;
    while reader.read_record(&mut record)? {
        let fields = record.iter().map(|text| (text != "NA").then_some(text));
        insert.execute(rusqlite::params_from_iter(fields))?;
        rows += 1;
    }
    Ok(rows)
}

/// The file, unpacked if it is packed.
pub fn open(file: &Path) -> Result<Box<dyn Read>, Failure> {
    let plain = File::open(file).map_err(|error| format!("{}: {error}", file.display()))?;
    let packed = file.extension().is_some_and(|extension| extension == "gz");
    Ok(if packed { Box::new(flate2::read::GzDecoder::new(plain)) } else { Box::new(plain) })
}
