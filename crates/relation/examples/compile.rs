//! Compiles the 18 queries of the MILo-DB paper's Table 1 into plans for a device, and says how many rows each has here.
//!
//! Usage: cargo run -p counterfoil-relation --example compile -- ROWS FILE [little]
//!
//! With `little`, of T1 and T2 alone, for a device with little memory: five queries of that sort.
//!
//! The tables are made here as the device makes them, in the same order, so their numbers are the same. The file has for each query
//! a line `NAME ROWS DIGEST BYTES` and then that many bytes; the digest is one of what the answer says here.

#[path = "../../../firmware/src/bin/relation/digest.rs"]
mod digest;
#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../../bench/src/relation/figure7.rs"]
mod figure7;
#[allow(dead_code, reason = "shared with the benchmarks")]
#[path = "../../bench/src/relation/table1.rs"]
mod table1;

use std::error::Error;
use std::io::Write;
use std::sync::Arc;

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, Writer, create};
use counterfoil_relation::{
    Comparison, Constant, Function, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, NoScratch, Order, Output,
    Place, Plan, Relations, RowBuilder, Source, Table, Test, Type, ValueRef,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, Suite, Vault, VolumeKey};

use figure7::{INDEXED, TABLES};
use table1::{Asked, Is, Query};

type Failure = Box<dyn Error>;

/// Bytes of memory that a question has here.
const BUDGET: usize = 1 << 20;
const GEOMETRY: Geometry =
    Geometry { page_bytes: 2048, block_pages: 64, block_count: 4096, erase_before_program: false, grows: true };

fn main() -> Result<(), Failure> {
    let usage = "usage: compile ROWS FILE";
    let mut arguments = std::env::args().skip(1);
    let rows: u64 = arguments.next().ok_or(usage)?.parse()?;
    let mut file = std::fs::File::create(arguments.next().ok_or(usage)?)?;
    let is_little = arguments.next().is_some();
    let (relations, mut writer) =
        filled(rows, if is_little { &["t2", "t1"] } else { &["t2", "t4", "t5", "t1", "t3", "t0"] })?;
    let mut plans: Vec<(&str, Plan)> = Vec::new();
    if is_little {
        let asked = [
            ("Row", "t1", "id", Is::Id(7)),
            ("Joined", "t2", "id", Is::Id(3)),
            ("Few", "t1", "dup10", Is::Equal(figure7::value(2))),
        ];
        let more = [
            ("Many", "t2", "ms10", Is::Equal(figure7::value(5))),
            ("Above", "t1", "dup100", Is::Above(figure7::value(0))),
        ];
        for (name, table, column, is) in asked.into_iter().chain(more) {
            let query = Query { name, paper_rows: 0, shown: &["t1", "t2"], asked: vec![Asked { table, column, is }] };
            plans.push((name, plan_of(&relations, &writer, ("t1", &["t1", "t2"]), &query)?));
        }
        plans.push(("Grouped", grouped(&relations, &writer, "t1", "t2")?));
    } else {
        for query in table1::all(rows) {
            plans.push((query.name, plan_of(&relations, &writer, ("t0", &query.tables()), &query)?));
        }
        plans.push(("Grouped", grouped(&relations, &writer, "t0", "t3")?));
    }
    for (name, plan) in plans {
        let bytes = plan.compile()?;
        let mut answer = relations.answer(writer.snapshot(), plan, BUDGET)?;
        let (mut count, mut digest) = (0, 0_u64);
        while let Some(batch) = answer.next(&relations, &mut NoScratch)? {
            count += batch.count();
            digest = digest.wrapping_add(digest::of(&batch)?);
        }
        writeln!(file, "{name} {count} {digest} {}", bytes.len())?;
        file.write_all(&bytes)?;
    }
    Ok(())
}

/// The tables with all their rows, in memory.
fn filled(rows: u64, names: &[&str]) -> Result<(Relations, Writer), Failure> {
    let device = MemoryDevice::new(GEOMETRY)?;
    let vault = Arc::new(Vault::new(&VolumeKey::from_bytes(&[7; 32]), DatabaseId([1; 32]), Suite::AsconAead128));
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device) };
    let settings = Settings { counter: None, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let layout = Layout::new(&GEOMETRY, 64, 16)?;
    let mut writer = create(media, vault, layout, settings, &mut DangerFixedEntropy::seeded(1), 0, 1 << 20)?;
    let relations = Relations::new();
    writer.begin()?;
    for table in TABLES.iter().filter(|table| names.contains(&table.name)) {
        let mut made = relations.create_table(&mut writer, &described(table))?;
        for column in INDEXED {
            let index = NewIndex { columns: vec![column.into()], ..NewIndex::default() };
            made = relations.create_index(&mut writer, &made, &index)?;
        }
        let mut builder = RowBuilder::new(made.layout());
        for id in 0..table.rows(rows) {
            let row = table.row(id, rows);
            let mut values = vec![ValueRef::BigInt(row.id)];
            values.extend(row.references.iter().map(|reference| ValueRef::BigInt(*reference)));
            values.extend(row.values.iter().map(|value| ValueRef::Text(value)));
            values.push(ValueRef::Text(&row.a1));
            builder.push(&values)?;
        }
        relations.insert(&mut writer, &made, &builder.finish())?;
    }
    writer.commit()?;
    Ok((relations, writer))
}

fn described(table: &figure7::Table) -> NewTable {
    let references = table.references.iter().map(|other| NewForeignKey {
        columns: vec![(*other).into()],
        parent: (*other).into(),
        ..NewForeignKey::default()
    });
    let kind = |name: &str| match name {
        "a1" => Type::Text,
        name if INDEXED.contains(&name) => Type::Char(10),
        _ => Type::BigInt,
    };
    NewTable {
        name: table.name.into(),
        columns: table.columns().iter().map(|name| NewColumn::new(name.as_str(), kind(name))).collect(),
        primary_key: Some(NewKey { name: None, columns: vec!["id".into()] }),
        foreign_keys: references.collect(),
        ..NewTable::default()
    }
}

fn sources_of(relations: &Relations, writer: &Writer, root: &str, names: &[&str]) -> Result<Vec<Source>, Failure> {
    let table =
        |name: &str| -> Result<Arc<Table>, Failure> { Ok(relations.table(writer, name)?.ok_or("no such table")?) };
    let root = table(root)?;
    names
        .iter()
        .map(|name| {
            let table = table(name)?;
            let path = root.joins.iter().position(|join| join.steps.last().is_some_and(|step| step.to == table.id));
            Ok(Source { table, path, tests: Vec::new(), is_optional: false })
        })
        .collect()
}

fn place_of(sources: &[Source], table: &str, column: &str) -> Result<Place, Failure> {
    let source = sources.iter().position(|source| source.table.name == table).ok_or("no such source")?;
    let (column, _) = sources[source].table.column(column).ok_or("no such column")?;
    Ok(Place { source, column })
}

fn plan_of(
    relations: &Relations,
    writer: &Writer,
    (root, tables): (&str, &[&str]),
    query: &Query,
) -> Result<Plan, Failure> {
    let mut sources = sources_of(relations, writer, root, tables)?;
    for Asked { table, column, is } in &query.asked {
        let place = place_of(&sources, table, column)?;
        let (comparison, constant) = match is {
            Is::Id(id) => (Comparison::Equal, Constant::Whole(*id as i64)),
            Is::Equal(value) => (Comparison::Equal, Constant::Bytes(value.clone().into_bytes())),
            Is::Above(value) => (Comparison::Greater, Constant::Bytes(value.clone().into_bytes())),
        };
        sources[place.source].tests.push(Test::Compare { column: place.column, comparison, constant });
    }
    let shown = query.shown.iter().map(|table| place_of(&sources, table, "a1").map(Output::Column));
    let outputs = shown.collect::<Result<Vec<_>, _>>()?;
    Ok(Plan { shown: outputs.len(), sources, outputs, ..Plan::default() })
}

/// For each value of MS10 of a table the rows of the root that join it and their greatest ID, in order.
fn grouped(relations: &Relations, writer: &Writer, root: &str, joined: &str) -> Result<Plan, Failure> {
    let sources = sources_of(relations, writer, root, &[root, joined])?;
    let outputs = vec![
        Output::Column(place_of(&sources, joined, "ms10")?),
        Output::CountRows,
        Output::Aggregate(Function::Greatest, place_of(&sources, root, "id")?),
    ];
    let order = vec![Order { output: 0, is_descending: false, nulls_first: false }];
    Ok(Plan { sources, outputs, order, shown: 3, ..Plan::default() })
}
