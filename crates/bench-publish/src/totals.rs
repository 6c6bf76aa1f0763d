//! What an aggregate over a published series costs: by signed nodes, and by the rows themselves.

use std::time::Instant;

use counterfoil_mirror::{MemoryShelf, answer, totals};
use counterfoil_proof::{
    Chain, Column, Definition, Edge, Interval, NodesOf, Question, Scheme, TotalsQuestion, Trust, TrustedManifest, Type,
    Value, check, check_totals,
};
use counterfoil_publish::{Edit, MemoryLedger, Plan, Publication, Secrets};

use crate::Failure;
use crate::primitives::time;

/// Microseconds.
const MINUTE: i64 = 60_000_000;
pub const DAY: i64 = 1440;
/// Rows that come one by one: fewer than there are before the first that is asked for.
const ROUNDS: i64 = 21;

pub fn definition() -> Definition {
    let column = |name: &str, kind| Column { name: name.into(), kind };
    Definition {
        table: [1; 16],
        name: "readings".into(),
        columns: vec![column("at", Type::Timestamp), column("reading", Type::Numeric(8, 2))],
        orders: vec![vec![0]],
        scheme: Scheme::PerRecord,
        nodes: vec![NodesOf { order: 0, columns: vec![1] }],
        filters: Vec::new(),
    }
}

/// The reading of a minute.
pub fn row(minute: i64) -> Vec<Value> {
    vec![Value::Integer(minute * MINUTE), Value::Numeric(i128::from(minute * 7919 % 10_007))]
}

/// A reading each minute, and what its owner, a mirror and readers take for it.
pub fn print(rows: i64) -> Result<(), Failure> {
    let plan = Plan { definition: definition(), now: 0, every: 0, renew: 0, max_age: u64::MAX, expires: u64::MAX };
    let secrets = Secrets::from_entropy(&std::array::from_fn(|at| at as u8))?;
    let mut owner = Publication::create(MemoryLedger::default(), plan, secrets, &[])?;
    let took = |begun: Instant| begun.elapsed().as_secs_f64();
    let begun = Instant::now();
    owner.edit(Edit { insert: (0..rows).map(row).collect(), ..Edit::default() })?;
    let signed = took(begun);
    let begun = Instant::now();
    owner.close_period(1000)?;
    let nodes = owner.shelf().nodes.all().count();
    println!("\n{rows} rows, signed in {signed:.1} s; {nodes} nodes over them, in {:.1} s", took(begun));
    let (edited, first, signed) = one_more(&mut owner, rows / 2)?;
    println!("one row more: {edited:.2} ms; its period's end, {signed} nodes signed: {first:.2} ms");
    // Far from what is asked for below. The first end had to sort what the load's end gave back to the allocator.
    let (mut edited, mut ended, mut most) = (f64::INFINITY, f64::INFINITY, 0);
    for minute in 0..ROUNDS {
        let (edit, end, signed) = one_more(&mut owner, minute)?;
        (edited, ended, most) = (edited.min(edit), ended.min(end), most.max(signed));
    }
    println!(
        "{ROUNDS} rows more, each in its period: {edited:.2} ms; its end, at most {most} nodes signed: {ended:.2} ms"
    );
    println!(
        "\n{:>9} {:>7} {:>11} {:>12} {:>11} {:>11}",
        "rows", "by", "signatures", "bytes", "mirror, ms", "reader, ms"
    );
    let manifest = TrustedManifest::check(owner.manifest(), &owner.owner(), 0)?;
    let summaries = owner.summaries()?;
    let chain = Chain::check(&manifest, summaries.iter().map(Vec::as_slice))?;
    let trust = Trust { manifest: &manifest, chain: &chain, now: 3000, clock_error: 0, max_age: u64::MAX };
    for part in [DAY, 30 * DAY, rows - 100] {
        // Neither end is where a node begins.
        let from = (rows - part) / 2 + 3;
        ask(owner.shelf(), &trust, from..from + part - 7)?;
    }
    Ok(())
}

/// Puts a row in, and ends the period: what each takes, in milliseconds, and how many nodes were signed.
fn one_more(owner: &mut Publication<MemoryLedger>, minute: i64) -> Result<(f64, f64, usize), Failure> {
    let begun = Instant::now();
    owner.edit(Edit { insert: vec![row(minute)], ..Edit::default() })?;
    let edited = begun.elapsed().as_secs_f64() * 1e3;
    let (period, now) = (owner.status().open_period, owner.status().last_ended.unwrap_or_default() + 1);
    let begun = Instant::now();
    owner.close_period(now)?;
    let ended = begun.elapsed().as_secs_f64() * 1e3;
    let signed = owner.shelf().nodes.all().filter(|entry| entry.stamp.period == period).count();
    Ok((edited, ended, signed))
}

/// The interval of some minutes.
pub fn interval(minutes: std::ops::Range<i64>) -> Result<Interval, Failure> {
    let edge = |minute: i64| -> Result<Edge, Failure> {
        let mut key = Vec::new();
        Type::Timestamp.encode(&Value::Integer(minute * MINUTE), &mut key).map_err(|_| "a time")?;
        Ok(Edge::before(&key))
    };
    Interval::new(edge(minutes.start)?..edge(minutes.end)?).ok_or_else(|| "an interval of nothing".into())
}

/// The same question both ways; both must have the same answer.
fn ask(shelf: &MemoryShelf, trust: &Trust<'_>, minutes: std::ops::Range<i64>) -> Result<(), Failure> {
    // Of a shelf, answering takes nothing away; it is only read.
    let mut shelf = shelf.clone();
    let (definition, interval) = (definition(), interval(minutes)?);
    let line = |by: &str, rows: u64, signatures: usize, bytes: usize, mirror: f64, reader: f64| {
        println!("{rows:>9} {by:>7} {signatures:>11} {bytes:>12} {mirror:>11.2} {reader:>11.2}");
    };
    let question = TotalsQuestion::new(&definition, 0, vec![interval.clone()], 0)?.hinted();
    let proof = totals(&mut shelf, &question).map_err(|_| "no totals")?.to_bytes(&definition, &question)?;
    let by_nodes = check_totals(trust, &question, &proof)?;
    let found = &by_nodes.groups[0].totals;
    let mirror = time(21, || totals(&mut shelf, &question).map(|answer| answer.to_bytes(&definition, &question)));
    let reader = time(21, || check_totals(trust, &question, &proof));
    line("nodes", found.rows, by_nodes.signatures, proof.len(), mirror, reader);
    let question = Question::new(&definition, 0, vec![interval], &[0, 1])?.hinted();
    let begun = Instant::now();
    let proof = answer(&mut shelf, &question).map_err(|_| "no rows")?.to_bytes(&definition, &question)?;
    let mirror = begun.elapsed().as_secs_f64() * 1e3;
    let begun = Instant::now();
    let by_rows = check(trust, &question, &proof)?;
    let reader = begun.elapsed().as_secs_f64() * 1e3;
    line("rows", by_rows.rows.len() as u64, by_rows.signatures, proof.len(), mirror, reader);
    let sum: i128 = by_rows.rows.iter().map(|row| if let Value::Numeric(value) = row[1] { value } else { 0 }).sum();
    let is_same = found.rows == by_rows.rows.len() as u64 && found.columns[0].sum.to_i128() == Some(sum);
    if is_same { Ok(()) } else { Err("totals that are not those of the rows".into()) }
}
