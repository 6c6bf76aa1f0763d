//! A table against a sorted map, through everything that can happen to it. Old snapshots go on seeing what they saw.

use std::collections::BTreeMap;

use counterfoil_log::Snapshot;
use counterfoil_relation::{
    Cause, Error, IndexOrigin, KeyBound, KeyRange, NewColumn, NewIndex, NewKey, NewTable, RowId, Rule, Table, Type,
    Vacuum, Value,
};

use crate::bench::{Bench, batch, int, rounds, rows_of, tables};
use crate::counts::{count, tests_of};

type Rows = BTreeMap<RowId, Vec<Value>>;

/// What the table should be, and its columns by name.
#[derive(Clone)]
struct Model {
    rows: Rows,
    columns: Vec<String>,
}

/// id (primary key), name (unique), number (indexed), note (long): then whatever ALTER brings.
fn new_table() -> NewTable {
    NewTable {
        name: "t".into(),
        columns: vec![
            NewColumn::new("id", Type::Integer),
            NewColumn::new("name", Type::Text),
            NewColumn::new("number", Type::BigInt),
            NewColumn::new("note", Type::Text),
        ],
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        uniques: vec![NewKey { name: None, columns: vec!["name".into(), "number".into()] }],
        ..NewTable::default()
    }
}

fn random_value(bench: &mut Bench, column: &str) -> Value {
    match column {
        "id" => int(bench.dice(400) as i32),
        _ if bench.dice(6) == 0 => Value::Null,
        "name" => {
            let letter = char::from(b'a' + bench.dice(20) as u8);
            let long = [1, 1, 5, 12, 13, 40, 600, 700][bench.dice(8) as usize];
            Value::Text(letter.to_string().repeat(long))
        }
        "number" => Value::BigInt(bench.dice(5) as i64 - 2),
        _ => {
            let long = [0, 1, 12, 13, 100, 3000][bench.dice(6) as usize];
            Value::Text("n".repeat(long + bench.dice(3) as usize))
        }
    }
}

fn random_row(bench: &mut Bench, columns: &[String]) -> Vec<Value> {
    columns.iter().map(|column| random_value(bench, column)).collect()
}

impl Model {
    /// Whether two rows would share a unique key.
    fn clashes(&self, rows: &Rows) -> bool {
        let place = |name: &str| self.columns.iter().position(|column| column == name);
        let keys = [vec![place("id")], vec![place("name"), place("number")]];
        keys.iter().any(|key| {
            let Some(key) = key.iter().copied().collect::<Option<Vec<_>>>() else { return false };
            let mut seen: Vec<Vec<&Value>> =
                rows.values().map(|row| key.iter().map(|place| &row[*place]).collect()).collect();
            seen.retain(|key: &Vec<&Value>| key.iter().all(|value| **value != Value::Null));
            (0..seen.len()).any(|one| seen[one + 1..].contains(&seen[one]))
        })
    }

    fn insert(&mut self, bench: &mut Bench) {
        let count = if bench.dice(10) == 0 { 60 } else { bench.dice(4) };
        let new: Vec<_> = (0..count).map(|_| random_row(bench, &self.columns)).collect();
        let result = bench.insert("t", &new);
        let mut rows = self.rows.clone();
        // The numbers it gets if it is allowed; a refused insert uses none up.
        let fake = u64::MAX / 2;
        rows.extend(new.iter().cloned().enumerate().map(|(place, row)| (RowId(fake + place as u64), row)));
        if self.clashes(&rows) {
            assert!(
                matches!(result.as_ref().map_err(Error::cause), Err(Cause::Constraint(violation)) if violation.rule == Rule::Unique)
            );
            return;
        }
        let first = result.unwrap();
        assert!(self.rows.keys().all(|row| *row < first), "row numbers ascend");
        self.rows.extend(new.into_iter().enumerate().map(|(place, row)| (RowId(first.0 + place as u64), row)));
    }

    fn some_rows(&self, bench: &mut Bench) -> Vec<RowId> {
        let one_in = [1, 2, 5, 30][bench.dice(4) as usize];
        self.rows.keys().copied().filter(|_| bench.dice(one_in) == 0).collect()
    }

    fn update(&mut self, bench: &mut Bench) {
        let ids = self.some_rows(bench);
        let shift = bench.dice(3) == 0;
        let mut new = Vec::new();
        for id in &ids {
            let mut row = self.rows[id].clone();
            match (&row[0], shift) {
                (Value::Integer(there), true) => row[0] = int(there + 1),
                _ => {
                    let place = bench.dice(self.columns.len() as u64) as usize;
                    row[place] = random_value(bench, &self.columns[place]);
                }
            }
            new.push(row);
        }
        let result = bench.update("t", &ids, &new);
        let mut rows = self.rows.clone();
        rows.extend(ids.into_iter().zip(new));
        if self.clashes(&rows) {
            assert!(
                matches!(result.as_ref().map_err(Error::cause), Err(Cause::Constraint(violation)) if violation.rule == Rule::Unique)
            );
        } else {
            result.unwrap();
            self.rows = rows;
        }
    }

    fn delete(&mut self, bench: &mut Bench) {
        let ids = self.some_rows(bench);
        assert_eq!(bench.delete("t", &ids).unwrap(), ids.len() as u64);
        assert_eq!(bench.delete("t", &ids).unwrap(), 0, "a row is deleted once");
        ids.iter().for_each(|id| drop(self.rows.remove(id)));
    }

    fn alter(&mut self, bench: &mut Bench) {
        let table = bench.table("t");
        if bench.dice(2) == 0 && self.columns.len() < 8 {
            let name = format!("added{}", bench.dice(1 << 40));
            let value = random_value(bench, &name);
            let column = NewColumn::new(name.clone(), Type::Text);
            bench.statement(|relations, writer| relations.add_column(writer, &table, &column, &value)).unwrap();
            self.columns.push(name);
            self.rows.values_mut().for_each(|row| row.push(value.clone()));
        } else if self.columns.len() > 4 {
            let place = 4 + bench.dice(self.columns.len() as u64 - 4) as usize;
            let name = self.columns.remove(place);
            bench.statement(|relations, writer| relations.drop_column(writer, &table, &name, false)).unwrap();
            self.rows.values_mut().for_each(|row| drop(row.remove(place)));
        }
    }

    fn change_indexes(&mut self, bench: &mut Bench) {
        let table = bench.table("t");
        match table.indexes.iter().find(|index| index.origin == IndexOrigin::Created) {
            Some(index) if bench.dice(2) == 0 => {
                bench.statement(|relations, writer| relations.drop_index(writer, &index.name)).unwrap();
            }
            _ => {
                let column = self.columns[bench.dice(self.columns.len() as u64) as usize].clone();
                let new = NewIndex { name: None, columns: vec![column, "number".into()], unique: false };
                if new.columns[0] != "number" && table.indexes.len() < 6 {
                    bench.statement(|relations, writer| relations.create_index(writer, &table, &new)).unwrap();
                }
            }
        }
    }

    fn truncate(&mut self, bench: &mut Bench) {
        let table = bench.table("t");
        bench.statement(|relations, writer| relations.truncate(writer, &table, false)).unwrap();
        self.rows.clear();
    }

    fn step(&mut self, bench: &mut Bench) {
        match bench.dice(60) {
            0..30 => self.insert(bench),
            30..45 => self.update(bench),
            45..52 => self.delete(bench),
            52..55 => self.alter(bench),
            55..57 => self.change_indexes(bench),
            57 if bench.dice(6) == 0 => self.truncate(bench),
            57 => {
                let table = bench.table("t");
                bench.statement(|relations, writer| relations.vacuum_step(writer, &mut Vacuum::of(table.id))).unwrap();
            }
            58 => {
                let table = bench.table("t");
                bench.statement(|relations, writer| relations.vacuum(writer, Some(&table))).unwrap();
            }
            59 => drop(bench.statement(|relations, writer| relations.maintain(writer)).unwrap()),
            _ => {}
        }
    }

    /// What a view shows, as rows, by key and by number, is what it should be.
    fn agrees(&self, bench: &mut Bench, view: &Snapshot, table: &Table) {
        let rows = rows_of(&bench.relations, view.clone(), table);
        let expected: Vec<_> = self.rows.clone().into_iter().collect();
        assert!(rows == expected, "{} rows instead of {}", rows.len(), expected.len());
        assert_eq!(bench.relations.count(view, table).unwrap(), self.rows.len() as u64);
        self.agrees_by_number(bench, view, table);
        for index in &table.indexes {
            let places: Vec<_> = index.columns.iter().map(|id| table.position(*id).unwrap()).collect();
            self.agrees_by_key(bench, view, table, index.id, &places);
        }
        let parts = bench.relations.scan(view.clone(), table).unwrap().split(3);
        assert!(parts.len() <= 4);
        let mut count = 0;
        for mut part in parts {
            while let Some(block) = part.next(7).unwrap() {
                count += block.visible_count();
            }
        }
        assert_eq!(count, self.rows.len());
    }

    fn agrees_by_number(&self, bench: &mut Bench, view: &Snapshot, table: &Table) {
        let mut ids: Vec<_> = self.rows.keys().copied().filter(|_| bench.dice(5) == 0).collect();
        ids.extend([RowId(0), RowId(bench.dice(2000)), RowId(u64::MAX)]);
        let half = ids.len() / 2;
        ids.rotate_left(half);
        let block = bench.relations.fetch(view, table, &ids, None).unwrap();
        for (row, id) in ids.iter().enumerate() {
            assert_eq!(block.is_visible(row), self.rows.contains_key(id));
            if let Some(expected) = self.rows.get(id) {
                assert!(block.rows.row(row).unwrap() == *expected);
            }
        }
    }

    fn agrees_by_key(
        &self,
        bench: &mut Bench,
        view: &Snapshot,
        table: &Table,
        index: counterfoil_relation::IndexId,
        places: &[usize],
    ) {
        for _ in 0..4 {
            let whole: Vec<Value> = match self.rows.values().nth(bench.dice(self.rows.len().max(1) as u64) as usize) {
                Some(row) => places.iter().map(|place| row[*place].clone()).collect(),
                None => places.iter().map(|place| random_value(bench, &self.columns[*place])).collect(),
            };
            let prefix = whole[..bench.dice(whole.len() as u64 + 1) as usize].to_vec();
            let mut range = KeyRange::equal(prefix.clone());
            let bounded = bench.dice(2) == 0 && prefix.len() < places.len();
            if bounded && whole[prefix.len()] != Value::Null {
                let bound = whole[prefix.len()].clone();
                range.bounds = Some(match bench.dice(4) {
                    0 => (KeyBound::Included(bound), KeyBound::Unbounded),
                    1 => (KeyBound::Excluded(bound), KeyBound::Unbounded),
                    2 => (KeyBound::Unbounded, KeyBound::Included(bound)),
                    _ => (KeyBound::Unbounded, KeyBound::Excluded(bound)),
                });
            }
            let mut found = bench.relations.lookup(view, table, index, &range, usize::MAX).unwrap().unwrap();
            found.sort();
            let inside = |row: &Vec<Value>| {
                prefix.iter().zip(places).all(|(value, place)| row[*place] == *value)
                    && range.bounds.as_ref().is_none_or(|bounds| within(&row[places[prefix.len()]], bounds))
            };
            let expected: Vec<_> = self.rows.iter().filter(|(_, row)| inside(row)).map(|(id, _)| *id).collect();
            assert_eq!(found, expected);
            if !range.prefix.is_empty() || range.bounds.is_some() {
                // Enough for a text of 3,000 bytes.
                let budget = [32 << 10, 1 << 20][bench.dice(2) as usize];
                let (rows, _) = count(&bench.relations, view, table, tests_of(table, index, &range), budget);
                assert_eq!(rows, expected.len() as u64);
            }
        }
    }
}

fn within(value: &Value, (low, high): &(KeyBound, KeyBound)) -> bool {
    let order = |bound: &Value| match (value, bound) {
        (Value::Integer(one), Value::Integer(two)) => one.cmp(two),
        (Value::BigInt(one), Value::BigInt(two)) => one.cmp(two),
        (Value::Text(one), Value::Text(two)) => one.cmp(two),
        _ => unreachable!(),
    };
    *value != Value::Null
        && match low {
            KeyBound::Unbounded => true,
            KeyBound::Included(bound) => order(bound).is_ge(),
            KeyBound::Excluded(bound) => order(bound).is_gt(),
        }
        && match high {
            KeyBound::Unbounded => true,
            KeyBound::Included(bound) => order(bound).is_le(),
            KeyBound::Excluded(bound) => order(bound).is_lt(),
        }
}

/// Says which run it was, should it end in a panic.
struct Replay(u64, usize, usize);

impl Drop for Replay {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see it again: run({}, {}, {})", self.0, self.1, self.2);
        }
    }
}

fn run(seed: u64, fresh_rows: usize, transactions: usize) {
    let _replay = Replay(seed, fresh_rows, transactions);
    let mut bench = Bench::with_fresh_rows(seed, fresh_rows);
    bench.create(&new_table());
    let columns = ["id", "name", "number", "note"].map(String::from).to_vec();
    let mut model = Model { rows: Rows::new(), columns };
    let mut old: Vec<(Snapshot, std::sync::Arc<Table>, Model)> = Vec::new();
    for transaction in 0..transactions {
        let before = model.clone();
        bench.begin();
        (0..1 + bench.dice(4)).for_each(|_| model.step(&mut bench));
        if bench.dice(4) == 0 {
            let savepoint = bench.writer.savepoint().unwrap();
            let saved = model.clone();
            (0..3).for_each(|_| model.step(&mut bench));
            bench.writer.rollback_to(&savepoint).unwrap();
            bench.relations.rolled_back(&bench.writer);
            model = saved;
        }
        let pending = bench.writer.pending();
        let table = bench.table("t");
        model.agrees(&mut bench, &pending, &table);
        if bench.dice(5) == 0 {
            bench.rollback();
            model = before;
        } else {
            bench.commit();
        }
        if bench.dice(4) == 0 {
            let view = bench.writer.snapshot();
            let table = bench.table("t");
            old.push((view, table, model.clone()));
        }
        for (view, table, then) in &old {
            then.agrees(&mut bench, view, table);
        }
        match bench.dice(30) {
            0 => old.clear(),
            1 => {
                old.clear();
                bench.reopen();
            }
            2 => {
                // Another process, which has never seen a writer.
                let view = bench.recovered();
                let own = tables(fresh_rows);
                let writers = std::mem::replace(&mut bench.relations, own);
                let table = bench.relations.table(&view, "t").unwrap().unwrap();
                model.agrees(&mut bench, &view, &table);
                bench.relations = writers;
            }
            _ => {}
        }
        if transaction % 10 == 9 {
            bench.verify();
        }
        old.truncate(6);
    }
    let table = bench.table("t");
    let batch = batch(&table, &model.rows.values().cloned().collect::<Vec<_>>());
    let primary = table.primary_key.as_ref().unwrap().index;
    let conflicts = bench.relations.conflicts(&bench.writer, &table, primary, &batch).unwrap();
    assert!(conflicts.into_iter().eq(model.rows.keys().copied().map(Some)));
}

#[test]
fn a_table_agrees_with_a_map_while_everything_is_fresh() {
    (0..rounds(4, 160)).for_each(|seed| run(seed, 1 << 20, 60));
}

#[test]
fn a_table_agrees_with_a_map_while_runs_come_and_go() {
    (1000..1000 + rounds(8, 320)).for_each(|seed| run(seed, 8, 80));
}

#[test]
fn a_table_agrees_with_a_map_with_runs_of_one_row() {
    (2000..2000 + rounds(2, 80)).for_each(|seed| run(seed, 1, 40));
}
