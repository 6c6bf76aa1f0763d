//! Memory and opening with 10,000 series and 200 million points in a sealed file, as after a power cut:
//!
//! ```text
//! cargo run --release -p counterfoil-series --example many_series -- write FILE [SERIES] [POINTS OF EACH]
//! cargo run --release -p counterfoil-series --example many_series -- open FILE
//! ```
//! `write` ends without closing, as a power cut would; `open` is another process, so that each tells its own memory. The key is
//! the same one always: no secrets go in here.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use counterfoil_flash::{FileDevice, Geometry, Read};
use counterfoil_log::{Counting, Layout, Media, NoPins, Recovered, Settings, Writer, create};
use counterfoil_series::{Batch, Column, Kind, Options, Points, SeriesTables, Span, TableNumber, Value, Values};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, Suite, SystemEntropy, Vault, VolumeKey, witness};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];
const TABLE: TableNumber = TableNumber(1);
/// Points of each series that come in one commit.
const POINTS_IN_A_COMMIT: usize = 10;
const CACHE_BYTES: usize = 16 << 20;
const GEOMETRY: Geometry =
    Geometry { page_bytes: 4096, block_pages: 256, block_count: 1 << 12, erase_before_program: false, grows: true };

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, default| arguments.get(at).map_or(Ok(default), |text| text.parse::<usize>());
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["write", path, ..] => write(Path::new(path), number(2, 10_000)?, number(3, 20_000)?),
        ["open", path] => open(Path::new(path)),
        _ => Err("write FILE [SERIES] [POINTS OF EACH], or open FILE".into()),
    }
}

fn vault() -> Outcome<Arc<Vault>> {
    let mut entropy = DangerFixedEntropy::seeded(1);
    let key = VolumeKey::generate(&mut entropy)?;
    Ok(Arc::new(Vault::new(&key, DatabaseId::generate(&mut entropy)?, Suite::Aes256GcmSiv)))
}

fn settings() -> Settings {
    Settings { counter: None, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None }
}

fn layout(device: &FileDevice) -> Outcome<Layout> {
    Ok(Layout::new(&device.geometry(), 256, 8)?)
}

/// The most memory that this process had at a time, and what it has, in MiB.
fn memory() -> (f64, f64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let of = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.split_whitespace().nth(1).and_then(|kilobytes| kilobytes.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
    };
    (of("VmHWM"), of("VmRSS"))
}

/// Seconds that this process had on a processor, where the kernel tells it.
fn processor() -> f64 {
    let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    told.split_whitespace().next().and_then(|nanoseconds| nanoseconds.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

fn told(what: &str, tables: &SeriesTables) {
    let (most, now) = memory();
    let open = tables.open_bytes() as f64 / 1048576.0;
    println!("{what}: {open:.1} MiB of open points, the process has {now:.0} MiB and had {most:.0} at most");
}

/// Sensors of four kinds, so that leaves of different series are full at different times.
fn values(series: usize, from: usize, points: &mut Points) {
    let start = 1_700_000_000_000_000 + (series as i64 * 7919) % 1_000_000;
    for at in from..from + POINTS_IN_A_COMMIT {
        let noise = ((at * 10_007 + series) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        points.times.push(start + at as i64 * 1_000_000 + (noise % 1000) as i64);
        let value = match series % 4 {
            0 => (20_000 + at % 997 + (noise % 33) as usize) as f64 / 100.0,
            1 => (noise % (1 << 12)) as f64 / 16.0,
            2 => (at / 50) as f64 / 10.0,
            _ => (at * (1 + series % 100) + (noise % 16) as usize) as f64,
        };
        let [values, quality] = &mut points.columns[..] else { return };
        push(values, quality, value);
    }
}

fn push(values: &mut Column, quality: &mut Column, value: f64) {
    if let (Values::Doubles(values), Values::Integers(quality)) = (&mut values.values, &mut quality.values) {
        values.push(value);
        quality.push(192);
    }
}

fn write(path: &Path, series: usize, points: usize) -> Outcome<()> {
    let device = FileDevice::create_new(path, GEOMETRY)?;
    let layout = layout(&device)?;
    let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device) };
    let mut writer = create(media, vault()?, layout, settings(), &mut SystemEntropy, 0, CACHE_BYTES)?;
    let tables = SeriesTables::new();
    writer.begin()?;
    tables.create(&mut writer, TABLE, &KINDS, Options::default())?;
    let keys: Vec<String> = (0..series).map(|number| format!("plant/line/{number:05}")).collect();
    tables.number(&mut writer, TABLE, keys.iter().map(String::as_bytes))?;
    commit(&tables, &mut writer)?;
    let (begun, mut most) = (Instant::now(), 0);
    for from in (0..points).step_by(POINTS_IN_A_COMMIT) {
        let mut batch = Batch::new(&KINDS);
        for series in 0..series {
            batch.series.resize(batch.series.len() + POINTS_IN_A_COMMIT, series as u32);
            values(series, from, &mut batch.rows);
        }
        writer.begin()?;
        tables.insert(&mut writer, TABLE, &batch)?;
        commit(&tables, &mut writer)?;
        writer.begin()?;
        tables.maintain(&mut writer)?;
        commit(&tables, &mut writer)?;
        most = most.max(tables.open_bytes());
    }
    let all = (series * points) as f64 / 1e6;
    println!("{all:.0} M points of {series} series in {:.1} s", begun.elapsed().as_secs_f64());
    println!("at most {:.1} MiB of open points", most as f64 / 1048576.0);
    told("written", &tables);
    Ok(())
}

fn commit(tables: &SeriesTables, writer: &mut Writer) -> Outcome<()> {
    writer.commit()?;
    tables.committed(writer);
    // The tests of this crate have every sealing remembered, and so has an example.
    witness::reset();
    Ok(())
}

fn open(path: &Path) -> Outcome<()> {
    let begun = Instant::now();
    let device = FileDevice::open(path, GEOMETRY)?;
    let recovered = Recovered::recover(Arc::new(device.clone()), vault()?, layout(&device)?, CACHE_BYTES)?;
    let mut writer = recovered.open(Box::new(device), settings(), &mut SystemEntropy)?;
    let log = begun.elapsed().as_secs_f64();
    let tables = SeriesTables::new();
    let (points, is_exact) = tables.count(&writer, TABLE)?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("opened in {seconds:.2} s, {log:.2} of them the log; {:.2} s on a processor", processor());
    println!("{points} points, exact: {is_exact}");
    told("opened", &tables);
    let begun = Instant::now();
    writer.begin()?;
    let is_turned = tables.maintain(&mut writer)?;
    commit(&tables, &mut writer)?;
    println!("journal begun anew: {is_turned}, {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let mut scan = tables.scan(writer.snapshot(), TABLE, None, Span::ALL)?;
    let mut read = 0;
    while let Some(block) = scan.next()? {
        read += block.points.len() as u64;
    }
    println!("{read} points scanned at {:.1} M/s", read as f64 / 1e6 / begun.elapsed().as_secs_f64());
    assert_eq!(read, points, "all points are there");
    told("scanned", &tables);
    change_one_by_one(&tables, &mut writer)
}

/// What a change of one point costs while somebody reads the commit before it: the state is copied for each.
fn change_one_by_one(tables: &SeriesTables, writer: &mut Writer) -> Outcome<()> {
    let series = tables.keys(writer, TABLE)?.len();
    let (changes, mut storing) = (2000, std::time::Duration::ZERO);
    for change in 0..changes {
        let reader = tables.scan(writer.snapshot(), TABLE, None, Span::ALL)?;
        let mut batch = Batch::new(&KINDS);
        let value = [Some(Value::Double(1.0)), Some(Value::Integer(192))];
        batch.push((change * 7919 % series) as u32, 1_900_000_000_000_000 + change as i64, value);
        writer.begin()?;
        let begun = Instant::now();
        tables.insert(writer, TABLE, &batch)?;
        storing += begun.elapsed();
        commit(tables, writer)?;
        drop(reader);
    }
    println!("one point a change under a reader: {:.1} us", storing.as_secs_f64() * 1e6 / changes as f64);
    told("changed", tables);
    Ok(())
}
