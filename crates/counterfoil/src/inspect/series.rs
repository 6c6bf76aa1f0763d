//! How a series table is kept.

use std::sync::Arc;

use counterfoil_log::{Report, Snapshot, WriteDistances};
use counterfoil_sql::series_engine::SeriesTables;

use crate::error::Result;

/// A page of a series table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesPage {
    /// The number of its write: writes of a table are counted from 1.
    pub write: u64,
    /// Where it is among the table's pages.
    pub page: u64,
    /// Whether it holds points; otherwise it tells where others are.
    pub is_leaf: bool,
}

/// How a series table is kept.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SeriesUse {
    /// The table.
    pub table: String,
    /// Series it has.
    pub series: usize,
    /// Its points, without those that are late and not merged yet.
    pub points: u64,
    /// Points of these that no leaf has yet: they are in the journal.
    pub open_points: u64,
    /// Late points and deletions that are not merged into leaves yet.
    pub late_points: u64,
    /// Pages that hold points.
    pub leaves: u64,
    /// Pages that tell where others are.
    pub nodes: u64,
    /// Bytes that its pages take on the medium, its journal and the names of its series.
    pub bytes: u64,
    /// Bytes of these that are the journal.
    pub journal_bytes: u64,
    /// Pages set aside for it, in use or not.
    pub pool_pages: u64,
    /// Pages written since it was made: with `leaves` and `nodes` it tells how often one was written anew.
    pub pages_written: u64,
    /// Pages from one write to the next on average (Chronos, 2.2: 1 for neighbours), among the newest 65,536 pages.
    pub write_distance: f64,
    /// Writes by their distance: 1, 2, 3 to 4, 5 to 8 and so on; the last one all that are further.
    pub write_distances: Vec<u64>,
    /// The newest pages, 65,536 at most, in the order in which they were written.
    pub newest: Vec<SeriesPage>,
}

impl SeriesUse {
    /// Bytes on the medium for each point.
    #[must_use]
    pub fn bytes_per_point(&self) -> f64 {
        self.bytes as f64 / self.points.max(1) as f64
    }

    /// Pages written for each that is there.
    #[must_use]
    pub fn write_amplification(&self) -> f64 {
        self.pages_written as f64 / (self.leaves + self.nodes).max(1) as f64
    }
}

/// That of a table; none if it is of another kind.
pub(super) fn of(
    table: &Arc<counterfoil_relation::Table>,
    tables: &SeriesTables,
    snapshot: &Snapshot,
    report: &Report,
) -> Result<Option<SeriesUse>> {
    let Some(survey) = counterfoil_sql::series_survey(tables, snapshot, table)? else { return Ok(None) };
    let pool = report.pools.iter().find(|pool| pool.id == survey.pool);
    let (pool_pages, pages_written) = pool.map_or((0, 0), |pool| (pool.pages, pool.writes));
    let distances = WriteDistances::of_writes(survey.newest.iter().map(|page| (*page).into()), pool_pages);
    let (leaves, nodes) = (survey.pages[0], survey.pages[1..].iter().sum::<u64>());
    let page_bytes = u64::from(report.layout.page_bytes);
    Ok(Some(SeriesUse {
        table: table.name.clone(),
        series: survey.series,
        points: survey.points_in_leaves + survey.open_points,
        open_points: survey.open_points,
        late_points: survey.late_points,
        leaves,
        nodes,
        bytes: (leaves + nodes) * page_bytes + survey.journal_bytes + survey.name_bytes,
        journal_bytes: survey.journal_bytes,
        pool_pages,
        pages_written,
        write_distance: distances.average(),
        write_distances: distances.histogram.to_vec(),
        newest: survey.newest.iter().map(page).collect(),
    }))
}

fn page(page: &counterfoil_sql::series_engine::Page) -> SeriesPage {
    SeriesPage { write: page.write, page: page.page, is_leaf: page.level == 0 }
}
