//! The database of the MILo-DB paper's Figure 7 and the 18 queries of its Table 1: the same rows as in SQLite, whoever wrote them and
//! whoever asks, with 64 KB or with 64 MB, and however far a reorganization has come.

#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../../../bench/src/relation/figure7.rs"]
mod figure7;
#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../../../bench/src/relation/queries.rs"]
mod queries;
#[path = "../../../bench/src/relation/schema.rs"]
mod schema;
#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../../../bench/src/relation/table1.rs"]
mod table1;
mod wear;

use std::sync::Arc;

use counterfoil::arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use counterfoil::{Counter, Error, Key, Options, TableUse};
use tempfile::TempDir;

use super::cell::{Ours, Peer, Rows, Sqlite, difference, sorted, steps};
use figure7::{INDEXED, Row, TABLES, Table};

/// Rows of T0. With so many each of the 18 queries has a row, which is chance for Multi1, of one row of T0 in 10,000: with 17,000 or
/// 20,000 it has none. And they are more than are kept fresh, so that a reorganization renews T0 and merges its indexes one by one.
const ROWS: u64 = 18_000;
const ROWS_IN_FULL: u64 = 100_000;
/// Bytes of memory with which it is written, and asked.
const MEMORIES: [u64; 2] = [64 << 10, 64 << 20];
/// Rows that the library takes at a time.
const BATCH_ROWS: u64 = 4096;

/// The database on both sides.
struct Pair {
    folder: TempDir,
    /// Memory of whoever writes.
    ram_bytes: u64,
    /// Rows of T0 as it was loaded.
    rows: u64,
    sqlite: Sqlite,
}

impl Pair {
    /// All tables, their indexes and foreign keys. SQLite makes no index for a reference by itself.
    fn loaded(rows: u64, ram_bytes: u64) -> Pair {
        let pair = Pair { folder: tempfile::tempdir().unwrap(), ram_bytes, rows, sqlite: Sqlite::new() };
        let mut ours = Ours::with(pair.options(ram_bytes));
        for table in &TABLES {
            // A row goes with those that reference it, as in the paper.
            let create = table.create().replace("(id)", "(id) ON DELETE CASCADE");
            ours.run(&create).unwrap();
            pair.sqlite.0.execute_batch(&create).unwrap();
            load_ours(&mut ours, table, rows);
            load_sqlite(&pair.sqlite, table, rows);
        }
        TABLES.iter().flat_map(|table| table.indexes(false)).for_each(|index| drop(ours.run(&index).unwrap()));
        TABLES.iter().flat_map(|table| table.indexes(true)).for_each(|index| {
            pair.sqlite.0.execute_batch(&index).unwrap();
        });
        pair
    }

    /// Nothing is reorganized but by those who ask for it, so that it is known how far it has come.
    fn options(&self, ram_bytes: u64) -> Options {
        let folder = self.folder.path();
        let options = Options::path(folder.join("db")).key(Key::bytes(&[7; 32])).ram(ram_bytes).reorganize(false);
        options.counter(Counter::File(folder.join("state")))
    }

    fn opened(&self, ram_bytes: u64) -> Ours {
        Ours::open(self.options(ram_bytes))
    }

    /// Asks SQLite and ours, opened with little memory and with more. What SQLite says.
    fn answers(&mut self, when: &str) -> Vec<Rows> {
        let queries = table1::all(self.rows);
        let asked: Vec<String> = queries.iter().map(queries::sql).collect();
        let theirs: Vec<Rows> = asked.iter().map(|sql| sorted(self.sqlite.run(sql).unwrap())).collect();
        for memory in MEMORIES {
            let mut ours = self.opened(memory);
            for ((query, sql), theirs) in queries.iter().zip(&asked).zip(&theirs) {
                let when = format!("{when} by {} bytes, {} in {memory}", self.ram_bytes, query.name);
                let rows = ours.run(sql).unwrap_or_else(|said| panic!("{when}: {said}\n{sql}"));
                if let Some(what) = difference(&sorted(rows), theirs) {
                    panic!("{when}: {what}\n{sql}");
                }
            }
        }
        for (query, rows) in queries.iter().zip(&theirs) {
            assert!(!rows.is_empty(), "{} has no row {when}", query.name);
        }
        theirs
    }

    /// Updates and deletes, the same on both sides.
    fn wear(&mut self) {
        let mut ours = self.opened(self.ram_bytes);
        for change in wear::all(self.rows) {
            ours.run(&change).unwrap_or_else(|said| panic!("{change}: {said}"));
            self.sqlite.run(&change).unwrap();
        }
    }

    /// Reorganizes, stopped every few steps, until T0 is as meant. What is done is said.
    fn stop(&self, is_meant: fn(&TableUse) -> bool) -> String {
        let mut ours = self.opened(self.ram_bytes);
        let of = steps(&ours.kept());
        for asks in 4.. {
            assert!(!ours.vacuum(asks), "it ended before T0 was as meant");
            let kept = ours.kept();
            let (_, t0) = kept.iter().find(|(name, _)| name == "t0").unwrap();
            if is_meant(t0) {
                let (left, unmerged) = (steps(&kept), t0.steps.len());
                assert!(0 < left && left < of, "{left} of {of} steps are left");
                return format!("reorganized but for {left} of {of} steps, {unmerged} of them of T0");
            }
        }
        unreachable!("asked without end")
    }
}

/// Whether its rows are written anew and have indexes with sorted runs, of which some are merged and some are not.
fn is_half_merged(table: &TableUse) -> bool {
    let (indexes, unmerged) = (&table.indexes, table.steps.len());
    let is_renewed = table.updates + table.deleted == 0;
    is_renewed && 0 < unmerged && unmerged < indexes.len() && indexes.iter().all(|index| !index.runs.is_empty())
}

fn load_ours(ours: &mut Ours, table: &Table, rows: u64) {
    let count = table.rows(rows);
    let mut batches = (0..count).step_by(BATCH_ROWS as usize).map(|first| {
        let rows: Vec<Row> = (first..count.min(first + BATCH_ROWS)).map(|id| table.row(id, rows)).collect();
        Ok::<_, Error>(batch(table, &rows))
    });
    assert_eq!(ours.connection().load(table.name, &table.columns(), &mut batches).unwrap(), count);
}

/// Rows as the library takes them.
fn batch(table: &Table, rows: &[Row]) -> RecordBatch {
    let numbers = |of: &dyn Fn(&Row) -> i64| Arc::new(Int64Array::from_iter_values(rows.iter().map(of))) as ArrayRef;
    let texts = |of: &dyn Fn(&Row) -> String| Arc::new(StringArray::from_iter_values(rows.iter().map(of))) as ArrayRef;
    let mut columns = vec![numbers(&|row| row.id)];
    columns.extend((0..table.references.len()).map(|place| numbers(&|row| row.references[place])));
    columns.extend((0..INDEXED.len()).map(|place| texts(&|row| row.values[place].clone())));
    columns.push(texts(&|row| row.a1.clone()));
    RecordBatch::try_from_iter(table.columns().iter().zip(columns)).unwrap()
}

fn load_sqlite(sqlite: &Sqlite, table: &Table, rows: u64) {
    let marks = vec!["?"; table.columns().len()].join(", ");
    sqlite.0.execute_batch("BEGIN").unwrap();
    let mut insert = sqlite.0.prepare(&format!("INSERT INTO {} VALUES ({marks})", table.name)).unwrap();
    for row in (0..table.rows(rows)).map(|id| table.row(id, rows)) {
        let numbers = std::iter::once(row.id).chain(row.references).map(rusqlite::types::Value::from);
        let texts = row.values.into_iter().chain([row.a1]).map(rusqlite::types::Value::from);
        insert.execute(rusqlite::params_from_iter(numbers.chain(texts))).unwrap();
    }
    sqlite.0.execute_batch("COMMIT").unwrap();
}

/// A reorganization is stopped half way, among the indexes of T0 and when it has done with it, and then comes to its end.
fn reorganize(pair: &mut Pair) {
    for is_meant in [is_half_merged, |t0: &TableUse| t0.steps.is_empty()] {
        let when = pair.stop(is_meant);
        println!("{} bytes: {when}", pair.ram_bytes);
        pair.answers(&when);
    }
    let mut ours = pair.opened(pair.ram_bytes);
    assert!(ours.vacuum(usize::MAX));
    assert_eq!(steps(&ours.kept()), 0);
    drop(ours);
    pair.answers("reorganized");
}

#[test]
fn the_18_queries_of_the_paper_are_answered_as_sqlite_answers_them() {
    let full = std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full");
    for memory in MEMORIES {
        let mut pair = Pair::loaded(if full { ROWS_IN_FULL } else { ROWS }, memory);
        let loaded = pair.answers("loaded");
        assert_eq!(loaded.len(), 18);
        pair.wear();
        let changed = pair.answers("changed");
        let same = loaded.iter().zip(&changed).filter(|(before, after)| before == after).count();
        assert_eq!(same, 0, "queries whose answers no change changed");
        reorganize(&mut pair);
    }
}
