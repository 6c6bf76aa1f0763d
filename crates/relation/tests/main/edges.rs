//! What is larger than usual: rows of a thousand columns, many times a page; and a medium that ends while tables are
//! reorganized.

use std::collections::BTreeMap;

use counterfoil_relation::{
    Cause, Error, KeyRange, Lack, NewColumn, NewIndex, NewKey, NewTable, RowId, Type, Vacuum, Value,
};

use crate::bench::{Bench, int, text};

const COLUMNS: usize = 1000;

/// A row of a thousand columns: its image is sixteen pages and more.
fn wide_row(id: i32, version: i32) -> Vec<Value> {
    let value = |place: usize| match place {
        0 => int(id),
        place if place % 10 == 3 => text(&format!("text {version} of {place}, which has no room in the image")),
        place if place % 7 == 0 => Value::Null,
        place => int(id * version + place as i32),
    };
    (0..COLUMNS).map(value).collect()
}

#[test]
fn rows_of_a_thousand_columns_are_many_pages_long() {
    let mut bench = Bench::with_segments(1, 4, 40_000);
    let kind = |place: usize| if place % 10 == 3 { Type::Text } else { Type::Integer };
    let columns = (0..COLUMNS).map(|place| NewColumn::new(format!("c{place}"), kind(place)));
    bench.create(&NewTable {
        name: "wide".into(),
        columns: columns.collect(),
        primary_key: Some(NewKey { name: None, columns: vec!["c0".into()] }),
        ..NewTable::default()
    });
    let table = bench.table("wide");
    for column in ["c1", "c13", "c999"] {
        let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
        bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
    }
    for id in 0..20 {
        bench.insert("wide", &[wide_row(id, 1)]).unwrap();
    }
    bench.update("wide", &[RowId(3), RowId(17)], &[wide_row(3, 2), wide_row(17, 2)]).unwrap();
    bench.delete("wide", &[RowId(5)]).unwrap();
    let expected: Vec<_> = (0..20)
        .filter(|id| *id != 5)
        .map(|id| (RowId(id as u64), wide_row(id, if id == 3 || id == 17 { 2 } else { 1 })))
        .collect();
    assert_eq!(bench.rows("wide"), expected);
    bench.statement(|relations, writer| relations.vacuum(writer, None)).unwrap();
    bench.reopen();
    assert_eq!(bench.rows("wide"), expected);
    bench.verify();
    let (table, view) = (bench.table("wide"), bench.writer.pending());
    let last = table.indexes.last().unwrap().id;
    let found = bench.relations.lookup(&view, &table, last, &KeyRange::equal(vec![int(17 * 2 + 999)]), 9).unwrap();
    assert_eq!(found, Some(vec![RowId(17)]));
}

/// Numbers with notes, and what they are.
struct Notes {
    bench: Bench,
    rows: BTreeMap<RowId, Vec<Value>>,
}

impl Notes {
    fn new(blocks: u64) -> Notes {
        let mut bench = Bench::with_blocks(1, 200, 20_000, blocks);
        bench.create(&NewTable {
            name: "t".into(),
            columns: vec![
                NewColumn::new("id", Type::Integer),
                NewColumn::new("number", Type::Integer),
                NewColumn::new("note", Type::Text),
            ],
            primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
            ..NewTable::default()
        });
        let table = bench.table("t");
        let index = NewIndex { columns: vec!["number".into()], ..NewIndex::default() };
        bench.statement(|relations, writer| relations.create_index(writer, &table, &index)).unwrap();
        Notes { bench, rows: BTreeMap::new() }
    }

    fn row(id: i32, version: i32) -> Vec<Value> {
        vec![int(id), int(id * 31 % 1009 + version), text(&format!("note {version} of {id} is longer than its image"))]
    }

    /// Adds a hundred rows; whether there was room.
    fn add(&mut self) -> Result<(), Error> {
        let first = self.rows.keys().next_back().map_or(0, |row| row.0 as i32 + 1);
        let rows: Vec<_> = (first..first + 100).map(|id| Self::row(id, 0)).collect();
        let at = self.bench.insert("t", &rows)?;
        self.rows.extend(rows.into_iter().enumerate().map(|(place, row)| (RowId(at.0 + place as u64), row)));
        Ok(())
    }

    /// Updates every third row, some at a time, until there is no room.
    fn wear(&mut self, version: i32) -> Result<(), Error> {
        let ids: Vec<RowId> = self.rows.keys().copied().filter(|row| row.0 % 3 == 0).collect();
        for ids in ids.chunks(50) {
            let rows: Vec<_> = ids.iter().map(|row| Self::row(row.0 as i32, version)).collect();
            self.bench.update("t", ids, &rows)?;
            self.rows.extend(ids.iter().copied().zip(rows));
        }
        Ok(())
    }

    fn delete(&mut self, some: impl Fn(&RowId) -> bool) {
        let gone: Vec<RowId> = self.rows.keys().copied().filter(|row| some(row)).collect();
        for gone in gone.chunks(50) {
            // What is kept for deletions is theirs alone, and the tidying's that follows them.
            self.freeing(|bench| bench.delete("t", gone)).unwrap();
            while self.freeing(|bench| bench.statement(|relations, writer| relations.maintain(writer))).unwrap() {}
        }
        self.rows.retain(|row, _| !some(row));
    }

    fn freeing<T>(&mut self, body: impl FnOnce(&mut Bench) -> Result<T, Error>) -> Result<T, Error> {
        self.bench.writer.begin_to_free().unwrap();
        let done = body(&mut self.bench);
        self.bench.commit();
        done
    }

    /// Steps of VACUUM until it is done or has no room, and how many it took.
    fn vacuum(&mut self) -> (u32, Result<(), Error>) {
        let mut vacuum = Vacuum::of(self.bench.table("t").id);
        for steps in 0.. {
            match self.bench.statement(|relations, writer| relations.vacuum_step(writer, &mut vacuum)) {
                Ok(true) => self.check(),
                Ok(false) => return (steps, Ok(())),
                Err(error) => return (steps, Err(error)),
            }
        }
        unreachable!("the steps of VACUUM have an end")
    }

    /// Rows, index and all else are as they should be, now and for whoever opens the medium next.
    fn check(&mut self) {
        assert!(self.bench.rows("t").into_iter().eq(self.rows.clone()));
        self.bench.verify();
        let (table, view) = (self.bench.table("t"), self.bench.writer.pending());
        let index = table.indexes.iter().find(|index| !index.unique).unwrap().id;
        for number in [7, 500] {
            let range = KeyRange::equal(vec![int(number)]);
            let mut found = self.bench.relations.lookup(&view, &table, index, &range, 10_000).unwrap().unwrap();
            found.sort_unstable();
            let there = self.rows.iter().filter(|(_, row)| row[1] == int(number)).map(|(row, _)| *row);
            assert!(found.into_iter().eq(there));
        }
    }

    /// The room that VACUUM would lack in a commit that frees, as it is told.
    fn lacks(&mut self) -> Option<Lack> {
        let table = self.bench.table("t");
        let room = self.bench.writer.report().room;
        let view = self.bench.writer.pending();
        self.bench.relations.figures(&view, &table).unwrap().lacks(room)
    }

    /// Steps of VACUUM, each in a commit that frees, until it is done or has no room.
    fn vacuum_to_free(&mut self) -> Result<(), Error> {
        let mut vacuum = Vacuum::of(self.bench.table("t").id);
        while self.freeing(|bench| bench.statement(|relations, writer| relations.vacuum_step(writer, &mut vacuum)))? {}
        Ok(())
    }
}

fn is_full(result: &Result<(), Error>) -> bool {
    matches!(result.as_ref().map_err(Error::cause), Err(Cause::Log { source, .. }) if source.is_full())
}

#[test]
fn a_medium_that_ends_while_tables_are_reorganized_loses_nothing() {
    let mut notes = Notes::new(1500);
    for _ in 0..20 {
        notes.add().unwrap();
    }
    // Old images until no more fit.
    let worn = (1..100).map(|version| notes.wear(version)).find(Result::is_err).unwrap();
    assert!(is_full(&worn), "{worn:?}");
    notes.check();
    let (steps, vacuumed) = notes.vacuum();
    assert!(is_full(&vacuumed), "VACUUM ended after {steps} steps: {vacuumed:?}");
    notes.check();
    notes.bench.reopen();
    notes.check();
    // Segments of which no row is left need no room to go, and make some for the others.
    notes.delete(|row| row.0 < 1200);
    let (_, vacuumed) = notes.vacuum();
    vacuumed.unwrap();
    notes.check();
    for _ in 0..3 {
        notes.add().unwrap();
    }
    notes.check();
}

/// Ten of the 750 extents of this medium: what is told is the most that may be needed, since extents that others share come back later
/// than is sure.
const CLOSE_BYTES: u64 = 10 * 8 * 512;

#[test]
fn a_reorganization_finds_the_room_that_is_told_before() {
    let mut notes = Notes::new(1500);
    let (mut refused, mut done) = (0, 0);
    for round in 0..40 {
        // As full as it gets, in rows or in old images of them, or as what was let go of left it.
        if round % 4 != 3 {
            while notes.add().is_ok() && refused % 2 == 0 {}
            let _ = (1..4).try_for_each(|version| notes.wear(version));
        }
        let lack = notes.lacks();
        let vacuumed = notes.vacuum_to_free();
        notes.check();
        match lack {
            Some(Lack { needed_bytes, left_bytes }) => {
                let is_close = needed_bytes - left_bytes <= CLOSE_BYTES;
                assert!(is_full(&vacuumed) || is_close, "{lack:?} told, and then {vacuumed:?}");
                refused += u32::from(is_full(&vacuumed));
                let least = notes.rows.keys().next().map_or(0, |row| row.0);
                notes.delete(|row| row.0 < least + 300);
            }
            None => {
                vacuumed.unwrap();
                done += 1;
            }
        }
    }
    assert!(refused > 3 && done > 3, "{refused} refused, {done} done");
}
