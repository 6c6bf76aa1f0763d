//! The database: a measurement for each sort of series, a tag with the number of the series, and the value and its quality as
//! fields.
//!
//! A batch is Chronix's unit of acknowledgement: `insert_batch` returns when its record of the log is synced
//! (`FsyncPolicy::PerBatch`, its default), and there is no commit beside it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use chronix::prelude::*;

use crate::{Failure, SERIES, Tuple};

/// Its times are nanoseconds, the benchmark's milliseconds.
pub const NANOSECONDS: i64 = 1_000_000;
/// Memory for segments, as much as all peers have.
const CACHE_BYTES: usize = 256 << 20;
const MEASUREMENTS: [&str; 2] = ["analog", "boolean"];
/// The column with the number of the series, as a text.
pub const TAG: &str = "series";

/// A database, and the keys of all series.
pub struct Engine {
    pub database: Chronix,
    keys: [Vec<SeriesKey>; 2],
    /// Whether memory tables have something that no segment has.
    is_fresh: Cell<bool>,
}

fn nanoseconds(time: i64) -> i64 {
    time.saturating_mul(NANOSECONDS)
}

fn tags(series: u32) -> BTreeMap<String, String> {
    BTreeMap::from([(TAG.to_owned(), series.to_string())])
}

impl Engine {
    /// Opens an empty database in a folder.
    pub fn create(folder: &Path) -> Result<Engine, Failure> {
        let config = ChronixConfig::builder()
            .data_dir(folder)
            .wal_fsync_policy(FsyncPolicy::PerBatch)
            .segment_cache_size(CACHE_BYTES)
            .enable_last_value_cache(true)
            // One measurement is all there before the other begins, at the same times.
            .ooo_shard_tolerance(24 * 365)
            .max_query_result_bytes(0)
            .per_query_memory_limit(0)
            .query_timeout(Duration::ZERO)
            .build()?;
        let keys = |measurement: &str| {
            (0..SERIES).map(|series| SeriesKey::new(measurement, tags(series))).collect::<Result<Vec<_>, _>>()
        };
        let [analog, boolean] = MEASUREMENTS.map(keys);
        let keys = [analog?, boolean?];
        Ok(Engine { database: Chronix::open(config)?, keys, is_fresh: Cell::new(false) })
    }

    fn point(&self, sort: usize, tuple: &Tuple) -> Result<Point, Failure> {
        let key = self.keys[sort].get(tuple.series as usize).ok_or("a series too many")?.clone();
        let value = if sort == 0 { FieldValue::F64(tuple.value) } else { FieldValue::Bool(tuple.value != 0.0) };
        let quality = FieldValue::U64(u64::from(tuple.quality));
        let fields = BTreeMap::from([("value".to_owned(), value), ("quality".to_owned(), quality)]);
        Ok(Point::new(key, fields, nanoseconds(tuple.time))?)
    }

    /// Stores tuples durably; those that change are written once more, and the last one counts. What is older than the two
    /// hours that may come out of order is `is_old`.
    pub fn insert(&self, sort: usize, tuples: &[Tuple], is_old: bool) -> Result<(), Failure> {
        let points = tuples.iter().map(|tuple| self.point(sort, tuple)).collect::<Result<Vec<Point>, Failure>>()?;
        self.is_fresh.set(true);
        loop {
            let stored = if is_old { self.database.backfill(&points) } else { self.database.insert_batch(&points) };
            match stored {
                // Nothing was stored: its thread has to write the memory table out first.
                Err(DbError::TransientOverload { .. }) => sleep(Duration::from_millis(1)),
                Err(error) => return Err(error.into()),
                Ok(result) if result.is_complete() => return Ok(()),
                Ok(result) => return Err(format!("{} points were not taken", result.rejected.len()).into()),
            }
        }
    }

    /// Deletes single tuples; each is durable when its call returns.
    pub fn delete(&self, sort: usize, tuples: &[Tuple]) -> Result<(), Failure> {
        for tuple in tuples {
            let time = nanoseconds(tuple.time);
            let request = self.database.delete_builder().measurement(MEASUREMENTS[sort]);
            let request = request.tag(TAG, &tuple.series.to_string()).range(time, time).build()?;
            if !self.database.execute_delete(&request)?.is_complete() {
                return Err("a deletion that is not complete".into());
            }
        }
        Ok(())
    }

    /// The newest tuple of all series that have one.
    pub fn newest(&self, sort: usize) -> Result<Vec<Tuple>, Failure> {
        let last = |series| self.database.last_value(MEASUREMENTS[sort], &tags(series)).map(|point| (series, point));
        let found = (0..SERIES).map(last).collect::<Result<Vec<_>, DbError>>()?;
        found.iter().filter_map(|(series, point)| Some((series, point.as_ref()?))).map(tuple).collect()
    }

    /// Puts everything in order, as it does by itself in the course of time.
    pub fn settle(&self) -> Result<(), Failure> {
        self.database.flush()?;
        while self.database.compact()? > 0 {}
        self.database.gc()?;
        Ok(())
    }

    /// A question about a span of all series, both ends within. The first one after a change writes the memory tables out: each
    /// question goes through all that these hold of its span, whatever series it asks for.
    pub fn all_within(&self, sort: usize, (first, last): (i64, i64)) -> Result<QueryBuilder, Failure> {
        if self.is_fresh.replace(false) {
            self.database.flush()?;
        }
        Ok(self.database.query().measurement(MEASUREMENTS[sort]).range(nanoseconds(first), nanoseconds(last)))
    }

    /// The same of one series.
    pub fn within(&self, sort: usize, series: u32, span: (i64, i64)) -> Result<QueryBuilder, Failure> {
        Ok(self.all_within(sort, span)?.tag(TAG, series.to_string()))
    }
}

fn tuple((series, point): (&u32, &Point)) -> Result<Tuple, Failure> {
    let mut tuple = Tuple { series: *series, quality: 0, time: point.timestamp() / NANOSECONDS, value: 0.0 };
    for (name, field) in point.fields() {
        match (&**name, field) {
            ("value", FieldValue::F64(value)) => tuple.value = *value,
            ("value", FieldValue::Bool(value)) => tuple.value = f64::from(u8::from(*value)),
            ("quality", FieldValue::U64(quality)) => tuple.quality = u8::try_from(*quality)?,
            (name, _) => return Err(format!("a field {name} that nobody wrote").into()),
        }
    }
    Ok(tuple)
}
