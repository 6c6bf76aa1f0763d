//! How fast ordered points of 100 series are stored and read, sealed, in memory or in a file (numbers.md of Chronos: tuples of 17
//! bytes: time, double, state): `cargo run --release -p counterfoil-series --example ingest_speed -- [FILE] [MILLIONS]`.
//!
//! Rates are those of one core: by the time that the process had on a processor, where the kernel tells it (an insert uses one
//! thread, and so does a flush). Where it does not, and for the last column, by the clock.
//!
//! A commit has what comes in 100 ms at the speed that is aimed at: 3 million points. Point calls push each point by itself into a
//! batch; batches have columns, as from Arrow, series by series or mixed.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use counterfoil_flash::{FileDevice, Geometry, MemoryDevice, Read};
use counterfoil_log::{Counting, Layout, Media, NoPins, Settings, Writer, create};
use counterfoil_series::{Batch, Column, Kind, Options, SeriesTables, Span, TableNumber, Values};
use counterfoil_vault::{DatabaseId, Suite, SystemEntropy, Vault, VolumeKey, witness};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];
const TABLE: TableNumber = TableNumber(1);
const SERIES: usize = 100;
/// Points in a commit.
const POINTS: usize = 3_000_000;
const GEOMETRY: Geometry =
    Geometry { page_bytes: 4096, block_pages: 256, block_count: 1 << 12, erase_before_program: false, grows: true };

/// How the points of a commit come.
#[derive(Clone, Copy)]
enum How {
    /// One by one, the series in turn.
    Calls,
    /// As columns, the series in turn.
    Mixed,
    /// As columns, series by series.
    Sorted,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().filter(|path| path != "-");
    let commits = arguments.next().map_or(Ok(30), |millions| millions.parse::<usize>())? * 1_000_000 / POINTS;
    println!(
        "| points come | late | M points/s | ns a point: call, store, commit | M/s read | bytes a point | by the clock |"
    );
    println!("|---|---|---|---|---|---|---|");
    for (name, how, late) in [
        ("by calls, series in turn", How::Calls, 0),
        ("by calls, series in turn", How::Calls, 5),
        ("in columns, series in turn", How::Mixed, 0),
        ("in columns, by series", How::Sorted, 0),
    ] {
        measure(path.as_deref().map(Path::new), commits, (name, how, late))?;
    }
    Ok(())
}

fn writer(path: Option<&Path>) -> Outcome<Writer> {
    let key = VolumeKey::generate(&mut SystemEntropy)?;
    let vault = Arc::new(Vault::new(&key, DatabaseId::generate(&mut SystemEntropy)?, Suite::Aes256GcmSiv));
    let settings = Settings { counter: None, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
    let (media, geometry) = match path {
        Some(path) => {
            let _ = std::fs::remove_file(path);
            let device = FileDevice::create_new(path, GEOMETRY)?;
            (Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) }, device.geometry())
        }
        None => {
            let device = MemoryDevice::new(GEOMETRY)?;
            (Media { reader: Arc::new(device.clone()), writer: Box::new(device) }, GEOMETRY)
        }
    };
    Ok(create(media, vault, Layout::new(&geometry, 256, 8)?, settings, &mut SystemEntropy, 0, 16 << 20)?)
}

/// A decimal walk, a little jitter in its times; those that are late come by up to a second.
fn point(series: usize, at: usize, late_percent: u64) -> (i64, f64) {
    let noise = ((at * 131 + series) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let late = if (noise >> 8) % 100 < late_percent { (noise >> 12) as i64 % 1_000_000 } else { 0 };
    let time = 1_700_000_000_000_000 + at as i64 * 10_000 + (noise % 100) as i64 - late;
    (time, (20_000 + at as u64 % 997 + noise % 33) as f64 / 100.0)
}

fn batch(how: How, from: usize, late: u64) -> Batch {
    let mut batch = Batch::new(&KINDS);
    let each = POINTS / SERIES;
    let place = |row: usize| match how {
        How::Sorted => (row / each, from + row % each),
        How::Calls | How::Mixed => (row % SERIES, from + row / SERIES),
    };
    let mut values = Vec::with_capacity(POINTS);
    for row in 0..POINTS {
        let (series, at) = place(row);
        let (time, value) = point(series, at, late);
        batch.series.push(series as u32);
        batch.rows.times.push(time);
        values.push(value);
    }
    let quality = Column { values: Values::Integers(vec![192; POINTS]), present: None };
    batch.rows.columns = vec![Column { values: Values::Doubles(values), present: None }, quality];
    batch
}

/// Seconds that this process had on a processor, or by the clock.
struct Seconds(Instant);

impl Seconds {
    fn now(&self) -> f64 {
        let told = std::fs::read_to_string("/proc/self/schedstat").ok();
        let nanoseconds = told.and_then(|told| told.split_whitespace().next()?.parse::<f64>().ok());
        nanoseconds.filter(|told| *told > 0.0).map_or_else(|| self.0.elapsed().as_secs_f64(), |told| told / 1e9)
    }
}

fn measure(path: Option<&Path>, commits: usize, (name, how, late): (&str, How, u64)) -> Outcome<()> {
    let mut writer = writer(path)?;
    let tables = SeriesTables::new();
    writer.begin()?;
    tables.create(&mut writer, TABLE, &KINDS, Options::default())?;
    let keys: Vec<[u8; 4]> = (0..SERIES as u32).map(u32::to_le_bytes).collect();
    tables.number(&mut writer, TABLE, keys.iter().map(|key| key.as_slice()))?;
    writer.commit()?;
    tables.committed(&writer);
    let seconds = Seconds(Instant::now());
    let (mut calling, mut storing, mut committing, mut clock) = (0.0, 0.0, 0.0, 0.0);
    let mut pushed = Batch::new(&KINDS);
    for commit in 0..commits {
        let mut made = batch(how, commit * POINTS / SERIES, late);
        let (begun, by_clock) = (seconds.now(), Instant::now());
        if let How::Calls = how {
            push_each(&made, &mut pushed);
        } else {
            std::mem::swap(&mut made, &mut pushed);
        }
        let called = seconds.now();
        writer.begin()?;
        tables.insert(&mut writer, TABLE, &pushed)?;
        let stored = seconds.now();
        writer.commit()?;
        tables.committed(&writer);
        writer.begin()?;
        tables.maintain(&mut writer)?;
        writer.commit()?;
        tables.committed(&writer);
        (calling, storing, committing) =
            (calling + called - begun, storing + stored - called, committing + seconds.now() - stored);
        clock += by_clock.elapsed().as_secs_f64();
        witness::reset();
    }
    let points = (commits * POINTS) as f64;
    let begun = seconds.now();
    let mut scan = tables.scan(writer.snapshot(), TABLE, None, Span::ALL)?;
    let mut read = 0;
    while let Some(block) = scan.next()? {
        read += block.points.len();
    }
    let read = read as f64 / 1e6 / (seconds.now() - begun);
    let bytes = tables.pages(&writer, TABLE)?.iter().sum::<u64>() as f64 * 4096.0 / points;
    let all = calling + storing + committing;
    let [called, stored, committed] = [calling, storing, committing].map(|part| part * 1e9 / points);
    let (rate, by_clock) = (points / 1e6 / all, points / 1e6 / clock);
    println!(
        "| {name} | {late} % | {rate:.1} | {called:.1} + {stored:.1} + {committed:.1} | {read:.0} | {bytes:.2} | {by_clock:.1} |"
    );
    Ok(())
}

/// What a caller with one point at a time does, who keeps the batch from commit to commit.
fn push_each(points: &Batch, batch: &mut Batch) {
    batch.clear();
    let [values, quality] = &points.rows.columns[..] else { return };
    if let (Values::Doubles(values), Values::Integers(quality)) = (&values.values, &quality.values) {
        for (row, series) in points.series.iter().enumerate() {
            batch.push_row(*series, points.rows.times[row], (values[row], quality[row]));
        }
    }
}
