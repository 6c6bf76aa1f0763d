//! A series table as a thing of its own, for programs that write points and read them without SQL.

use std::ops::RangeInclusive;
use std::sync::Arc;

use counterfoil_relation::Table;
use counterfoil_sql::series_engine::Span;
use counterfoil_sql::{PointWriter, SeriesReader, is_series, series_count, series_newest};
use datafusion::arrow::array::RecordBatch;

pub use counterfoil_sql::{Cursor, Written};

use crate::connection::{Connection, Value, full};
use crate::database::{Database, Inner};
use crate::error::{Error, Kind, Result};
use crate::relation::ColumnInfo;

/// Points that wait in a writer before it commits them by itself.
const POINTS_MAX: usize = 1 << 17;

/// A series table of a database.
///
/// Times are integers in the unit of the table's column: microseconds since 1970-01-01 UTC, nanoseconds for TIMESTAMP(9).
#[derive(Clone)]
pub struct Series {
    database: Database,
    table: Arc<Table>,
}

impl Series {
    pub(crate) fn new(database: &Database, name: &str) -> Result<Self> {
        database.require_process()?;
        let table = database.inner.engine.relations().table(&database.snapshot()?, name)?;
        let table = table.ok_or_else(|| Error::new(Kind::NotFound, format!("no table {name}")))?;
        if !is_series(&table) {
            let advice = "relation() is for other tables, or make it WITH (engine = 'series')";
            return Err(Error::new(Kind::Misuse, format!("{name} is no series table")).advise(advice));
        }
        Ok(Self { database: database.clone(), table })
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// Its columns, in order.
    #[must_use]
    pub fn columns(&self) -> Vec<ColumnInfo> {
        crate::schema::columns(&self.table)
    }

    /// Points in it, without reading them, and whether that is exact: changes of what is old are counted when they are merged.
    ///
    /// # Errors
    /// Those of reading.
    pub fn count(&self) -> Result<(u64, bool)> {
        let count = series_count(self.database.inner.engine.series(), &self.database.snapshot()?, &self.table)?;
        Ok(count.unwrap_or((0, true)))
    }

    /// Begins to write.
    ///
    /// # Errors
    /// Those of connecting, [`Kind::NotFound`] if the table was dropped.
    pub fn writer(&self) -> Result<SeriesWriter> {
        let mut connection = self.database.connect()?;
        let points = connection.point_writer(self.name())?;
        Ok(SeriesWriter { connection, points, written: Written::default() })
    }

    /// The points of one series, named by a value for each column of the key but the time, or of all series one after the other, as they
    /// are now: within a span of time, in its order.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for another number of values, and those of reading.
    pub fn read(&self, key: Option<&[Value]>, times: RangeInclusive<i64>) -> Result<SeriesRows> {
        self.database.require_process()?;
        let span = Span { first: *times.start(), last: *times.end() };
        let engine = &self.database.inner.engine;
        let reader = SeriesReader::part(engine.series(), self.database.snapshot()?, &self.table, key, span)?;
        Ok(SeriesRows { reader, inner: self.database.inner.clone() })
    }

    /// The newest point of a series, as a batch of one row; none where it has none.
    ///
    /// # Errors
    /// As [`Series::read`].
    pub fn newest(&self, key: &[Value]) -> Result<Option<RecordBatch>> {
        let engine = &self.database.inner.engine;
        let mut until = match series_newest(engine.series(), &self.database.snapshot()?, &self.table, key)? {
            Some(time) => time,
            None => return Ok(None),
        };
        // That point may have been deleted: then it is looked for in ever greater spans before.
        let mut span = 0_i64;
        loop {
            let from = until.saturating_sub(span);
            let mut last = None;
            for batch in self.read(Some(key), from..=until)? {
                last = Some(batch?).filter(|batch| batch.num_rows() > 0).or(last);
            }
            if let Some(batch) = last {
                return Ok(Some(batch.slice(batch.num_rows() - 1, 1)));
            }
            if from == i64::MIN {
                return Ok(None);
            }
            (until, span) = (from - 1, span.saturating_mul(16).max(1 << 20));
        }
    }
}

impl std::fmt::Debug for Series {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Series").field("name", &self.name()).finish_non_exhaustive()
    }
}

/// Writes points into a series table, one by one and without a statement.
///
/// What is pushed waits in memory; [`SeriesWriter::commit`] makes it durable. When 131,072 points wait they are committed by
/// themselves, as one. What waits when the writer is dropped is not stored.
///
/// ```
/// # fn main() -> Result<(), counterfoil::Error> {
/// # let key = counterfoil::Key::from_hex(&"00".repeat(32))?;
/// # let database = counterfoil::Database::create(counterfoil::Options::memory().key(key))?;
/// # database.connect()?.run("CREATE TABLE readings (sensor TEXT, ts TIMESTAMP, value DOUBLE PRECISION, quality SMALLINT,
/// #     PRIMARY KEY (sensor, ts)) WITH (engine = 'series')", &[])?;
/// use counterfoil::Value;
/// let readings = database.series("readings")?;
/// let mut writer = readings.writer()?;
/// let boiler = writer.cursor(&[Value::Text("boiler".into())])?;
/// for second in 0..3600 {
///     writer.push(boiler, second * 1_000_000, &[Value::Double(81.5), Value::Integer(192)])?;
/// }
/// assert_eq!(writer.commit()?.points, 3600);
/// # Ok(())
/// # }
/// ```
pub struct SeriesWriter {
    connection: Connection,
    points: PointWriter,
    /// By commits that it made by itself.
    written: Written,
}

impl SeriesWriter {
    /// The write cursor of a series: a value for each column of the key but the time.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for another number of values, [`Kind::Constraint`] for values that the columns do not take.
    pub fn cursor(&mut self, key: &[Value]) -> Result<Cursor> {
        Ok(self.points.cursor(key)?)
    }

    /// Adds a point: its time, and a value for each column that is not of the key, in order. A point with the time of one that is there
    /// takes its place, unless the table refuses that (`on_duplicate`).
    ///
    /// # Errors
    /// [`Kind::Misuse`] for a cursor of another writer and another number of values, [`Kind::Constraint`] for values that the columns do
    /// not take: then the point is left out. Where enough points wait, those of [`SeriesWriter::commit`].
    pub fn push(&mut self, cursor: Cursor, time: i64, values: &[Value]) -> Result<()> {
        if self.points.waiting() >= POINTS_MAX {
            self.write()?;
        }
        Ok(self.points.push(cursor, time, values)?)
    }

    /// Makes all that was pushed durable, and answers what became of it since the last call.
    ///
    /// # Errors
    /// Those of writing, [`Kind::Misuse`] if the table was changed: then nothing of what waits is there, and it goes on waiting, for
    /// another call or [`SeriesWriter::discard`].
    pub fn commit(&mut self) -> Result<Written> {
        self.write()?;
        Ok(std::mem::take(&mut self.written))
    }

    /// Points that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.points.waiting()
    }

    /// Forgets what waits.
    pub fn discard(&mut self) {
        self.points.discard();
    }

    fn write(&mut self) -> Result<()> {
        self.written += self.connection.write_points(&mut self.points)?;
        Ok(())
    }
}

impl std::fmt::Debug for SeriesWriter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SeriesWriter").field("waiting", &self.waiting()).finish_non_exhaustive()
    }
}

/// Points of a series table as record batches with the table's columns.
pub struct SeriesRows {
    reader: Option<SeriesReader>,
    inner: Arc<Inner>,
}

impl Iterator for SeriesRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.inner.store.process().require() {
            return Some(Err(error));
        }
        let next = self.reader.as_mut()?.next();
        if next.is_err() {
            // What comes behind a page that cannot be read would look as if nothing were missing.
            self.reader = None;
        }
        next.transpose().map(|batch| batch.map_err(|error| full(&self.inner, error)))
    }
}

impl std::fmt::Debug for SeriesRows {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SeriesRows")
    }
}
