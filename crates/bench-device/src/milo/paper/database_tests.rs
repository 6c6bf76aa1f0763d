use super::*;
use crate::milo::data::{Data, T0};
use crate::milo::figure7::TABLES;
use crate::milo::table1;

const ROWS: u64 = 20_000;

fn compare(database: &Database, data: &Data, what: &str) {
    for query in table1::all(ROWS) {
        assert!(database.ask(&query) == data.answer(&query), "{} {what}", query.name);
    }
}

/// Reorganized, with fresh rows, with deletes and updates, and reorganized again: every query has the rows that looking at all
/// rows finds.
#[test]
fn queries_have_the_rows_that_a_plain_join_has() {
    let mut data = Data::loaded(ROWS);
    let mut database = Database::reorganized(&data);
    compare(&database, &data, "reorganized");
    for (table, known) in TABLES.iter().enumerate() {
        let fresh = known.rows(3000);
        data.add(table, fresh);
        (0..fresh).for_each(|_| database.insert(&data, table));
    }
    compare(&database, &data, "with fresh rows");
    let changes = data.changes(500);
    for change in &changes {
        database.change(change, &data);
        data.change(change);
    }
    assert!((0..data.rows(T0)).any(|row| !data.is_there(T0, row)));
    compare(&database, &data, "with deletes and updates");
    database.reorganize(&data, &changes);
    compare(&database, &data, "reorganized again");
}

/// 7.1: 64 indexes for selection, of which 29 in T0.
#[test]
fn there_are_as_many_indexes_as_the_paper_has() {
    let of = |table| crate::milo::data::selections(table).len();
    assert_eq!((of(T0), (0..TABLES.len()).map(of).sum::<usize>()), (29, 64));
}
