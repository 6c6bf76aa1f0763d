//! Our store: series over the log over the vault and a medium, sealed with AES-256-GCM-SIV and with a counter, as the program
//! makes a database.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use counterfoil_flash::{Device, FileDevice, Geometry};
use counterfoil_log::{Counting, Layout, Media, NoPins, PoolUse, Recovered, Settings, Snapshot, Writer, create};
use counterfoil_series::{Batch, Column, Kind, Options, Points, SeriesTables, TableNumber, Values};
use counterfoil_vault::{Counter, DatabaseId, FileCounter, MemoryCounter, Suite, SystemEntropy, Tag, Vault, VolumeKey};

use crate::Failure;
use crate::counted::{Counted, Counts};
use crate::query::{Answer, Fold, Folding};
use crate::store::{Span, Store};
use crate::workload::{SERIES, Sort, Tuple};

/// The medium of a new database that may grow large: crates/counterfoil/src/medium.rs.
const GEOMETRY: Geometry =
    Geometry { page_bytes: 4096, block_pages: 64, block_count: 1 << 30, erase_before_program: false, grows: true };
/// The same: extents of the record store's window at first. It does not grow here: 100 M points need a hundredth of it.
const WINDOW_EXTENTS: u32 = 8;
const CACHE_BYTES: usize = 64 << 20;
/// One step of the counter for all commits of so many milliseconds.
const GROUP_MILLISECONDS: u64 = 1000;
/// A commit has the tuples of so many milliseconds.
const COMMIT_MILLISECONDS: u64 = 100;

/// How tuples are handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// One call for each.
    Points,
    /// Whole columns.
    Columns,
}

/// What tells a database how late it is, and so when its counter steps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// The machine's clock.
    Wall,
    /// Commits: each is as late as its acknowledgement may be, so that a run repeats exactly.
    Commits,
}

/// Keys and shape of a database, which its header would hold.
#[derive(Clone)]
pub struct Names {
    vault: Arc<Vault>,
    layout: Layout,
}

impl Names {
    /// Of a medium, always the same: nothing here is secret.
    pub fn of(geometry: &Geometry, window_extents: u32) -> Result<Names, Failure> {
        let (key, id) = (VolumeKey::from_bytes(&[7; 32]), DatabaseId([9; 32]));
        let layout = Layout::new(geometry, geometry.block_pages, window_extents)?;
        Ok(Names { vault: Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv)), layout })
    }
}

fn settings(counter: Box<dyn Counter + Send>, pace: Pace, counts: &Arc<Counts>) -> Settings {
    let (begun, counts) = (Instant::now(), counts.clone());
    let clock = Box::new(move || match pace {
        Pace::Wall => begun.elapsed().as_millis() as u64,
        Pace::Commits => counts.milliseconds(),
    });
    let counting = Counting::Every { milliseconds: GROUP_MILLISECONDS, clock };
    Settings { counter: Some(counter), counting, pins: Box::new(NoPins), headers: None }
}

/// A writer over a new database on any medium, with a counter in memory and a clock that goes on when the counts are told.
pub fn create_on<D>(device: D, window_extents: u32) -> Result<(Writer, Arc<Counts>), Failure>
where
    D: Device + Clone + Send + Sync + 'static,
{
    let names = Names::of(&device.geometry(), window_extents)?;
    let counts = Arc::new(Counts::default());
    let writer = Box::new(Counted { below: device.clone(), counts: counts.clone() });
    let media = Media { reader: Arc::new(device), writer };
    let settings = settings(Box::new(MemoryCounter::at(0, None)), Pace::Commits, &counts);
    let writer = create(media, names.vault, names.layout, settings, &mut SystemEntropy, 0, CACHE_BYTES)?;
    Ok((writer, counts))
}

/// What a store of ours was given and what it wrote. Tuples are gathered, and stored together when they are committed.
pub struct Ours {
    pub writer: Writer,
    pub tables: SeriesTables,
    pub counts: Arc<Counts>,
    way: Way,
    pace: Pace,
    /// Of each sort: what is not stored yet.
    gathered: [Batch; 2],
}

const fn table(sort: Sort) -> TableNumber {
    match sort {
        Sort::Analog => TableNumber(1),
        Sort::Boolean => TableNumber(2),
    }
}

const fn kinds(sort: Sort) -> [Kind; 2] {
    match sort {
        Sort::Analog => [Kind::Double, Kind::Integer],
        Sort::Boolean => [Kind::Integer, Kind::Integer],
    }
}

impl Ours {
    /// A new database in a folder, with a file counter.
    pub fn create(folder: &Path, way: Way, pace: Pace) -> Result<Ours, Failure> {
        let names = Names::of(&GEOMETRY, WINDOW_EXTENTS)?;
        let path = folder.join("series.db");
        let device = FileDevice::create_new(&path, GEOMETRY)?;
        let mut counter = FileCounter::new(&folder.join("state"), &path, &names.vault);
        counter.adopt(0, &Tag::default())?;
        let counts = Arc::new(Counts::default());
        let below = Box::new(Counted { below: device.clone(), counts: counts.clone() });
        let media = Media { reader: Arc::new(device), writer: below };
        let settings = settings(Box::new(counter), pace, &counts);
        let writer = create(media, names.vault, names.layout, settings, &mut SystemEntropy, 0, CACHE_BYTES)?;
        Ours { writer, tables: SeriesTables::new(), counts, way, pace, gathered: none() }.with_tables()
    }

    /// The database in a folder.
    pub fn open(folder: &Path, way: Way, pace: Pace) -> Result<Ours, Failure> {
        let names = Names::of(&GEOMETRY, WINDOW_EXTENTS)?;
        let path = folder.join("series.db");
        let device = FileDevice::open(&path, GEOMETRY)?;
        let mut counter = FileCounter::new(&folder.join("state"), &path, &names.vault);
        counter.hold(std::time::Duration::ZERO)?;
        let recovered = Recovered::recover(Arc::new(device.clone()), names.vault, names.layout, CACHE_BYTES)?;
        let counts = Arc::new(Counts::default());
        let below = Box::new(Counted { below: device, counts: counts.clone() });
        let settings = settings(Box::new(counter), pace, &counts);
        let writer = recovered.open(below, settings, &mut SystemEntropy)?;
        Ok(Ours { writer, tables: SeriesTables::new(), counts, way, pace, gathered: none() })
    }

    /// Over a writer that was made with these counts.
    pub fn over(writer: Writer, counts: Arc<Counts>) -> Result<Ours, Failure> {
        let (tables, gathered) = (SeriesTables::new(), none());
        Ours { writer, tables, counts, way: Way::Points, pace: Pace::Commits, gathered }.with_tables()
    }

    fn with_tables(mut self) -> Result<Ours, Failure> {
        self.writer.begin()?;
        let keys: Vec<[u8; 4]> = (0..SERIES).map(u32::to_be_bytes).collect();
        for sort in Sort::BOTH {
            self.tables.create(&mut self.writer, table(sort), &kinds(sort), Options::default())?;
            self.tables.number(&mut self.writer, table(sort), keys.iter().map(|key| key.as_slice()))?;
        }
        self.commit()?;
        Ok(self)
    }

    /// Pages of each level of the trees of a table, leaves first.
    pub fn pages(&mut self, sort: Sort) -> Result<Vec<u64>, Failure> {
        Ok(self.tables.pages(&self.writer.snapshot(), table(sort))?)
    }

    /// How the pages of both tables were written.
    pub fn pools(&self) -> Result<Vec<PoolUse>, Failure> {
        let pools = self.writer.report().pools;
        pools.iter().map(|pool| Ok(self.writer.pool_use(pool.id)?)).collect()
    }

    /// Pages of the tree of the first series that stand in a node, and not in the edge.
    pub fn pages_under_nodes(&mut self, sort: Sort) -> Result<u64, Failure> {
        let view = self.writer.snapshot();
        let edge: usize = self.tables.levels(&view, table(sort), 0)?.iter().sum();
        let pages: u64 = self.tables.pages(&view, table(sort))?.iter().sum();
        Ok(pages - edge as u64)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        if !self.writer.is_active() {
            self.writer.begin()?;
        }
        Ok(())
    }

    /// Stores what was gathered.
    fn store(&mut self) -> Result<(), Failure> {
        for (sort, batch) in Sort::BOTH.into_iter().zip(&mut self.gathered) {
            if !batch.is_empty() {
                self.tables.insert(&mut self.writer, table(sort), batch)?;
                batch.clear();
            }
        }
        Ok(())
    }
}

fn none() -> [Batch; 2] {
    Sort::BOTH.map(|sort| Batch::new(&kinds(sort)))
}

fn push_points(sort: Sort, tuples: &[Tuple], batch: &mut Batch) {
    for tuple in tuples {
        let quality = i64::from(tuple.quality);
        match sort {
            Sort::Analog => batch.push_row(tuple.series, tuple.time, (tuple.value, quality)),
            Sort::Boolean => batch.push_row(tuple.series, tuple.time, (tuple.value as i64, quality)),
        }
    }
}

fn append_columns(sort: Sort, tuples: &[Tuple], batch: &mut Batch) {
    let value = match sort {
        Sort::Analog => Values::Doubles(tuples.iter().map(|tuple| tuple.value).collect()),
        Sort::Boolean => Values::Integers(tuples.iter().map(|tuple| tuple.value as i64).collect()),
    };
    let quality = Values::Integers(tuples.iter().map(|tuple| i64::from(tuple.quality)).collect());
    let columns = [value, quality].map(|values| Column { values, present: None });
    let rows = Points { times: tuples.iter().map(|tuple| tuple.time).collect(), columns: columns.into() };
    batch.series.extend(tuples.iter().map(|tuple| tuple.series));
    batch.rows.append(&rows, 0..tuples.len());
}

impl Store for Ours {
    fn insert(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.begin()?;
        let batch = &mut self.gathered[usize::from(sort == Sort::BOTH[1])];
        match self.way {
            Way::Points => push_points(sort, tuples, batch),
            Way::Columns => append_columns(sort, tuples, batch),
        }
        Ok(())
    }

    fn delete(&mut self, sort: Sort, tuples: &[Tuple]) -> Result<(), Failure> {
        self.begin()?;
        self.store()?;
        let mut gone = Batch::new(&[]);
        tuples.iter().for_each(|tuple| gone.push(tuple.series, tuple.time, []));
        Ok(self.tables.delete(&mut self.writer, table(sort), &gone)?)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        if self.pace == Pace::Commits {
            self.counts.pass(COMMIT_MILLISECONDS);
        }
        self.begin()?;
        self.store()?;
        self.writer.commit()?;
        self.tables.committed(&self.writer);
        self.writer.begin()?;
        if self.tables.maintain(&mut self.writer)? {
            self.writer.commit()?;
            self.tables.committed(&self.writer);
        } else {
            self.writer.rollback();
        }
        Ok(())
    }

    fn fold(&mut self, sort: Sort, series: u32, span: Span, fold: Fold) -> Result<Answer, Failure> {
        fold_of(&self.tables, self.writer.snapshot(), (sort, series), span, fold)
    }

    fn newest(&mut self, sort: Sort) -> Result<Vec<Tuple>, Failure> {
        let (view, all): (_, Vec<u32>) = (self.writer.snapshot(), (0..SERIES).collect());
        let times = self.tables.newest(&view, table(sort), &all)?;
        let keys: Vec<(u32, i64)> =
            all.into_iter().zip(times).filter_map(|(series, time)| Some((series, time?))).collect();
        let found = self.tables.find(&view, table(sort), &keys)?;
        let [values, qualities] = [0, 1].map(|column: usize| &found.points.columns[column].values);
        let tuple = |(at, (series, time)): (usize, &(u32, i64))| {
            let (value, quality) = (number(values, at), number(qualities, at) as u8);
            found.there[at].then_some(Tuple { series: *series, time: *time, value, quality })
        };
        Ok(keys.iter().enumerate().filter_map(tuple).collect())
    }

    fn settle(&mut self) -> Result<(), Failure> {
        self.commit()?;
        self.writer.checkpoint()?;
        Ok(self.writer.close()?)
    }
}

fn number(values: &Values, at: usize) -> f64 {
    match values {
        Values::Integers(values) => values[at] as f64,
        Values::Doubles(values) => values[at],
        Values::Texts(_) => f64::NAN,
    }
}

fn fold_of(
    tables: &SeriesTables,
    view: Snapshot,
    (sort, series): (Sort, u32),
    span: Span,
    fold: Fold,
) -> Result<Answer, Failure> {
    let span = counterfoil_series::Span { first: span.first, last: span.last };
    let mut scan = tables.scan(view, table(sort), Some(vec![series]), span)?;
    let mut folding = Folding::new(fold);
    while let Some(block) = scan.next()? {
        let [value, quality] = &block.points.columns[..] else {
            return Err("a table of two columns has others".into());
        };
        let Values::Integers(quality) = &quality.values else { return Err("a quality that is no integer".into()) };
        let times = &block.points.times;
        match &value.values {
            Values::Doubles(values) => folding.take_columns(times, values.iter().copied(), quality),
            Values::Integers(values) => folding.take_columns(times, values.iter().map(|value| *value as f64), quality),
            Values::Texts(_) => return Err("a value that is a text".into()),
        }
    }
    Ok(folding.answer())
}
