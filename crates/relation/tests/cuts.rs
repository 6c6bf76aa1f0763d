//! Power fails at each write of a script of transactions, and of a reorganization of all that they leave: every row that was
//! acknowledged is there as it was, indexes and joins agree with the rows, and what was half reorganized goes on. On raw flash no page
//! is programmed twice or out of order within its block, whatever was cut.
//!
//! `COUNTERFOIL_PROOF=full` cuts at every write in every way; otherwise at a sample.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use counterfoil_flash_sim::{Dice, Part, Scenario, SimulatedDevice};
use counterfoil_log::{Counting, Layout, Media, NoPins, Recovered, Settings, Snapshot, Writer, create};
use counterfoil_relation::{
    Action, Error, NewColumn, NewForeignKey, NewIndex, NewKey, NewTable, Relations, Retype, RowBuilder, RowId, Type,
    Vacuum, Value, ValueRef,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, Vault, VolumeKey, witness};

const CACHE: usize = 1 << 18;
const PAGE_BYTES: u32 = 512;
/// So few that runs are merged and segments renewed all the time.
const FRESH_ROWS: usize = 6;
const SEGMENT_BYTES: u64 = 1500;
const PARENTS: i32 = 12;

/// The rows of the children by number: key, parent, note.
type Model = BTreeMap<RowId, Vec<Value>>;

fn full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

struct Rig {
    device: SimulatedDevice,
    vault: Arc<Vault>,
    layout: Layout,
    counter: MemoryCounter,
    entropy: DangerFixedEntropy,
    /// A device's history: rows in cells, and no pages kept.
    cells: bool,
}

impl Rig {
    fn new(part: Part, cells: bool, scenario: Scenario) -> Rig {
        let mut entropy = DangerFixedEntropy::seeded(scenario.seed);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let layout = Layout::new(&part.geometry, 8, 16).unwrap();
        let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
        let counter = MemoryCounter::at(0, None);
        Rig { device: SimulatedDevice::new(part, scenario), vault, layout, counter, entropy, cells }
    }

    fn relations(&self) -> Relations {
        let relations = Relations::with_fresh_rows(FRESH_ROWS).with_segment_bytes(SEGMENT_BYTES);
        if self.cells { relations.with_cells() } else { relations }
    }

    fn cache(&self) -> usize {
        if self.cells { 0 } else { CACHE }
    }

    fn settings(&self) -> Settings {
        Settings {
            counter: Some(Box::new(self.counter.clone())),
            counting: Counting::EveryCommit,
            pins: Box::new(NoPins),
            headers: None,
        }
    }

    fn create(&mut self) -> Option<Writer> {
        let media = Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) };
        let (settings, cache) = (self.settings(), self.cache());
        create(media, self.vault.clone(), self.layout, settings, &mut self.entropy, 0, cache).ok()
    }

    fn recover(&self) -> Result<Recovered, counterfoil_log::Error> {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout, self.cache())
    }

    fn open(&mut self) -> Result<Writer, counterfoil_log::Error> {
        let settings = self.settings();
        self.recover()?.open(Box::new(self.device.clone()), settings, &mut self.entropy)
    }
}

fn create_tables(relations: &Relations, writer: &mut Writer) -> Result<(), Error> {
    let key = |column: &str| Some(NewKey { name: None, columns: vec![column.into()] });
    let parents = NewTable {
        name: "parents".into(),
        columns: vec![NewColumn::new("id", Type::Integer)],
        primary_key: key("id"),
        ..NewTable::default()
    };
    let parents = relations.create_table(writer, &parents)?;
    let ids: Vec<_> = (0..PARENTS).map(|id| vec![Value::Integer(id)]).collect();
    insert(relations, writer, "parents", &ids)?;
    let reference = NewForeignKey {
        name: None,
        columns: vec!["parent".into()],
        parent: parents.name.clone(),
        parent_columns: vec!["id".into()],
        on_delete: Action::NoAction,
        on_update: Action::NoAction,
        not_enforced: false,
    };
    let children = NewTable {
        name: "children".into(),
        columns: vec![
            NewColumn::new("key", Type::Integer),
            NewColumn::new("parent", Type::Integer),
            NewColumn::new("note", Type::Text),
        ],
        primary_key: key("key"),
        foreign_keys: vec![reference],
        ..NewTable::default()
    };
    let children = relations.create_table(writer, &children)?;
    relations.create_index(writer, &children, &NewIndex { columns: vec!["note".into()], ..NewIndex::default() })?;
    Ok(())
}

fn insert(relations: &Relations, writer: &mut Writer, table: &str, rows: &[Vec<Value>]) -> Result<RowId, Error> {
    let table = relations.table(&*writer, table)?.unwrap();
    relations.insert(writer, &table, &batch(&table, rows))
}

fn batch(table: &counterfoil_relation::Table, rows: &[Vec<Value>]) -> counterfoil_relation::RowBatch {
    let mut builder = RowBuilder::new(table.layout());
    for row in rows {
        builder.push(&row.iter().map(Value::borrow).collect::<Vec<ValueRef<'_>>>()).unwrap();
    }
    builder.finish()
}

fn row(dice: &mut Dice, key: i32) -> Vec<Value> {
    let note = "n".repeat(dice.below(30) as usize) + &dice.below(9).to_string();
    vec![Value::Integer(key), Value::Integer(dice.below(PARENTS as u64) as i32), Value::Text(note)]
}

/// Rows come, change and go, many more than stay; keys move from row to row.
fn change(relations: &Relations, writer: &mut Writer, model: &mut Model, step: i32) -> Result<(), Error> {
    let mut dice = Dice::new(step as u64);
    if step % 9 == 4 {
        retype(relations, writer, model)?;
    }
    let table = relations.table(&*writer, "children")?.unwrap();
    let some: Vec<RowId> = model.keys().copied().filter(|_| dice.below(3) == 0).collect();
    match dice.below(4) {
        0 => {
            relations.delete(writer, &table, &some)?;
            model.retain(|row, _| !some.contains(row));
        }
        1 => {
            let moved = some.iter().enumerate().map(|(place, id)| {
                let key = model[&some[(place + 1) % some.len()]][0].clone();
                let mut new = row(&mut dice, 0);
                new[0] = if step % 2 == 0 { key } else { model[id][0].clone() };
                new
            });
            let new: Vec<_> = moved.collect();
            relations.update(writer, &table, &some, &batch(&table, &new))?;
            model.extend(some.into_iter().zip(new));
        }
        _ => {
            let new: Vec<_> = (0..12).map(|place| row(&mut dice, step * 100 + place)).collect();
            let first = insert(relations, writer, "children", &new)?;
            model.extend(new.into_iter().enumerate().map(|(place, row)| (RowId(first.0 + place as u64), row)));
        }
    }
    Ok(())
}

/// Notes lie otherwise in the images of rows from then on, and there is an index over them.
fn retype(relations: &Relations, writer: &mut Writer, model: &Model) -> Result<(), Error> {
    let table = relations.table(&*writer, "children")?.unwrap();
    let kind = if table.column("note").unwrap().1.kind == Type::Text { Type::Char(40) } else { Type::Text };
    let to = Retype { column: "note", kind, default_value: None, keeps_values: true, aside: "aside" };
    let table = relations.begin_retype(writer, &table, &to)?;
    let (rows, values): (Vec<RowId>, Vec<&Vec<Value>>) = model.iter().map(|(row, values)| (*row, values)).unzip();
    let place = |column: &counterfoil_relation::Column| match column.name.as_str() {
        "key" => 0,
        "parent" => 1,
        _ => 2,
    };
    let images: Vec<Vec<Value>> = values
        .iter()
        .map(|values| table.columns.iter().map(|column| values[place(column)].clone()).collect())
        .collect();
    relations.update(writer, &table, &rows, &batch(&table, &images))?;
    relations.end_retype(writer, &table, &to).map(drop)
}

fn commit(relations: &Relations, writer: &mut Writer) -> bool {
    let done = writer.commit().is_ok();
    if done {
        relations.committed(&*writer);
    }
    done
}

/// What was acknowledged, and what may stand instead: the commit that was under way.
#[derive(Default)]
struct History {
    acknowledged: Model,
    interrupted: Model,
    created: bool,
    /// Steps of a reorganization that were commits.
    steps: u64,
}

/// Plays the script as far as power lasts.
fn play(rig: &mut Rig, commits: i32) -> History {
    let mut history = History::default();
    play_on(rig, commits, &mut history);
    history
}

fn play_on(rig: &mut Rig, commits: i32, history: &mut History) -> Option<()> {
    let mut writer = rig.create()?;
    let mut tables = rig.relations();
    writer.begin().ok()?;
    create_tables(&tables, &mut writer).ok()?;
    commit(&tables, &mut writer).then_some(())?;
    history.created = true;
    for step in 1..=commits {
        history.interrupted = history.acknowledged.clone();
        writer.begin().ok()?;
        change(&tables, &mut writer, &mut history.interrupted, step).ok()?;
        if step % 7 == 0 {
            // What is rolled back was never there.
            history.interrupted = history.acknowledged.clone();
            writer.rollback();
            tables.rolled_back(&writer);
            continue;
        }
        commit(&tables, &mut writer).then_some(())?;
        history.acknowledged = history.interrupted.clone();
        history.steps += reorganize(&tables, &mut writer, 1, |tables, writer| tables.maintain(writer))?;
        if step % 20 == 0 {
            drop(writer);
            tables = rig.relations();
            writer = rig.open().ok()?;
        }
    }
    let table = tables.table(&writer, "children").ok()??;
    history.steps +=
        reorganize(&tables, &mut writer, 1000, |tables, writer| tables.vacuum_step(writer, &mut Vacuum::of(table.id)))?;
    Some(())
}

/// So many steps at most, each a commit of its own; how many there were.
fn reorganize(
    relations: &Relations,
    writer: &mut Writer,
    steps_max: u64,
    step: impl Fn(&Relations, &mut Writer) -> Result<bool, Error>,
) -> Option<u64> {
    for steps in 0..steps_max {
        writer.begin().ok()?;
        if !step(relations, writer).ok()? {
            writer.rollback();
            relations.rolled_back(&*writer);
            return Some(steps);
        }
        commit(relations, writer).then_some(())?;
    }
    Some(steps_max)
}

fn stored(relations: &Relations, view: &Snapshot) -> Result<Model, Error> {
    let table = relations.table(view, "children")?.unwrap();
    let mut scan = relations.scan(view.clone(), &table)?;
    let mut stored = Model::new();
    while let Some(block) = scan.next(100)? {
        for row in block.visible_rows() {
            stored.insert(block.id(row), block.rows.row(row)?);
        }
    }
    Ok(stored)
}

/// The rows are these, and all else agrees with them.
fn check(relations: &Relations, view: &Snapshot, id: &str) -> Model {
    let model = stored(relations, view).unwrap_or_else(|error| panic!("{id}: {error}"));
    let report = relations.verify(view, &mut |_| {}).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert!(report.problems.is_empty(), "{id}: {:?}", report.problems);
    model
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
    let tables = rig.relations();
    let mut model = check(&tables, &writer.snapshot(), id);
    let is_known = model == history.acknowledged || model == history.interrupted;
    assert!(is_known, "{id}: neither the state before nor the one after");
    let table = tables.table(&writer, "children").unwrap().unwrap();
    for step in 5000..5004 {
        writer.begin().unwrap();
        change(&tables, &mut writer, &mut model, step).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(commit(&tables, &mut writer), "{id}");
    }
    reorganize(&tables, &mut writer, 1000, |tables, writer| tables.vacuum_step(writer, &mut Vacuum::of(table.id)))
        .unwrap();
    assert_eq!(tables.figures(&writer, &table).unwrap().rewrite_bytes(), 0, "{id}: all is tidy");
    drop(writer);
    let mut writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening again answers {error}"));
    assert!(check(&rig.relations(), &writer.snapshot(), id) == model, "{id}: lost after the second opening");
    assert_eq!(witness::duplicates(), [], "{id}: a (key, nonce) pair was used twice");
    assert_eq!(rig.device.refused(), None, "{id}: a page was to be programmed twice or out of order");
}

/// There is one witness of all seals: one test runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    witness::reset();
    one
}

#[test]
fn a_cut_at_any_write_of_transactions_and_reorganizations_loses_nothing() {
    cut_anywhere(&file(), false, 4);
}

#[test]
fn a_cut_at_any_write_loses_nothing_of_what_stands_in_cells() {
    cut_anywhere(&file(), true, 3);
}

#[test]
fn a_cut_at_any_write_loses_nothing_on_raw_flash() {
    cut_anywhere(&flash(), false, 2);
}

#[test]
fn a_cut_at_any_write_loses_nothing_of_what_stands_in_cells_on_raw_flash() {
    cut_anywhere(&flash(), true, 1);
}

fn file() -> Part {
    Part::file(PAGE_BYTES, 4, 1 << 14)
}

/// Its blocks are erased before they are programmed, page by page and each once.
fn flash() -> Part {
    Part::nand(PAGE_BYTES, 4, 1 << 14)
}

fn cut_anywhere(part: &Part, cells: bool, seed: u64) {
    let _one = alone();
    let commits = if full() { 80 } else { 50 };
    let mut rig = Rig::new(part.clone(), cells, Scenario::calm(seed));
    let history = play(&mut rig, commits);
    assert!(history.acknowledged.len() > 20 && history.steps > 25, "{} steps", history.steps);
    let writes = rig.device.writes();
    survives(&mut rig, &history, "no cut");
    let scenarios: Vec<_> = Scenario::every_cut_of(seed, writes, part).collect();
    let step = if full() { 1 } else { (scenarios.len() / 100).max(1) };
    let mut tried = 0;
    for scenario in scenarios.into_iter().step_by(step) {
        witness::reset();
        let id = scenario.to_string();
        let mut rig = Rig::new(part.clone(), cells, scenario);
        let history = play(&mut rig, commits);
        survives(&mut rig, &history, &id);
        tried += 1;
    }
    println!("{tried} cuts over {writes} writes of {commits} transactions and {} steps", history.steps);
    assert!(tried > 50);
}
