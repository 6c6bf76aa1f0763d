//! What a database looks like from inside.

mod series;

use std::sync::Arc;

use counterfoil_log::{Owner, Report, Room, Snapshot};
use counterfoil_relation::{Table, TableUse};
use counterfoil_sql::AtClouds;
pub use counterfoil_sql::Source;
use counterfoil_vault::CounterKind;

use crate::database::Database;
use crate::error::Result;
use crate::rollback::Rollbacks;

pub use series::{SeriesPage, SeriesUse};

/// Who has an extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Region {
    /// The two copies of the header, and the record store's window.
    Fixed,
    /// The chain of commit frames.
    Spine,
    /// Containers that die together, by their group's number.
    Group(u64),
    /// Pages of a nameless pool, by its number.
    Pool(u64),
    /// Nobody.
    Free,
}

/// An extent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Whose it is.
    pub region: Region,
    /// Pages in it that the newest commit needs.
    pub live_pages: u32,
}

/// A container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its number.
    pub number: u64,
    /// The group it dies with.
    pub group: u64,
    /// Bytes in it.
    pub bytes: u64,
    /// Stretches of neighbouring pages.
    pub runs: usize,
}

/// A database from inside.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Inspection {
    /// Its identity, in hex.
    pub id: String,
    /// The version of its byte layout.
    pub format: u16,
    /// The page cipher.
    pub cipher: &'static str,
    /// The kind of its counter.
    pub counter: &'static str,
    /// When it was made, in seconds since 1970.
    pub created: u64,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages in an extent.
    pub extent_pages: u32,
    /// How large it may become; nothing for no limit.
    pub size_limit: Option<u64>,
    /// Bytes that the medium has now.
    pub medium_bytes: u64,
    /// The newest commit.
    pub commit: u64,
    /// Its version, which the counter is compared with.
    pub version: u64,
    /// What the counter stands at, if it can be read.
    pub counter_value: Option<u64>,
    /// Openings for writing whose pages are still needed.
    pub epochs: usize,
    /// Room for what is to be written anew, where it cannot grow or can grow no further.
    pub room: Room,
    /// Every extent.
    pub extents: Vec<Extent>,
    /// Every container.
    pub containers: Vec<Container>,
    /// Records of all kinds.
    pub records: usize,
    /// Bytes of their names and values.
    pub record_bytes: u64,
    /// Tables with their rows.
    pub tables: Vec<(String, u64)>,
    /// Published tables of others, and where their rows come from.
    pub published: Vec<(String, Source)>,
    /// Dispersed tables, and what is known here of their rows.
    pub dispersed: Vec<(String, AtClouds)>,
    /// How the tables that are no series are kept, by name.
    pub relations: Vec<(String, TableUse)>,
    /// How series tables are kept.
    pub series: Vec<SeriesUse>,
    /// Series tables that keep points apart which were ahead of the clock, and how many.
    pub kept_apart: Vec<(String, u64)>,
    /// What the owner must be told of.
    pub incidents: usize,
    /// What becomes of an image that the counter has left behind: `refuse` or `record`, and how often at most.
    pub on_rollback: (&'static str, u32),
    /// How often such images were gone on from and no person has accepted it yet.
    pub rollbacks: u32,
}

impl Database {
    /// What it looks like from inside, as of the newest commit.
    ///
    /// # Errors
    /// Those of reading.
    pub fn inspect(&self) -> Result<Inspection> {
        self.require_process()?;
        let volume = self.volume();
        let report = volume.recover()?.report();
        let snapshot = self.snapshot()?;
        let setting = counterfoil_sql::OnRollback::of(&snapshot)?;
        let relations = self.inner.engine.relations();
        let tables = self.tables(&snapshot)?;
        let rows = |table| match counterfoil_sql::series_count(self.inner.engine.series(), &snapshot, table)? {
            Some((points, _)) => Ok(points),
            None => Ok::<_, crate::Error>(relations.count(&snapshot, table)?),
        };
        let is_here =
            |table: &&Arc<Table>| !counterfoil_sql::is_published(table) && !counterfoil_sql::is_dispersed(table);
        let here = tables.iter().filter(is_here);
        let counted = here.map(|table| Ok((table.name.clone(), rows(table)?)));
        let source = |table: &Arc<Table>| match Source::of_table(table) {
            Ok(source) => source.map(|source| Ok((table.name.clone(), source))),
            Err(error) => Some(Err(error)),
        };
        let published = tables.iter().filter_map(source).collect::<Result<_, _>>()?;
        let dispersed = at_clouds(&snapshot, &tables)?;
        let kept = tables.iter().map(|table| series::of(table, self.inner.engine.series(), &snapshot, &report));
        let series = kept.filter_map(Result::transpose).collect::<Result<_>>()?;
        let plain = tables.iter().filter(|table| table.engine.is_none());
        let kept = plain.map(|table| Ok((table.name.clone(), relations.figures(&snapshot, table)?)));
        let header = volume.opened().header.clone();
        let counter_value = match header.counter {
            CounterKind::None => None,
            _ => volume.counter()?.and_then(|mut counter| counter.record().ok()).map(|record| record.value),
        };
        Ok(Inspection {
            id: header.id.to_string(),
            format: counterfoil_vault::FORMAT,
            cipher: header.suite.name(),
            counter: header.counter.name(),
            created: header.created,
            page_bytes: report.layout.page_bytes,
            extent_pages: report.layout.extent_pages,
            size_limit: (header.layout.size_limit > 0).then_some(header.layout.size_limit),
            medium_bytes: volume.medium.bytes()?,
            commit: report.commit,
            version: report.version,
            counter_value,
            epochs: report.epochs,
            room: report.room,
            extents: extents(&report),
            containers: containers(&report),
            records: report.records,
            record_bytes: report.record_bytes,
            tables: counted.collect::<Result<_>>()?,
            published,
            dispersed,
            relations: kept.collect::<Result<_>>()?,
            series,
            kept_apart: self.kept_apart(&snapshot)?,
            incidents: self.incidents()?.len(),
            on_rollback: (if setting.records { "record" } else { "refuse" }, setting.limit),
            rollbacks: Rollbacks::of(&snapshot)?.count,
        })
    }
}

fn extents(report: &Report) -> Vec<Extent> {
    let region = |owner: Owner| match owner {
        Owner::Fixed => Region::Fixed,
        Owner::Spine => Region::Spine,
        Owner::Group(group) => Region::Group(group.0),
        Owner::Pool(pool) => Region::Pool(pool.0),
        Owner::Free => Region::Free,
    };
    report.extents.iter().map(|extent| Extent { region: region(extent.owner), live_pages: extent.live_pages }).collect()
}

fn containers(report: &Report) -> Vec<Container> {
    let container = |container: &counterfoil_log::ContainerUse| Container {
        number: container.id.0,
        group: container.group.0,
        bytes: container.bytes,
        runs: container.runs,
    };
    report.containers.iter().map(container).collect()
}

/// The dispersed ones of these tables, and what is known of their rows.
pub(crate) fn at_clouds(snapshot: &Snapshot, tables: &[Arc<Table>]) -> Result<Vec<(String, AtClouds)>> {
    let known = |table: &Arc<Table>| match AtClouds::of(snapshot, table) {
        Ok(known) => known.map(|known| Ok((table.name.clone(), known))),
        Err(error) => Some(Err(error.into())),
    };
    tables.iter().filter_map(known).collect()
}
