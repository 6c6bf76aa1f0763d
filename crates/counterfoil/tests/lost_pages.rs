//! One page of a database at rest is lost, each in turn: what stood in it is missing, and nothing else is.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;

use counterfoil::arrow::util::display::array_value_to_string;
use counterfoil::{Counter, Database, Error, Key, Options, Salvage};
use tempfile::TempDir;

const PAGE_BYTES: usize = 4096;
/// No page holds more rows than this.
const ROWS_OF_A_PAGE_MAX: usize = 300;

fn options(folder: &TempDir) -> Options {
    let key = Key::from_hex(&"0123456789abcdef".repeat(4)).expect("a key");
    Options::path(folder.path().join("db")).key(key).counter(Counter::File(folder.path().join("state")))
}

/// A database that was opened and closed a few times, with rows in pages and in tails, changed and deleted ones.
fn lived(folder: &TempDir) -> Result<(), Error> {
    let steps = [
        "CREATE TABLE large (a BIGINT PRIMARY KEY, b TEXT); CREATE TABLE small (a INT, b TEXT);
         INSERT INTO large SELECT v, md5(v::text) FROM generate_series(1, 3000) AS s(v)",
        "INSERT INTO small VALUES (1, 'one'), (2, 'two'); CREATE INDEX ON large (b)",
        "UPDATE large SET b = 'changed' WHERE a % 40 = 0; DELETE FROM large WHERE a % 50 = 7",
        "INSERT INTO small VALUES (3, 'three')",
    ];
    for (turn, step) in steps.iter().enumerate() {
        let options = options(folder);
        let database = if turn == 0 { Database::create(options)? } else { Database::open(options)? };
        database.connect()?.run(step, &[])?;
        database.records().put("name", format!("value {turn}").as_bytes())?;
        database.close()?;
    }
    Ok(())
}

/// What can be saved of a table, and whether something of it is told to be missing.
#[derive(Clone, PartialEq, Debug)]
struct Saved {
    rows: BTreeSet<String>,
    complete: bool,
}

fn saved(folder: &TempDir) -> Result<(Vec<Saved>, Vec<u8>), Error> {
    let salvage = Salvage::open(options(folder))?;
    let names: Vec<String> = salvage.tables().map(str::to_owned).collect();
    assert_eq!(names, ["large", "small"]);
    let mut tables = Vec::new();
    for index in 0..names.len() {
        let mut rows = BTreeSet::new();
        let missing = salvage.read::<Error>(index, &mut |batch| {
            for row in 0..batch.num_rows() {
                let values = batch.columns().iter().map(|column| array_value_to_string(column, row).expect("shows"));
                rows.insert(values.collect::<Vec<_>>().join("|"));
            }
            Ok(())
        })?;
        tables.push(Saved { rows, complete: missing.rows.is_empty() && missing.notes.is_empty() });
    }
    let value = salvage.records().first().map(|(_, value)| value.to_vec()).unwrap_or_default();
    Ok((tables, value))
}

#[test]
fn one_lost_page_does_not_hold_the_rest_hostage() {
    let folder = tempfile::tempdir().expect("a folder");
    lived(&folder).expect("lives");
    let (whole, record) = saved(&folder).expect("salvages");
    assert!(whole.iter().all(|table| table.complete), "nothing is missing of what is whole");
    assert_eq!((whole[0].rows.len(), whole[1].rows.len(), &*record), (2940, 3, &b"value 3"[..]));
    let path = folder.path().join("db");
    let bytes = std::fs::read(&path).expect("reads");
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("opens");
    let (mut incomplete, mut untouched) = (0, 0);
    let pages = bytes.chunks(PAGE_BYTES).enumerate().filter(|(_, page)| page.iter().any(|byte| *byte != 0));
    for (number, page) in pages {
        let at = (number * PAGE_BYTES) as u64;
        file.write_all_at(&[0xA5; PAGE_BYTES], at).expect("written");
        let (found, value) = saved(&folder).unwrap_or_else(|error| panic!("page {number}: {error}"));
        file.write_all_at(page, at).expect("written");
        assert_eq!(value, record, "page {number}");
        let damaged: Vec<usize> = (0..2).filter(|table| found[*table] != whole[*table]).collect();
        assert!(damaged.len() < 2, "page {number}: two tables suffer");
        untouched += u32::from(damaged.is_empty());
        for table in damaged {
            let (found, whole) = (&found[table], &whole[table]);
            assert!(!found.complete, "page {number}: what is missing is told");
            let lost = whole.rows.difference(&found.rows).count();
            assert!(lost <= ROWS_OF_A_PAGE_MAX, "page {number}: {lost} rows are lost");
            incomplete += 1;
        }
    }
    assert!(incomplete > 20 && untouched > 20, "{incomplete} pages cost rows, {untouched} none");
}
