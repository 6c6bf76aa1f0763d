//! What can be counted, and so is the same on every machine: bytes a point, what is written for them, and how many pages.

use counterfoil_flash::{Geometry, MemoryDevice};

use crate::Failure;
use crate::ours::{self, Ours, Pace};
use crate::sizes::Sizes;
use crate::store::{Store, bytes_in};
use crate::system::System;
use crate::workload::{Clock, SERIES, Signal, Sort, Stream, TUPLE_BYTES};

const GEOMETRY: Geometry =
    Geometry { page_bytes: 4096, block_pages: 64, block_count: 1 << 20, erase_before_program: false, grows: true };
const SLICE: usize = 1 << 14;
/// Tuples after which all stores commit where no rate is stated: those of 100 ms at ten million a second.
const ROUND: usize = 1_000_000;

/// A store of ours in memory.
fn in_memory() -> Result<Ours, Failure> {
    let (writer, counts) = ours::create_on(MemoryDevice::new(GEOMETRY)?, 64)?;
    Ours::over(writer, counts)
}

/// Inserts, and commits whenever so many tuples have come.
fn load(store: &mut dyn Store, stream: &mut Stream, points: u64, commit_tuples: usize) -> Result<(), Failure> {
    let (mut left, mut tuples) = (points as usize, Vec::new());
    while left > 0 {
        stream.fill(&mut tuples, left.min(commit_tuples));
        left -= tuples.len();
        for slice in tuples.chunks(SLICE) {
            store.insert(Sort::Analog, slice)?;
        }
        store.commit()?;
    }
    Ok(())
}

const SIGNALS: [(&str, Signal, Clock); 4] = [
    ("decimal walk", Signal::Walk, Clock::Regular),
    ("decimal walk, jitter", Signal::Walk, Clock::Jitter),
    ("21-bit white noise", Signal::Noise, Clock::Regular),
    ("slow signal", Signal::Slow, Clock::Regular),
];

/// Bytes a point on storage, of everybody who is there.
pub fn bytes(sizes: &Sizes) -> Result<(), Failure> {
    println!("### Bytes a point on storage\n");
    println!(
        "{} points of {SERIES} series, inserted in order; whole folders, after each store has put itself in order.",
        sizes.points
    );
    println!("{ROUND} are committed together. Ours is sealed, in leaves: pages of leaves and nodes alone.\n");
    println!("| store | {} |\n|{}", SIGNALS.map(|(name, ..)| name).join(" | "), "---|".repeat(SIGNALS.len() + 1));
    let a_point = |bytes: u64| format!("{:.2}", bytes as f64 / sizes.points as f64);
    let mut in_leaves = Vec::new();
    for (_, signal, clock) in SIGNALS {
        let mut ours = in_memory()?;
        load(&mut ours, &mut Stream::with(Sort::Analog, SERIES, signal, clock), sizes.points, ROUND)?;
        in_leaves.push(a_point(ours.pages(Sort::Analog)?.iter().sum::<u64>() * u64::from(GEOMETRY.page_bytes)));
    }
    println!("| ours, in leaves | {} |", in_leaves.join(" | "));
    for system in sizes.systems.iter().filter(|system| **system != System::OursColumns) {
        let mut cells = Vec::new();
        for (_, signal, clock) in SIGNALS {
            let folder = tempfile::tempdir_in(&sizes.folder)?;
            let Some(mut store) = system.create(folder.path(), Pace::Commits)? else { break };
            load(&mut *store, &mut Stream::with(Sort::Analog, SERIES, signal, clock), sizes.points, ROUND)?;
            store.settle()?;
            drop(store);
            cells.push(a_point(bytes_in(folder.path())?));
        }
        match cells.is_empty() {
            true => eprintln!("{}: not there ({})", system.name(), system.how_to_get()),
            false => println!("| {} | {} |", system.name(), cells.join(" | ")),
        }
    }
    println!();
    Ok(())
}

/// Write amplification, by how many tuples are acknowledged together.
pub fn writing(sizes: &Sizes) -> Result<(), Failure> {
    println!("### What is written\n");
    println!(
        "{} points of {SERIES} series (decimal walk, jitter) in a memory that counts; tuples of 100 ms are committed together. Leaf",
        sizes.points
    );
    println!("bytes: pages of the leaves there are. All else: frames, the journal of open points, checkpoints.\n");
    println!(
        "| tuples/s | late | leaf + inner over leaf bytes | all else over leaf bytes | device over user bytes | flushes a commit | average distance of leaves |"
    );
    println!("|{}", "---|".repeat(7));
    for late in [0, 5] {
        for rate in [1000, 10_000, 100_000, 1_000_000, 10_000_000] {
            write_at(sizes.points.min(rate * 1000), rate, late)?;
        }
    }
    println!();
    Ok(())
}

fn write_at(points: u64, rate: u64, late: u64) -> Result<(), Failure> {
    let mut ours = in_memory()?;
    let mut stream = Stream::new(Sort::Analog, SERIES);
    stream.be_late(late);
    let (begun, flushes) = (ours.counts.bytes(), ours.counts.flushes());
    load(&mut ours, &mut stream, points, (rate / 10) as usize)?;
    let (device, flushes) = (ours.counts.bytes() - begun, ours.counts.flushes() - flushes);
    let pools = ours.pools()?;
    let pages = pools.iter().map(|pool| pool.pages_written).sum::<u64>() * u64::from(GEOMETRY.page_bytes);
    let leaves = (ours.pages(Sort::Analog)?[0] * u64::from(GEOMETRY.page_bytes)) as f64;
    let distance = pools.iter().map(|pool| pool.distances.pages).sum::<u64>() as f64
        / pools.iter().map(|pool| pool.distances.writes).sum::<u64>().max(1) as f64;
    println!(
        "| {rate} | {late} % | {:.3} | {:.3} | {:.2} | {:.2} | {distance:.2} |",
        pages as f64 / leaves,
        (device - pages) as f64 / leaves,
        device as f64 / (points * TUPLE_BYTES) as f64,
        flushes as f64 / points.div_ceil(rate / 10) as f64,
    );
    Ok(())
}

/// Pages by kind, beside what the paper's Property 1 says: k/L leaves and k/(L(F-1)) nodes for k ordered points.
pub fn pages() -> Result<(), Failure> {
    println!("### Pages that k ordered points write (Property 1)\n");
    println!("One series, pages of 512 bytes; L and F as measured: points for each leaf, entries of each node.\n");
    println!("| k | L | F | leaves | k/L | nodes | k/(L(F-1)) | written anew |\n|{}", "---|".repeat(8));
    for points in [1_000_000, 3_000_000, 10_000_000] {
        let geometry = Geometry { page_bytes: 512, block_pages: 512, ..GEOMETRY };
        let (writer, counts) = ours::create_on(MemoryDevice::new(geometry)?, 64)?;
        let mut ours = Ours::over(writer, counts)?;
        let mut stream = Stream::with(Sort::Analog, 1, Signal::Noise, Clock::Jitter);
        load(&mut ours, &mut stream, points, ROUND)?;
        let pages = ours.pages(Sort::Analog)?;
        let written: u64 = ours.pools()?.iter().map(|pool| pool.pages_written).sum();
        let under = ours.pages_under_nodes(Sort::Analog)?;
        let (leaves, nodes) = (pages[0], pages[1..].iter().sum::<u64>());
        // Less than a leaf of points is in none yet.
        let (k, l) = (points as f64, points as f64 / leaves as f64);
        let f = under as f64 / nodes.max(1) as f64;
        println!(
            "| {points} | {l:.1} | {f:.1} | {leaves} | {:.0} | {nodes} | {:.1} | {} |",
            k / l,
            k / (l * (f - 1.0)),
            written - leaves - nodes
        );
    }
    println!();
    Ok(())
}
