//! What one signature may cover: a record, a value, or a group of records, and what each costs of one table.

use std::time::Instant;

use counterfoil_mirror::{MemoryShelf, answer};
use counterfoil_proof::{
    Chain, Column, Definition, Edge, FIRST_RID, Interval, Question, Scheme, Trust, TrustedManifest, Type, Value, check,
};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

use crate::Failure;
use crate::primitives::time;

/// Columns: the one of the first order, that of the second one, and others.
const COLUMNS: u16 = 8;

const SCHEMES: [(&str, Scheme); 5] = [
    ("PER RECORD", Scheme::PerRecord),
    ("PER ATTRIBUTE", Scheme::PerAttribute),
    ("GROUP (4)", Scheme::Group(4)),
    ("GROUP (16)", Scheme::Group(16)),
    ("GROUP (64)", Scheme::Group(64)),
];

fn definition(scheme: Scheme) -> Definition {
    let columns = (0..COLUMNS).map(|at| Column { name: format!("c{at}"), kind: Type::BigInt }).collect();
    let (nodes, filters) = (Vec::new(), Vec::new());
    Definition { table: [2; 16], name: "rows".into(), columns, orders: vec![vec![0], vec![1]], scheme, nodes, filters }
}

/// Rows stand in the second order as if they were shuffled.
fn row(at: i64, rest: i64) -> Vec<Value> {
    let second = at * 7919 % 1_000_003;
    (0..i64::from(COLUMNS))
        .map(|column| Value::Integer([at * 2, second][..].get(column as usize).copied().unwrap_or(rest + column)))
        .collect()
}

/// The table, signed in each way.
pub fn print(rows: i64) -> Result<(), Failure> {
    println!("\n{rows} rows of {COLUMNS} columns in two orders; signatures that changes take; kept bytes a row\n");
    println!(
        "{:>14} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "", "load", "load, s", "values", "moved", "new row", "bytes"
    );
    let mut tables = Vec::new();
    for (name, scheme) in SCHEMES {
        tables.push((name, Table::load(name, rows, scheme)?));
    }
    println!(
        "\n{:>14} {:>6} {:>6} {:>7} {:>10} {:>9} {:>9} {:>10}",
        "", "order", "rows", "columns", "signatures", "bytes", "hinted", "reader, ms"
    );
    for order in [0, 1] {
        for count in [1, 10, 1000] {
            for columns in [2, COLUMNS] {
                tables.iter_mut().try_for_each(|(name, table)| table.ask(name, order, count, columns))?;
                println!();
            }
        }
    }
    Ok(())
}

struct Table {
    owner: Publication<MemoryLedger>,
    rows: i64,
}

impl Table {
    fn load(name: &str, rows: i64, scheme: Scheme) -> Result<Self, Failure> {
        let plan =
            Plan { definition: definition(scheme), now: 0, every: 0, renew: 0, max_age: u64::MAX, expires: u64::MAX };
        let secrets = Secrets::from_entropy(&std::array::from_fn(|at| at as u8))?;
        let mut owner = Publication::create(MemoryLedger::default(), plan, secrets, &[])?;
        let begun = Instant::now();
        let load = owner.edit(Edit { insert: (0..rows).map(|at| row(at, 0)).collect(), ..Edit::default() })?.signed;
        let took = begun.elapsed().as_secs_f64();
        let bytes = kept(owner.shelf(), scheme)? / rows as usize;
        owner.close_period(1000)?;
        // A row with other values in its place; then elsewhere in the second order; one row more: on average of a few.
        let few = 20;
        let [mut values, mut moved, mut new] = [0; 3];
        for at in (1..=few).map(|at| at * (rows / (few + 1))) {
            let rid = FIRST_RID + at as u64;
            let update = |values| Edit { update: vec![(rid, values)], ..Edit::default() };
            values += owner.edit(update(row(at, 5)))?.signed;
            let mut other = row(at, 5);
            other[1] = row(at + 3, 0)[1].clone();
            moved += owner.edit(update(other))?.signed;
            new += owner.edit(Edit { insert: vec![row(at, 7)], ..Edit::default() })?.signed;
        }
        let each = |signed: u64| signed as f64 / few as f64;
        println!(
            "{name:>14} {load:>10} {took:>9.1} {:>9.1} {:>9.1} {:>9.1} {bytes:>9}",
            each(values),
            each(moved),
            each(new)
        );
        owner.close_period(2000)?;
        Ok(Self { owner, rows })
    }

    fn ask(&mut self, name: &str, order: u8, count: i64, columns: u16) -> Result<(), Failure> {
        let definition = self.owner.definition().clone();
        let mut shelf = self.owner.shelf().clone();
        let edge = |at: i64| -> Result<Edge, Failure> {
            let rid = shelf.rids(order).nth(at as usize).ok_or("no rows")?;
            Ok(Edge::at(&shelf.entry(rid).ok_or("no row")?.position(&definition, order)?))
        };
        let from = self.rows / 3;
        let interval = Interval::new(edge(from)?..edge(from + count)?).ok_or("an interval of nothing")?;
        let shown: Vec<u16> = (0..columns).collect();
        let question = Question::new(&definition, order, vec![interval], &shown)?;
        let hinted = question.clone().hinted();
        let bytes = |shelf: &mut MemoryShelf, question: &Question| -> Result<Vec<u8>, Failure> {
            Ok(answer(shelf, question).map_err(|_| "no rows")?.to_bytes(&definition, question)?)
        };
        let (compact, proof) = (bytes(&mut shelf, &question)?, bytes(&mut shelf, &hinted)?);
        let manifest = TrustedManifest::check(self.owner.manifest(), &self.owner.owner(), 0)?;
        let summaries = self.owner.summaries()?;
        let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
        let trust = Trust { manifest: &manifest, chain: &chain, now: 3000, clock_error: 0, max_age: u64::MAX };
        let verified = check(&trust, &hinted, &proof)?;
        check(&trust, &question, &compact)?;
        if verified.rows.len() as i64 != count {
            return Err("another number of rows".into());
        }
        let reader = time(11, || check(&trust, &hinted, &proof));
        println!(
            "{name:>14} {:>6} {count:>6} {columns:>7} {:>10} {:>9} {:>9} {reader:>10.2}",
            order + 1,
            verified.signatures,
            compact.len(),
            proof.len()
        );
        Ok(())
    }
}

/// Bytes that a mirror keeps of all rows.
fn kept(shelf: &MemoryShelf, scheme: Scheme) -> Result<usize, Failure> {
    let definition = definition(scheme);
    let mut bytes = shelf.groups.from(&[]).map(|group| group.to_bytes().len()).sum();
    for rid in shelf.rids(0).filter(|rid| *rid >= FIRST_RID) {
        bytes += shelf.entry(rid).ok_or("no row")?.to_bytes(&definition)?.len();
    }
    Ok(bytes)
}
