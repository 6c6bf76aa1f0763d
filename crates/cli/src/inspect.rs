//! `inspect`: what is in the file, in words and as a picture.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use counterfoil::{Error, IndexUse, Inspection, Lack, Region, Room, SeriesUse, TableUse, utc};

use crate::arguments::Inspect;
use crate::begun::Begun;
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::{image, picture, terminal};

pub fn run(context: &Context, arguments: &Inspect) -> Result<()> {
    if image::is_one(&arguments.db)? {
        return match arguments.svg {
            Some(_) => Err(misuse("there is no picture of a device's image").advise("leave --svg out").into()),
            None => image::run_inspect(context, &arguments.db),
        };
    }
    let database = context.open_to_read(&arguments.db)?;
    let inspection = database.inspect()?;
    show(&inspection, &arguments.db).map_err(Failure::output)?;
    if let Some(path) = &arguments.svg {
        let drawn = picture::draw(&inspection, &arguments.db);
        write_picture(path, &drawn).map_err(|error| Error::host("write the picture", path.display(), &error))?;
        terminal::done(format_args!("{} shows the map of the file", path.display()));
    }
    Ok(())
}

/// A picture that cannot be written leaves no part of it where nothing was before.
fn write_picture(path: &Path, drawn: &str) -> io::Result<()> {
    let begun = (!path.exists()).then(|| Begun::at(path));
    std::fs::write(path, drawn)?;
    begun.into_iter().for_each(Begun::finish);
    Ok(())
}

fn show(inspection: &Inspection, db: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let out = &mut stdout;
    let limit = inspection.size_limit.map_or("none".into(), bytes);
    line(out, "database", format_args!("{db}, format {}, made {}", inspection.format, utc(inspection.created)))?;
    line(out, "identity", &inspection.id)?;
    line(out, "cipher", inspection.cipher)?;
    line(
        out,
        "shape",
        format_args!(
            "pages of {}, extents of {}, limit {limit}, on the medium {}",
            bytes(u64::from(inspection.page_bytes)),
            bytes(extent_bytes(inspection)),
            bytes(inspection.medium_bytes)
        ),
    )?;
    line(
        out,
        "commit",
        format_args!(
            "{}, version {}, {} openings still needed",
            inspection.commit, inspection.version, inspection.epochs
        ),
    )?;
    line(out, "counter", counter(inspection))?;
    line(out, "exposure", exposure(inspection))?;
    for (region, counts) in regions(inspection) {
        line(
            out,
            "region",
            format_args!(
                "{region}: {} extents, {}, {} filled",
                counts.extents,
                bytes(counts.extents * extent_bytes(inspection)),
                percent(counts.live_pages, counts.extents * u64::from(inspection.extent_pages))
            ),
        )?;
    }
    let stored: u64 = inspection.containers.iter().map(|container| container.bytes).sum();
    let runs: usize = inspection.containers.iter().map(|container| container.runs).sum();
    let containers = inspection.containers.len();
    line(out, "containers", format_args!("{containers}, {} in {runs} runs of pages", bytes(stored)))?;
    line(out, "records", format_args!("{}, {}", inspection.records, bytes(inspection.record_bytes)))?;
    for (table, rows) in &inspection.tables {
        line(out, "table", format_args!("{table}: {rows} rows"))?;
    }
    for (table, source) in &inspection.published {
        let counterfoil::Source { server, owner, table: of, .. } = source;
        line(out, "published", format_args!("{table}: table {of} of {owner}, from {server}"))?;
    }
    for (table, at) in &inspection.dispersed {
        line(out, "dispersed", format_args!("{table}: {} rows at clouds {}", at.rows, at.clouds.join(", ")))?;
    }
    for (table, figures) in &inspection.relations {
        show_relation(out, table, figures, inspection.room)?;
    }
    for series in &inspection.series {
        show_series(out, series)?;
    }
    for (table, points) in &inspection.kept_apart {
        line(
            out,
            "kept apart",
            format_args!("{points} points ahead of the clock, of table {table}: see future.{table}"),
        )?;
    }
    line(out, "incidents", format_args!("{}", inspection.incidents))?;
    line(out, "on rollback", on_rollback(inspection))?;
    line(out, "wear", "not known: a file does not tell how often its flash was erased")?;
    line(out, "lifetime", "not known: it follows from the wear")?;
    line(
        out,
        "amplification",
        format_args!(
            "{:.2} bytes on the medium for each byte kept",
            inspection.medium_bytes as f64 / (stored + inspection.record_bytes).max(1) as f64
        ),
    )?;
    out.flush()
}

/// How a table of rows is kept, and what rewriting it would cost and gain.
fn show_relation(out: &mut impl Write, table: &str, of: &TableUse, room: Room) -> io::Result<()> {
    let filled = percent(of.rows, of.rows + of.deleted);
    line(
        out,
        "rows",
        format_args!(
            "{table}: {} in {} segments, {filled} there; {} deleted and {} updated in logs of {}",
            bytes(of.row_bytes),
            of.segments,
            of.deleted,
            of.updates,
            bytes(of.log_bytes)
        ),
    )?;
    for index in &of.indexes {
        let runs: Vec<String> = tiers(index).map(|(tier, count)| format!("{count} of tier {tier}")).collect();
        let runs = if runs.is_empty() { "none".to_owned() } else { runs.join(", ") };
        let merging = match index.made_bytes {
            0 => String::new(),
            made => format!("; a merge is under way, {} of it made", bytes(made)),
        };
        line(
            out,
            "index",
            format_args!(
                "{}: {}, runs: {runs}{merging}; {} new rows in none yet",
                index.name,
                bytes(index.bytes()),
                index.fresh_rows
            ),
        )?;
    }
    match of.rewrite_bytes() {
        0 => line(out, "reorganize", format_args!("{table}: nothing to gain")),
        written => {
            let (written, freed) = (bytes(written), bytes(of.freed_bytes()));
            // What is looked up is looked for in each of them.
            let runs = of.indexes.iter().map(|index| index.runs.len()).max().unwrap_or(0);
            let runs = if runs > 1 { format!(", with one run where an index has {runs}") } else { String::new() };
            line(
                out,
                "reorganize",
                format_args!("{table}: VACUUM writes about {written} and leaves it {freed} smaller{runs}"),
            )
        }
    }?;
    match of.lacks(room) {
        None => Ok(()),
        Some(Lack { needed_bytes, left_bytes }) => line(
            out,
            "no room",
            format_args!(
                "{table}: {} have to be free for that, and {} are; delete rows, drop what is not needed, or copy it into a larger one",
                bytes(needed_bytes),
                bytes(left_bytes)
            ),
        ),
    }
}

/// How many runs an index has of each tier, the largest tier first.
fn tiers(index: &IndexUse) -> impl Iterator<Item = (u8, usize)> + '_ {
    let count = |tier: u8| index.runs.iter().filter(|run| run.tier == tier).count();
    (0..=u8::MAX).rev().map(move |tier| (tier, count(tier))).filter(|(_, count)| *count > 0)
}

/// How a series table is kept.
fn show_series(out: &mut impl Write, of: &SeriesUse) -> io::Result<()> {
    let SeriesUse { table, series, points, open_points, late_points, .. } = of;
    let compressed = format!("{} on the medium, {:.2} bytes a point", bytes(of.bytes), of.bytes_per_point());
    line(
        out,
        "series",
        format_args!(
            "{table}: {series} series, {points} points ({open_points} in no page yet) and {late_points} late, {compressed}"
        ),
    )?;
    let inner = 100.0 * of.nodes as f64 / of.leaves.max(1) as f64;
    line(
        out,
        "pages",
        format_args!(
            "{table}: {} with points, {} above them ({inner:.1} %); {} written, {:.2} for each that stands",
            of.leaves,
            of.nodes,
            of.pages_written,
            of.write_amplification()
        ),
    )?;
    let writes: u64 = of.write_distances.iter().sum();
    match writes {
        0 => line(
            out,
            "write distance",
            format_args!("{table}: not known: no two pages written one after the other stand"),
        ),
        _ => line(
            out,
            "write distance",
            format_args!(
                "{table}: {:.1} pages from write to write, {} to the neighbour",
                of.write_distance,
                percent(of.write_distances[0], writes)
            ),
        ),
    }
}

/// A line of what there is to tell.
pub fn line(out: &mut impl Write, name: &str, value: impl std::fmt::Display) -> io::Result<()> {
    writeln!(out, "{name:14} {value}")
}

fn counter(inspection: &Inspection) -> String {
    match (inspection.counter, inspection.counter_value) {
        ("none", _) => "none: an older copy put back is not noticed".into(),
        (kind, Some(value)) => format!("{kind}, at {value}"),
        (kind, None) => format!("{kind}, absent here"),
    }
}

/// What becomes of an older image that is put back.
fn on_rollback(inspection: &Inspection) -> String {
    match (inspection.on_rollback, inspection.rollbacks) {
        (("record", limit), rollbacks) => format!("record, up to {limit}; {rollbacks} not accepted"),
        ((refuse, _), 0) => refuse.to_owned(),
        ((refuse, _), rollbacks) => format!("{refuse}; {rollbacks} recorded and not accepted"),
    }
}

/// What of the acknowledged could be undone without being noticed.
fn exposure(inspection: &Inspection) -> String {
    match (inspection.counter, inspection.counter_value) {
        ("none", _) => "everything: no counter tells the newest image".into(),
        (_, None) => "everything: the counter is not here".into(),
        (_, Some(value)) if value >= inspection.version => "nothing: every commit is counted".into(),
        _ => "the commits of the last second, until they are counted together".into(),
    }
}

#[derive(Default)]
struct Counts {
    extents: u64,
    live_pages: u64,
}

fn regions(inspection: &Inspection) -> Vec<(&'static str, Counts)> {
    let mut counts: BTreeMap<usize, Counts> = BTreeMap::new();
    for extent in &inspection.extents {
        let (order, _) = region(extent.region);
        let entry = counts.entry(order).or_default();
        entry.extents += 1;
        let whole = matches!(extent.region, Region::Fixed | Region::Spine);
        entry.live_pages += u64::from(if whole { inspection.extent_pages } else { extent.live_pages });
    }
    counts.into_iter().map(|(order, counts)| (NAMES[order], counts)).collect()
}

const NAMES: [&str; 5] = ["headers and record store", "spine of commits", "tables and indexes", "series", "free"];

/// Where a region stands among the others, and what it is called.
pub fn region(region: Region) -> (usize, &'static str) {
    let order = match region {
        Region::Fixed => 0,
        Region::Spine => 1,
        Region::Group(_) => 2,
        Region::Pool(_) => 3,
        _ => 4,
    };
    (order, NAMES[order])
}

pub fn extent_bytes(inspection: &Inspection) -> u64 {
    u64::from(inspection.page_bytes) * u64::from(inspection.extent_pages)
}

fn percent(part: u64, whole: u64) -> String {
    format!("{} %", part * 100 / whole.max(1))
}

/// Bytes for people.
pub fn bytes(bytes: u64) -> String {
    let units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 1024.0 && unit + 1 < units.len() {
        value /= 1024.0;
        unit += 1;
    }
    if value.fract() == 0.0 { format!("{value} {}", units[unit]) } else { format!("{value:.1} {}", units[unit]) }
}
