//! What summaries cost and save: `cargo run --release -p counterfoil-series --example summaries`.
//!
//! A million points of one series in a sealed volume in memory; sums over 100,000 of them, with and without summaries, warm.

use std::error::Error;
use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, Snapshot, Writer, create};
use counterfoil_series::{Batch, Kind, Options, Question, SeriesTables, Span, Summarized, TableNumber, Value, Values};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey};

const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];
const POINTS: i64 = 1_000_000;
/// Microseconds between two points.
const STEP: i64 = 100_000;
const ASKED: i64 = 100_000;
const ROUNDS: u32 = 200;
const BATCH: i64 = 10_000;

fn writer() -> Result<Writer, Box<dyn Error>> {
    let mut entropy = DangerFixedEntropy::seeded(1);
    let (key, id) = (VolumeKey::generate(&mut entropy)?, DatabaseId::generate(&mut entropy)?);
    let geometry =
        Geometry { page_bytes: 4096, block_pages: 64, block_count: 1 << 12, erase_before_program: false, grows: true };
    let device = MemoryDevice::new(geometry)?;
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device) };
    let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
    let settings = Settings {
        counter: Some(Box::new(MemoryCounter::at(0, None))),
        counting: Counting::EveryCommit,
        pins: Box::new(NoPins),
        headers: None,
    };
    Ok(create(media, vault, Layout::new(&geometry, 64, 16)?, settings, &mut entropy, 0, 1 << 24)?)
}

/// A walk of two decimals.
fn value(at: i64, level: &mut i64) -> f64 {
    let mixed = (at as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    *level += ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 40) as i64 % 33 - 16;
    *level as f64 / 100.0
}

fn fill(
    tables: &SeriesTables,
    writer: &mut Writer,
    table: TableNumber,
    columns: Vec<u32>,
) -> Result<Duration, Box<dyn Error>> {
    let summarized = Summarized { columns, quality: Some(1) };
    writer.begin()?;
    tables.create(writer, table, &KINDS, Options { summarized, ..Options::default() })?;
    tables.number(writer, table, [&b"s"[..]])?;
    let (mut level, mut taken) = (200_000, Duration::ZERO);
    for from in (0..POINTS).step_by(BATCH as usize) {
        let mut batch = Batch::new(&KINDS);
        for at in from..from + BATCH {
            batch.push(0, at * STEP, [Some(Value::Double(value(at, &mut level))), Some(Value::Integer(192))]);
        }
        let begun = Instant::now();
        tables.insert(writer, table, &batch)?;
        taken += begun.elapsed();
    }
    writer.commit()?;
    tables.committed(writer);
    Ok(taken)
}

/// The sum of the points of a span, from summaries where there are any.
fn aggregated(tables: &SeriesTables, view: Snapshot, table: TableNumber, span: Span) -> Result<f64, Box<dyn Error>> {
    let question = Question { span, columns: vec![0], buckets: None, ends: false };
    let bucket = tables.aggregate(view, table, Some(vec![0]), question)?.next()?.ok_or("no points")?;
    assert_eq!(bucket.points, ASKED as u64);
    Ok(bucket.columns[0].sum.double())
}

/// The same, point by point.
fn scanned(tables: &SeriesTables, view: Snapshot, table: TableNumber, span: Span) -> Result<f64, Box<dyn Error>> {
    let (mut scan, mut sum) = (tables.scan(view, table, Some(vec![0]), span)?, 0.0);
    while let Some(block) = scan.next()? {
        let Values::Doubles(values) = &block.points.columns[0].values else { return Err("no doubles".into()) };
        sum += values.iter().sum::<f64>();
    }
    Ok(sum)
}

fn main() -> Result<(), Box<dyn Error>> {
    let (tables, mut writer) = (SeriesTables::new(), writer()?);
    let (without, with) = (TableNumber(1), TableNumber(2));
    for (table, columns) in [(without, vec![]), (with, vec![0])] {
        let taken = fill(&tables, &mut writer, table, columns.clone())?;
        let (view, count) = (writer.snapshot(), columns.len());
        let (pages, edge) = (tables.pages(&view, table)?, tables.levels(&view, table, 0)?);
        let rate = POINTS as f64 / taken.as_secs_f64() / 1e6;
        println!(
            "{count} columns with summaries: {rate:.1} M points/s stored; pages, leaves first: {pages:?}, not under nodes: {edge:?}"
        );
    }
    // Its ends lie in the middle of leaves.
    let first = POINTS / 3 * STEP + STEP / 2;
    let span = Span { first, last: first + ASKED * STEP - 1 };
    type Sum = fn(&SeriesTables, Snapshot, TableNumber, Span) -> Result<f64, Box<dyn Error>>;
    for (name, table, ask) in [
        ("point by point", without, scanned as Sum),
        ("without summaries", without, aggregated as Sum),
        ("from summaries", with, aggregated as Sum),
    ] {
        let view = writer.snapshot();
        let mut sum = ask(&tables, view.clone(), table, span)?;
        let begun = Instant::now();
        for _ in 0..ROUNDS {
            sum = ask(&tables, view.clone(), table, span)?;
        }
        let each = begun.elapsed() / ROUNDS;
        println!("sum of {ASKED} points {name}: {:.0} us, {sum}", each.as_secs_f64() * 1e6);
    }
    Ok(())
}
