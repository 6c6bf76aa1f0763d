//! The paper's Figures 2 and 3 on the simulated stick of `flash-sim`, and what inserts cost there on its counted clock.
//!
//! The stick's prices are those of the average card of MILo-DB: 104 us for a page, 135 ms more where a write goes to another
//! erase unit of the stick's own and does not follow the page before. That unit is 512 KB here, and no flush lies.

use std::path::Path;

use counterfoil_bench_figures::{Axis, Curve, Look, RGBColor};
use counterfoil_flash::{Device, PageNumber};
use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};
use counterfoil_log::PoolOptions;

use crate::Failure;
use crate::ours::{self, Ours};
use crate::plots::figure;
use crate::store::Store;
use crate::workload::{Dice, SERIES, Sort, Stream};

const PAGE_BYTES: u32 = 4096;
const EXTENT_PAGES: u32 = 64;
const EXTENTS: u64 = 4096;
/// Pages of an erase unit of the stick's own.
const UNIT_PAGES: u32 = 128;
/// Pages that are written anew at random for Figure 3, and how often one is.
const LOGICAL_PAGES: usize = 2000;
const OVERWRITES: usize = 6000;
/// Those of them that are committed together.
const COMMIT: usize = 100;

const OWN: RGBColor = RGBColor(20, 90, 170);
const THEIRS: RGBColor = RGBColor(190, 60, 40);

fn stick() -> SimulatedDevice {
    let part = Part { lying_flushes: None, ..Part::stick(PAGE_BYTES, EXTENT_PAGES, EXTENTS, UNIT_PAGES) };
    SimulatedDevice::new(part, Scenario::calm(1))
}

/// Prints the tables.
pub fn print() -> Result<(), Failure> {
    println!("### Duration of a write by its distance, on the simulated stick (Figure 2)\n");
    println!(
        "Counted milliseconds; the distance is in pages of {PAGE_BYTES} bytes, negative where addresses go down.\n"
    );
    let (distances, durations): (Vec<_>, Vec<_>) =
        figure_2([1, 2, 4, 8, 16, 32, 64, 128, 256, -1, -8, -64, -256].into_iter())?
            .into_iter()
            .map(|(distance, duration)| (distance.to_string(), format!("{duration:.2}")))
            .unzip();
    println!("| distance | {} |\n|{}", distances.join(" | "), "---|".repeat(distances.len() + 1));
    println!("| ms a write | {} |\n", durations.join(" | "));
    println!("### Where writes go, on the simulated stick (Figure 3)\n");
    println!(
        "{LOGICAL_PAGES} pages, {OVERWRITES} of them written anew at random, {COMMIT} to a commit; pages of the pool alone.\n"
    );
    println!("| kept free | average distance | 50 / percent kept free | within 16 pages |\n|---|---|---|---|");
    for percent in [5, 10, 20, 30, 50] {
        let found = nameless(percent)?;
        let near = found.near * 100.0;
        println!("| {percent} % | {:.1} | {:.1} | {near:.0} % |", found.distance, 50.0 / f64::from(percent));
    }
    println!();
    inserts()
}

/// Draws both figures.
pub fn draw(folder: &Path) -> Result<(), Failure> {
    let points = figure_2((-256..=256).step_by(4).chain([-1, 1]))?;
    let mut points: Vec<_> = points.into_iter().map(|(distance, duration)| (distance as f64, duration)).collect();
    points.sort_by(|one, other| one.0.total_cmp(&other.0));
    let distances = figure(
        "Influence of distance on write duration, simulated stick (Figure 2)",
        Axis::plain("distance, pages of 4 KB", -256.0..256.0),
        Axis::plain("milliseconds, counted", 0.0..150.0),
        vec![Curve::new("simulated stick", Look::Line(OWN), points)],
    );
    distances.draw(&folder.join("series-distance.svg"))?;
    let mut dice = Dice::new(5);
    let in_place = (0..400).map(|at| (f64::from(at), dice.below(LOGICAL_PAGES as u64) as f64)).collect();
    let found = nameless(10)?;
    let first = *found.trace.iter().min().unwrap_or(&0);
    let last = &found.trace[found.trace.len().saturating_sub(400)..];
    let redirected = last.iter().enumerate().map(|(at, page)| (at as f64, (page - first) as f64)).collect();
    let writes = figure(
        "Random writes as they are asked for, and as they are made with a tenth kept free (Figure 3)",
        Axis::plain("write", 0.0..400.0),
        Axis::plain("page of the stick", 0.0..f64::from(LOGICAL_PAGES as u32) * 1.3),
        vec![
            Curve::new("in place", Look::Crosses(THEIRS), in_place),
            Curve::new("nameless", Look::Discs(OWN), redirected),
        ],
    );
    Ok(writes.draw(&folder.join("series-writes.svg"))?)
}

/// Milliseconds of a write at each distance from the one before, addresses taken as a circle.
fn figure_2(distances: impl Iterator<Item = i64>) -> Result<Vec<(i64, f64)>, Failure> {
    let pages = (EXTENTS * u64::from(EXTENT_PAGES)) as i64;
    let page = vec![7; PAGE_BYTES as usize];
    let mut durations = Vec::new();
    for distance in distances.filter(|distance| *distance != 0) {
        let (mut device, writes) = (stick(), 2000);
        for write in 0..writes {
            let at = (write * distance).rem_euclid(pages);
            device.program(PageNumber(at as u64), &page)?;
        }
        durations.push((distance, device.nanoseconds() as f64 / writes as f64 / 1e6));
    }
    Ok(durations)
}

/// How pages were written that a pool was given at random.
struct Nameless {
    distance: f64,
    /// The share of writes that were at most 16 pages behind the one before.
    near: f64,
    /// Pages of the medium, in the order in which they were written; without those of frames.
    trace: Vec<u64>,
}

fn nameless(free_percent: u8) -> Result<Nameless, Failure> {
    let (mut writer, counts) = ours::create_on(stick(), 16)?;
    writer.begin()?;
    let pool = writer.create_pool(PoolOptions { free_percent })?;
    let payload = vec![7; writer.payload_bytes()];
    let mut pages = Vec::new();
    for _ in 0..LOGICAL_PAGES {
        pages.push(writer.write_nameless(pool, &payload)?);
    }
    writer.commit()?;
    let (mut dice, before) = (Dice::new(5), writer.pool_use(pool)?.distances);
    counts.follow();
    let mut trace = Vec::new();
    for _ in 0..OVERWRITES / COMMIT {
        writer.begin()?;
        for _ in 0..COMMIT {
            let at = dice.below(LOGICAL_PAGES as u64) as usize;
            let written = writer.write_nameless(pool, &payload)?;
            writer.free_nameless(pool, std::mem::replace(&mut pages[at], written))?;
        }
        trace.extend(counts.followed());
        writer.commit()?;
        counts.follow();
    }
    let after = writer.pool_use(pool)?.distances;
    let writes = (after.writes - before.writes).max(1) as f64;
    let near: u64 = after.histogram[..5].iter().zip(&before.histogram[..5]).map(|(after, before)| after - before).sum();
    Ok(Nameless { distance: (after.pages - before.pages) as f64 / writes, near: near as f64 / writes, trace })
}

/// What inserts cost on the stick.
fn inserts() -> Result<(), Failure> {
    println!("### Inserts on the simulated stick\n");
    println!(
        "{SERIES} series in order (decimal walk, jitter), sealed, on the counted clock. In place: each page at the price of a scattered write,"
    );
    println!("as a tree that overwrites its pages pays. The paper measured 899 K tuples/s on its stick.\n");
    println!(
        "| tuples to a commit | tuples | pages written | of them scattered | counted seconds | tuples/s | the same pages in place, tuples/s |"
    );
    println!("|{}", "---|".repeat(7));
    for (commit, points) in [(1000, 200_000), (10_000, 1_000_000), (100_000, 5_000_000), (1_000_000, 10_000_000)] {
        let device = stick();
        let (writer, counts) = ours::create_on(device.clone(), 16)?;
        let mut store = Ours::over(writer, counts)?;
        let (before, mut stream, mut tuples) = (device.meters(), Stream::new(Sort::Analog, SERIES), Vec::new());
        for _ in 0..points / commit {
            stream.fill(&mut tuples, commit);
            store.insert(Sort::Analog, &tuples)?;
            store.commit()?;
        }
        let spent = device.meters().since(&before);
        let prices = device.part().prices;
        let seconds = spent.nanoseconds(&prices) as f64 / 1e9;
        let in_place = spent.programs as f64 * (prices.program_page + prices.scattered_program) as f64 / 1e9;
        let rate = |seconds: f64| crate::tables::rate(points as f64 / seconds);
        println!(
            "| {commit} | {points} | {} | {} | {seconds:.1} | {} | {} |",
            spent.programs,
            spent.scattered_programs,
            rate(seconds),
            rate(in_place)
        );
    }
    println!();
    Ok(())
}
