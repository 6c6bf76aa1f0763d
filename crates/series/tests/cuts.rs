//! Power fails at each write while points of many series come in, or many of few, some of them late: every point that was
//! acknowledged is there, and summaries equal what is computed from the points.
//!
//! `COUNTERFOIL_PROOF=full` cuts 20,000 points at every write in every way; otherwise a sample of 6,000.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_flash_sim::{Dice, Part, Scenario, SimulatedDevice};
use counterfoil_log::{Counting, Error, Layout, Media, NoPins, Recovered, Settings, Snapshot, Writer, create};
use counterfoil_series::{Batch, Kind, Limits, Options, Question, SeriesTables, Span, Summarized, TableNumber, Value};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey, witness};

const KINDS: [Kind; 2] = [Kind::Double, Kind::Integer];
const TABLE: TableNumber = TableNumber(1);
const LIMITS: Limits = Limits { late_points: 12, journal_bytes: 6000, open_bytes: 30_000 };
const CACHE: usize = 1 << 18;

/// What is stored, and on what.
#[derive(Clone, Copy)]
struct Plan {
    page_bytes: u32,
    series: u32,
    /// Points that each series gets with each commit.
    points: i64,
    /// Columns that have summaries.
    summarized: u32,
    /// Whether the medium is erased by blocks: then pages are relocated.
    is_raw: bool,
}

/// Many series of which few have leaves.
const WIDE: Plan = Plan { page_bytes: 512, series: 50, points: 2, summarized: 0, is_raw: false };
/// Few series whose leaves stand under nodes, with summaries.
const TALL: Plan = Plan { page_bytes: 1024, series: 3, points: 40, summarized: 1, is_raw: false };
/// The same on raw flash.
const RAW: Plan = Plan { is_raw: true, ..TALL };

/// Eight bits that nothing makes fewer: a quarter is good.
fn quality(value: i64) -> i64 {
    value % 256
}

type Model = BTreeMap<(u32, i64), i64>;

fn full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

struct Rig {
    plan: Plan,
    device: SimulatedDevice,
    vault: Arc<Vault>,
    layout: Layout,
    counter: MemoryCounter,
    entropy: DangerFixedEntropy,
}

impl Rig {
    fn new(plan: Plan, scenario: Scenario) -> Rig {
        let part = match plan.is_raw {
            true => Part::nand(plan.page_bytes, 8, 1 << 11),
            false => Part::file(plan.page_bytes, 4, 1 << 14),
        };
        let mut entropy = DangerFixedEntropy::seeded(scenario.seed);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let layout = Layout::new(&part.geometry, 8, 8).unwrap();
        Rig {
            plan,
            device: SimulatedDevice::new(part, scenario),
            vault: Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv)),
            layout,
            counter: MemoryCounter::at(0, None),
            entropy,
        }
    }

    fn settings(&self) -> Settings {
        Settings {
            counter: Some(Box::new(self.counter.clone())),
            counting: Counting::EveryCommit,
            pins: Box::new(NoPins),
            headers: None,
        }
    }

    fn create(&mut self) -> Result<Writer, Error> {
        let media = Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) };
        let settings = self.settings();
        create(media, self.vault.clone(), self.layout, settings, &mut self.entropy, 0, CACHE)
    }

    fn recover(&self) -> Result<Recovered, Error> {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout, CACHE)
    }

    fn open(&mut self) -> Result<Writer, Error> {
        let settings = self.settings();
        self.recover()?.open(Box::new(self.device.clone()), settings, &mut self.entropy)
    }
}

/// Points of one commit: some of each series, some late by a little, a few by much; now and then some are deleted.
fn change(
    plan: Plan,
    tables: &SeriesTables,
    writer: &mut Writer,
    model: &mut Model,
    step: i64,
) -> Result<(), counterfoil_series::Error> {
    let mut dice = Dice::new(step as u64);
    let mut batch = Batch::new(&KINDS);
    let oldest = tables.oldest(writer, TABLE)?;
    for series in 0..plan.series {
        for place in 0..plan.points {
            let late = match dice.below(40) {
                0 => dice.below((step * plan.points) as u64 * 10 + 1) as i64,
                1 | 2 => dice.below(40) as i64,
                _ => 0,
            };
            let time = step * plan.points * 10 + place * 10 + dice.below(7) as i64 - late;
            let value = dice.below(1 << 20) as i64;
            batch.push(series, time, [Some(Value::Double(value as f64 / 16.0)), Some(Value::Integer(quality(value)))]);
            if oldest <= time {
                model.insert((series, time), value);
            }
        }
    }
    tables.insert(writer, TABLE, &batch)?;
    if step % 9 == 0 {
        let mut gone = Batch::new(&[]);
        let (series, from) =
            (dice.below(plan.series.into()) as u32, dice.below((step * plan.points) as u64 * 10) as i64);
        for time in from..from + 200 {
            gone.push(series, time, []);
            model.remove(&(series, time));
        }
        tables.delete(writer, TABLE, &gone)?;
    }
    retain(tables, writer, model, step)
}

/// Now and then the oldest points go: by time, and by space.
fn retain(
    tables: &SeriesTables,
    writer: &mut Writer,
    model: &mut Model,
    step: i64,
) -> Result<(), counterfoil_series::Error> {
    if step % 13 == 0 {
        let oldest = (step * 20 - 700).max(tables.oldest(writer, TABLE)?);
        tables.retain_from(writer, TABLE, oldest, 40)?;
        model.retain(|(_, time), _| oldest <= *time);
    }
    if step % 17 == 0 {
        let dropped = tables.drop_oldest(writer, TABLE, 5)?;
        for (series, before) in dropped.series {
            model.retain(|(of, time), _| *of != series || before <= *time);
        }
    }
    Ok(())
}

fn commit(tables: &SeriesTables, writer: &mut Writer) -> Result<(), Error> {
    writer.commit()?;
    tables.committed(writer);
    Ok(())
}

/// What was acknowledged, and what may stand instead: the commit that was under way.
struct History {
    acknowledged: Model,
    interrupted: Model,
    created: bool,
}

fn play(rig: &mut Rig, commits: i64) -> History {
    let mut history = History { acknowledged: Model::new(), interrupted: Model::new(), created: false };
    let plan = rig.plan;
    let Ok(mut writer) = rig.create() else { return history };
    let mut tables = SeriesTables::with_limits(LIMITS);
    let mut made = || {
        writer.begin().ok()?;
        let summarized = Summarized { columns: (0..plan.summarized).collect(), quality: Some(1) };
        let options = Options { reorder: 15, summarized };
        tables.create(&mut writer, TABLE, &KINDS, options).ok()?;
        let keys: Vec<[u8; 4]> = (0..plan.series).map(u32::to_le_bytes).collect();
        tables.number(&mut writer, TABLE, keys.iter().map(|key| key.as_slice())).ok()?;
        commit(&tables, &mut writer).ok()
    };
    if made().is_none() {
        return history;
    }
    history.created = true;
    for step in 1..=commits {
        history.interrupted = history.acknowledged.clone();
        if writer.begin().is_err() || change(plan, &tables, &mut writer, &mut history.interrupted, step).is_err() {
            return history;
        }
        if commit(&tables, &mut writer).is_err() {
            return history;
        }
        history.acknowledged = history.interrupted.clone();
        let kept =
            writer.begin().is_ok() && tables.maintain(&mut writer).is_ok() && commit(&tables, &mut writer).is_ok();
        if !kept {
            return history;
        }
        if step % 25 == 0 {
            drop(writer);
            tables = SeriesTables::with_limits(LIMITS);
            match rig.open() {
                Ok(opened) => writer = opened,
                Err(_) => return history,
            }
        }
    }
    history
}

fn stored(tables: &SeriesTables, view: Snapshot) -> Result<Model, counterfoil_series::Error> {
    let mut scan = tables.scan(view, TABLE, None, Span::ALL)?;
    let mut stored = Model::new();
    while let Some(block) = scan.next()? {
        for (at, time) in block.points.times.iter().enumerate() {
            let Some(Value::Double(value)) = block.points.columns[0].value(at) else { panic!("a value is missing") };
            let value = (value * 16.0) as i64;
            assert_eq!(block.points.columns[1].value(at), Some(Value::Integer(quality(value))));
            assert_eq!(stored.insert((block.series, *time), value), None, "a point is there twice");
        }
    }
    Ok(stored)
}

/// Asks for sums and extremes of hundreds of points at a time, and computes them from what should be there.
fn check_summaries(tables: &SeriesTables, view: Snapshot, model: &Model) -> Result<(), counterfoil_series::Error> {
    let bucket = |time: i64| time.div_euclid(3000);
    let buckets = Arc::new(move |time| Some(bucket(time))) as counterfoil_series::Buckets;
    let question = Question { span: Span::ALL, columns: vec![0], buckets: Some(buckets), ends: false };
    let has_quality = tables.summarized(&view, TABLE)?.quality.is_some();
    let mut aggregation = tables.aggregate(view, TABLE, None, question)?;
    let mut wanted = BTreeMap::<(u32, i64), Vec<i64>>::new();
    for ((series, time), value) in model {
        wanted.entry((*series, bucket(*time))).or_default().push(*value);
    }
    for ((series, name), values) in wanted {
        let found = aggregation.next()?.expect("a bucket is missing");
        let column = &found.columns[0];
        assert_eq!((found.series, found.name, found.points), (series, Some(name), values.len() as u64));
        let scaled = |value: i64| Some(Value::Double(value as f64 / 16.0));
        assert!(column.sum.double() * 16.0 == values.iter().sum::<i64>() as f64, "a sum");
        assert!(column.least() == values.iter().min().and_then(|value| scaled(*value)), "a least value");
        assert!(column.greatest() == values.iter().max().and_then(|value| scaled(*value)), "a greatest value");
        assert!([column.first(), column.last()] == [scaled(values[0]), scaled(values[values.len() - 1])], "an end");
        let is_good = |value: &&i64| !has_quality || quality(**value) >= 192;
        assert_eq!(column.good, values.iter().filter(is_good).count() as u64);
    }
    assert_eq!(aggregation.next()?, None);
    Ok(())
}

fn survives(rig: &mut Rig, history: &History, id: &str) {
    rig.device.power_on();
    rig.device.set_scenario(Scenario::calm(1));
    if !history.created {
        return;
    }
    // A reader comes first: a page that reads well once shows it to him, and is gone for the writer.
    rig.recover().unwrap_or_else(|error| panic!("{id}: reading answers {error}"));
    let mut writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening answers {error}"));
    let tables = SeriesTables::with_limits(LIMITS);
    let mut model = stored(&tables, writer.snapshot()).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert!(
        model == history.acknowledged || model == history.interrupted,
        "{id}: neither the state before nor the one after"
    );
    check_summaries(&tables, writer.snapshot(), &model).unwrap_or_else(|error| panic!("{id}: {error}"));
    for step in 5000..5003 {
        writer.begin().unwrap();
        change(rig.plan, &tables, &mut writer, &mut model, step).unwrap_or_else(|error| panic!("{id}: {error}"));
        commit(&tables, &mut writer).unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    drop(writer);
    let mut writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening again answers {error}"));
    let tables = SeriesTables::with_limits(LIMITS);
    let found = stored(&tables, writer.snapshot()).unwrap_or_else(|error| panic!("{id}: {error}"));
    check_summaries(&tables, writer.snapshot(), &model).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert!(found == model, "{id}: lost after the second opening");
    assert_eq!(witness::duplicates(), [], "{id}: a (key, nonce) pair was used twice");
}

/// There is one witness of all seals: one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    witness::reset();
    one
}

/// Cuts the power while points come in, at so many writes at least.
fn cut(plan: Plan, commits: i64, tries: usize) {
    let _one = alone();
    let mut rig = Rig::new(plan, Scenario::calm(3));
    let history = play(&mut rig, commits);
    assert!(history.acknowledged.len() > commits.min(35) as usize * 60, "{}", history.acknowledged.len());
    let writes = rig.device.writes();
    survives(&mut rig, &history, "no cut");
    let step = if full() { 1 } else { (writes as usize * 14 / tries).max(1) };
    let mut tried = 0;
    for scenario in Scenario::every_cut(3, writes, 512).step_by(step) {
        witness::reset();
        let id = scenario.to_string();
        let mut rig = Rig::new(plan, scenario);
        let history = play(&mut rig, commits);
        survives(&mut rig, &history, &id);
        tried += 1;
    }
    println!("{tried} cuts over {writes} writes of {} points", commits * i64::from(plan.series) * plan.points);
    assert!(tried > tries / 3);
}

#[test]
fn a_cut_at_any_write_loses_no_point() {
    cut(WIDE, if full() { 200 } else { 60 }, 150);
}

#[test]
fn summaries_survive_a_cut_at_any_write() {
    cut(TALL, if full() { 150 } else { 60 }, 90);
}

#[test]
fn pages_relocated_on_raw_flash_survive_a_cut_at_any_write() {
    cut(RAW, if full() { 100 } else { 60 }, 60);
}

#[test]
fn what_lives_beside_dead_pages_is_relocated_on_raw_flash() {
    let _one = alone();
    let mut rig = Rig::new(RAW, Scenario::calm(3));
    let history = play(&mut rig, 120);
    let mut writer = rig.open().unwrap();
    let tables = SeriesTables::with_limits(LIMITS);
    assert!(stored(&tables, writer.snapshot()).unwrap() == history.acknowledged);
    for round in 0.. {
        writer.begin().unwrap();
        if !tables.maintain(&mut writer).unwrap() {
            writer.rollback();
            break;
        }
        commit(&tables, &mut writer).unwrap();
        assert!(round < 1000, "an end is reached");
    }
    assert!(stored(&tables, writer.snapshot()).unwrap() == history.acknowledged);
    let pool = writer.pool_use(tables.pool(&writer, TABLE).unwrap()).unwrap();
    assert!(pool.live_pages > 100 && pool.pages < pool.live_pages * 5 / 4 + 32, "{pool:?}");
}
