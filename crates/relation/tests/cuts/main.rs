//! Power fails at each write of a script of transactions, and of a reorganization of all that they leave: every row that was
//! acknowledged is there as it was, indexes and joins agree with the rows, and what was half reorganized goes on. On raw flash no page
//! is programmed twice or out of order within its block, whatever was cut.
//!
//! `COUNTERFOIL_PROOF=full` cuts at every write in every way; otherwise at a sample.

mod children;
mod family;
mod rig;
mod script;

use std::sync::{Mutex, MutexGuard, PoisonError};

use counterfoil_flash_sim::{Part, Scenario};
use counterfoil_log::{Snapshot, Writer};
use counterfoil_relation::{Error, Relations, Vacuum};
use counterfoil_vault::witness;

use crate::children::Children;
use crate::family::Family;
use crate::rig::Rig;
use crate::script::{Model, Rows, Script};

const PAGE_BYTES: u32 = 512;

fn full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
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
fn play(rig: &mut Rig, script: &dyn Script, commits: i32) -> History {
    let mut history = History::default();
    play_on(rig, script, commits, &mut history);
    history
}

fn play_on(rig: &mut Rig, script: &dyn Script, commits: i32, history: &mut History) -> Option<()> {
    let mut writer = rig.create()?;
    let mut tables = rig.relations();
    writer.begin().ok()?;
    script.create(&tables, &mut writer).ok()?;
    history.acknowledged = script.tables().iter().map(|table| (*table, Rows::new())).collect();
    commit(&tables, &mut writer).then_some(())?;
    history.created = true;
    for step in 1..=commits {
        history.interrupted = history.acknowledged.clone();
        writer.begin().ok()?;
        script.change(&tables, &mut writer, &mut history.interrupted, step).ok()?;
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
    for table in script.tables() {
        history.steps += vacuum(&tables, &mut writer, table)?;
    }
    Some(())
}

fn vacuum(relations: &Relations, writer: &mut Writer, table: &str) -> Option<u64> {
    let id = relations.table(&*writer, table).ok()??.id;
    reorganize(relations, writer, 1000, |tables, writer| tables.vacuum_step(writer, &mut Vacuum::of(id)))
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

fn stored(relations: &Relations, view: &Snapshot, script: &dyn Script) -> Result<Model, Error> {
    let mut stored = Model::new();
    for name in script.tables() {
        let table = relations.table(view, name)?.unwrap();
        let mut scan = relations.scan(view.clone(), &table)?;
        let rows = stored.entry(name).or_default();
        while let Some(block) = scan.next(100)? {
            for row in block.visible_rows() {
                rows.insert(block.id(row), block.rows.row(row)?);
            }
        }
    }
    Ok(stored)
}

/// The rows are these, and all else agrees with them.
fn check(relations: &Relations, view: &Snapshot, script: &dyn Script, id: &str) -> Model {
    let model = stored(relations, view, script).unwrap_or_else(|error| panic!("{id}: {error}"));
    let report = relations.verify(view, &mut |_| {}).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert!(report.problems.is_empty(), "{id}: {:?}", report.problems);
    model
}

fn survives(rig: &mut Rig, script: &dyn Script, history: &History, id: &str) {
    rig.device.power_on();
    rig.device.set_scenario(Scenario::calm(1));
    if !history.created {
        return;
    }
    // A reader comes first: a page that reads well once shows it to him, and is gone for the writer.
    rig.recover().unwrap_or_else(|error| panic!("{id}: reading answers {error}"));
    let mut writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening answers {error}"));
    let tables = rig.relations();
    let mut model = check(&tables, &writer.snapshot(), script, id);
    let is_known = model == history.acknowledged || model == history.interrupted;
    assert!(is_known, "{id}: neither the state before nor the one after");
    for step in 5000..5004 {
        writer.begin().unwrap();
        script.change(&tables, &mut writer, &mut model, step).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(commit(&tables, &mut writer), "{id}");
    }
    for name in script.tables() {
        vacuum(&tables, &mut writer, name).unwrap();
        let table = tables.table(&writer, name).unwrap().unwrap();
        assert_eq!(tables.figures(&writer, &table).unwrap().rewrite_bytes(), 0, "{id}: {name} is tidy");
    }
    drop(writer);
    let mut writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening again answers {error}"));
    assert!(check(&rig.relations(), &writer.snapshot(), script, id) == model, "{id}: lost after the second opening");
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
    cut_anywhere(&file(), &Children, false, 4);
}

#[test]
fn a_cut_at_any_write_loses_nothing_of_what_stands_in_cells() {
    cut_anywhere(&file(), &Children, true, 3);
}

#[test]
fn a_cut_at_any_write_loses_nothing_on_raw_flash() {
    cut_anywhere(&flash(), &Children, false, 2);
}

#[test]
fn a_cut_at_any_write_loses_nothing_of_what_stands_in_cells_on_raw_flash() {
    cut_anywhere(&flash(), &Children, true, 1);
}

#[test]
fn a_cut_at_any_write_loses_nothing_of_what_hangs_together_by_foreign_keys() {
    cut_anywhere(&file(), &Family, false, 5);
}

#[test]
fn a_cut_at_any_write_loses_nothing_of_what_hangs_together_in_cells_on_raw_flash() {
    cut_anywhere(&flash(), &Family, true, 6);
}

fn file() -> Part {
    Part::file(PAGE_BYTES, 4, 1 << 14)
}

/// Its blocks are erased before they are programmed, page by page and each once.
fn flash() -> Part {
    Part::nand(PAGE_BYTES, 4, 1 << 14)
}

fn cut_anywhere(part: &Part, script: &dyn Script, cells: bool, seed: u64) {
    let _one = alone();
    let commits = if full() { 80 } else { 50 };
    let mut rig = Rig::new(part.clone(), cells, Scenario::calm(seed));
    let history = play(&mut rig, script, commits);
    let rows: usize = history.acknowledged.values().map(Rows::len).sum();
    assert!(rows > 20 && history.steps > 25, "{rows} rows, {} steps", history.steps);
    let writes = rig.device.writes();
    survives(&mut rig, script, &history, "no cut");
    let scenarios: Vec<_> = Scenario::every_cut_of(seed, writes, part).collect();
    let step = if full() { 1 } else { (scenarios.len() / 100).max(1) };
    let mut tried = 0;
    for scenario in scenarios.into_iter().step_by(step) {
        witness::reset();
        let id = scenario.to_string();
        let mut rig = Rig::new(part.clone(), cells, scenario);
        let history = play(&mut rig, script, commits);
        survives(&mut rig, script, &history, &id);
        tried += 1;
    }
    println!("{tried} cuts over {writes} writes of {commits} transactions and {} steps", history.steps);
    assert!(tried > 50);
}
