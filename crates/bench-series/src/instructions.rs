//! Instructions of an insert into a small and a large store, counted by valgrind: the paper's Property 3 says that an insert
//! costs the same however much is there.

use std::path::Path;
use std::process::Command;

use crate::Failure;
use crate::ours::{Ours, Pace, Way};
use crate::sizes::number;
use crate::store::Store;
use crate::workload::{SERIES, Sort, Stream};

/// Points whose inserts are counted: some forty leaves of each series and a dozen journals, so that where in a leaf and in a
/// journal they begin and end says little.
const COUNTED: u64 = 10_000_000;
/// Tuples that are committed together: those of 100 ms at a million a second.
const COMMIT: usize = 100_000;
const SLICE: usize = 1 << 14;
/// A hidden word that makes this program the one that is counted.
pub const COUNT: &str = "count-inserts";

/// Prints instructions for each size.
pub fn print(words: &[&str], folder: &Path) -> Result<(), Failure> {
    let sizes = match words {
        [] => vec![1_000_000, 100_000_000],
        words => words.iter().map(|word| number(word)).collect::<Result<Vec<u64>, _>>()?,
    };
    println!("### Instructions of an insert (Property 3)\n");
    println!(
        "Of {COUNTED} inserts in order, {COMMIT} to a commit, sealing and journal and all, into a file that holds as many points as the first"
    );
    println!("column says, and was opened before; counted by valgrind --tool=callgrind.\n");
    println!("| points there | instructions an insert | over the first |\n|---|---|---|");
    let mut first = None;
    for points in sizes {
        let folder = tempfile::tempdir_in(folder)?;
        let mut ours = Ours::create(folder.path(), Way::Points, Pace::Commits)?;
        insert(&mut ours, &mut Stream::new(Sort::Analog, SERIES), points)?;
        ours.settle()?;
        drop(ours);
        let each = callgrind(folder.path(), points)? as f64 / COUNTED as f64;
        let ratio = each / *first.get_or_insert(each);
        println!("| {points} | {each:.0} | {ratio:.3} |");
    }
    println!();
    Ok(())
}

fn insert(ours: &mut Ours, stream: &mut Stream, points: u64) -> Result<(), Failure> {
    let (mut left, mut tuples) = (points as usize, Vec::new());
    while left > 0 {
        stream.fill(&mut tuples, left.min(COMMIT));
        left -= tuples.len();
        counted_insert(ours, &tuples)?;
    }
    Ok(())
}

/// What is counted: valgrind is told this name.
#[inline(never)]
fn counted_insert(ours: &mut Ours, tuples: &[crate::workload::Tuple]) -> Result<(), Failure> {
    for slice in tuples.chunks(SLICE) {
        ours.insert(Sort::Analog, slice)?;
    }
    ours.commit()
}

/// Instructions of the counted inserts.
fn callgrind(folder: &Path, points: u64) -> Result<u64, Failure> {
    let run = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg("--toggle-collect=*counted_insert*")
        .arg(std::env::current_exe()?)
        .args([COUNT, &points.to_string()])
        .arg(folder)
        .output()
        .map_err(|error| format!("valgrind does not run: {error} (Debian: valgrind)"))?;
    let said = String::from_utf8_lossy(&run.stderr);
    let collected = said.lines().find_map(|line| line.split_once("Collected :")).map(|(_, number)| number.trim());
    match collected.map(str::parse) {
        Some(Ok(instructions)) if run.status.success() => Ok(instructions),
        _ => Err(format!("valgrind: {said}").into()),
    }
}

/// The inserts that are counted, into the database in a folder.
pub fn count(points: u64, folder: &Path) -> Result<(), Failure> {
    let mut stream = Stream::new(Sort::Analog, SERIES);
    stream.skip(points);
    let mut ours = Ours::open(folder, Way::Points, Pace::Commits)?;
    // Reads the journal: that belongs to the opening.
    ours.newest(Sort::Analog)?;
    insert(&mut ours, &mut stream, COUNTED)
}
