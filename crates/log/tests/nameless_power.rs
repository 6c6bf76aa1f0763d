//! The law for nameless pages: what an acknowledged commit points to is there, whatever was cut, torn, lost or put back.
//!
//! A script writes, frees, undoes and reads pages beside appends and records; one record holds the addresses, as the
//! pages of a tree would. The power fails at each write in each way. What the next open sees must be the last
//! acknowledged state, or one whose commit was under way, whole: every address must read what was written there.
//! An attacker puts back images, whole and as mixtures. Every (key, nonce) pair of a history must be distinct.
//!
//! `COUNTERFOIL_PROOF=full` tries every cut; otherwise a sample.

mod bench;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bench::Bench;
use counterfoil_flash_sim::{Attacker, Dice, Fault, Part, Scenario};
use counterfoil_log::{
    Cause, ContainerId, Error, NamelessPage, PoolId, PoolOptions, Snapshot, View, Writer, record_space,
};
use counterfoil_vault::{Counter, witness};

fn full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

const ADDRESSES: &[u8] = b"addresses";

/// What is in the pages: by key the address and a number.
#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    pool: Option<PoolId>,
    pages: BTreeMap<u64, (NamelessPage, u64)>,
    container: Option<ContainerId>,
    appended: u64,
    step: u64,
}

fn payload(writer_bytes: usize, number: u64) -> Vec<u8> {
    (0..writer_bytes as u64).map(|index| (number.wrapping_mul(31) + index) as u8).collect()
}

impl Model {
    fn encode(&self) -> Vec<u8> {
        let numbers = [self.pool.map_or(0, |pool| pool.0), self.appended, self.step];
        let pages = self.pages.iter().flat_map(|(key, (page, number))| [*key, page.page, page.write, *number]);
        numbers.into_iter().chain(pages).flat_map(u64::to_le_bytes).collect()
    }

    /// Whether a view shows this state; an error of the view is passed on.
    fn matches(&self, view: &dyn View, payload_bytes: usize) -> Result<bool, Error> {
        let shown = view.record(record_space::USER, ADDRESSES).map(|value| value.to_vec());
        if shown.unwrap_or_else(|| Model::default().encode()) != self.encode() {
            return Ok(false);
        }
        for (page, number) in self.pages.values() {
            let mut read = vec![0; payload_bytes];
            view.read_nameless(self.pool.unwrap(), *page, &mut read)?;
            assert_eq!(read, payload(payload_bytes, *number), "another page than the one that was written");
        }
        if let Some(container) = self.container
            && view.length(container)? != self.appended
        {
            return Ok(false);
        }
        Ok(true)
    }

    fn write(&mut self, writer: &mut Writer, key: u64, number: u64) -> Result<(), Error> {
        let pool = self.pool.unwrap();
        if let Some((old, _)) = self.pages.get(&key) {
            writer.free_nameless(pool, *old)?;
        }
        let page = writer.write_nameless(pool, &payload(writer.payload_bytes(), number))?;
        self.pages.insert(key, (page, number));
        Ok(())
    }

    /// One transaction; the commit is the caller's.
    fn change(&mut self, writer: &mut Writer, step: u64) -> Result<(), Error> {
        let mut dice = Dice::new(step);
        self.step = step;
        if self.pool.is_none() || step.is_multiple_of(37) {
            if let Some(old) = self.pool.take() {
                writer.drop_pool(old)?;
                self.pages.clear();
            }
            self.pool = Some(writer.create_pool(PoolOptions { free_percent: 15 })?);
        }
        if self.container.is_none() {
            let group = writer.create_group()?;
            self.container = Some(writer.create_container(group)?);
        }
        let count = [1, 2, 5, 20][dice.below(4) as usize];
        for index in 0..count {
            let key = if count == 20 { index } else { dice.below(20) };
            self.write(writer, key, step * 100 + index)?;
        }
        if dice.below(4) == 0
            && let Some((key, (page, _))) = self.pages.clone().into_iter().nth(dice.below(20) as usize)
        {
            writer.free_nameless(self.pool.unwrap(), page)?;
            self.pages.remove(&key);
        }
        if dice.below(2) == 0 {
            let bytes = vec![step as u8; [20, 700][dice.below(2) as usize]];
            writer.append(self.container.unwrap(), &bytes)?;
            self.appended += bytes.len() as u64;
        }
        self.relocate(writer)?;
        writer.put_record(record_space::USER, ADDRESSES, &self.encode())
    }

    /// Where only whole extents become free.
    fn relocate(&mut self, writer: &mut Writer) -> Result<(), Error> {
        let pool = self.pool.unwrap();
        if writer.pool_use(pool)?.extents < 12 {
            return Ok(());
        }
        for old in writer.pages_to_relocate(pool, 6)? {
            let found = self.pages.iter().find(|(_, (page, _))| *page == old);
            let (key, (_, number)) = found.map(|(key, value)| (*key, *value)).expect("a page that is live");
            self.write(writer, key, number)?;
        }
        Ok(())
    }
}

/// How a history ended.
struct History {
    acknowledged: Model,
    /// States of commits that were not waited for, and of the one that failed.
    possible: Vec<Model>,
    /// The last state that the counter speaks of, and those of the group that is open: a medium that lies may undo these unnoticed.
    since_counted: Vec<Model>,
    /// Whether an opening showed one of them that was not the last.
    is_undone: bool,
    created: bool,
}

impl History {
    fn new() -> Self {
        let (acknowledged, since_counted) = (Model::default(), vec![Model::default()]);
        History { acknowledged, possible: Vec::new(), since_counted, is_undone: false, created: false }
    }

    /// A commit that was answered.
    fn committed(&mut self, model: &Model, (is_counted, has_moved): (bool, bool)) {
        let counted = if is_counted || has_moved { self.since_counted.len() - 1 } else { 0 };
        self.since_counted.drain(..counted);
        self.since_counted.push(model.clone());
        if is_counted {
            self.since_counted.remove(0);
        }
    }

    fn closed(&mut self, model: &Model) {
        self.acknowledged = model.clone();
        self.possible.clear();
        self.since_counted = vec![model.clone()];
    }

    /// What an opening shows is there for good.
    fn opened(&mut self, writer: &Writer) -> Result<Model, Error> {
        let mut states = self.since_counted.iter().enumerate().rev();
        let found = states.find_map(|(at, state)| match state.matches(writer, writer.payload_bytes()) {
            Ok(is_shown) => is_shown.then_some(Ok(at)),
            Err(error) => Some(Err(error)),
        });
        let at = found.expect("the last state that was counted, or one behind it")?;
        self.is_undone |= at + 1 < self.since_counted.len();
        let shown = self.since_counted.swap_remove(at);
        self.closed(&shown);
        Ok(shown)
    }
}

/// A transaction, or part of one, that is undone.
fn undone(writer: &mut Writer, model: &Model, step: u64) -> Result<(), Error> {
    if step.is_multiple_of(5) {
        writer.begin()?;
        let done = model.clone().change(writer, step + 5000);
        writer.rollback();
        done?;
    }
    Ok(())
}

fn back_to_a_savepoint(writer: &mut Writer, model: &Model, step: u64) -> Result<(), Error> {
    if step.is_multiple_of(4) {
        let savepoint = writer.savepoint()?;
        let done = model.clone().change(writer, step + 6000);
        writer.rollback_to(&savepoint)?;
        done?;
    }
    Ok(())
}

/// Snapshots that are held for a while, and what they must show.
#[derive(Default)]
struct Held(Vec<(Snapshot, Model, u64)>);

impl Held {
    fn look(&mut self, writer: &mut Writer, model: &Model, step: u64) -> Result<(), Error> {
        if step.is_multiple_of(6) {
            self.0.push((writer.snapshot(), model.clone(), step + 9));
        }
        self.0.retain(|(_, _, until)| *until > step);
        for (snapshot, model, _) in &self.0 {
            assert!(model.matches(snapshot, snapshot.payload_bytes())?, "a snapshot reads its own pages");
        }
        Ok(())
    }
}

fn play(bench: &mut Bench, steps: u64) -> History {
    let mut history = History::new();
    let Ok(mut writer) = bench.try_create() else { return history };
    history.created = true;
    // Where the script ends is told by what is acknowledged.
    drop(go_on(bench, &mut writer, steps, &mut history));
    history
}

fn go_on(bench: &mut Bench, writer: &mut Writer, steps: u64, history: &mut History) -> Result<(), Error> {
    let mut model = Model::default();
    let mut held = Held::default();
    let mut counted = bench.counter.value().unwrap().value;
    for step in 1..=steps {
        undone(writer, &model, step)?;
        writer.begin()?;
        model.change(writer, step)?;
        back_to_a_savepoint(writer, &model, step)?;
        history.possible.push(model.clone());
        // Of three commits one is not waited for.
        if bench.clock.is_some() && step.is_multiple_of(3) {
            writer.commit_soon()?;
        } else {
            writer.commit()?;
            history.acknowledged = model.clone();
            history.possible.clear();
        }
        let before = std::mem::replace(&mut counted, bench.counter.value().unwrap().value);
        history.committed(&model, (writer.group_closes_in().is_none(), counted != before));
        writer.check();
        held.look(writer, &model, step)?;
        if let Some(clock) = &bench.clock {
            clock.fetch_add(250, Ordering::Relaxed);
        }
        if step.is_multiple_of(29) {
            writer.checkpoint()?;
        }
        if step.is_multiple_of(23) {
            held.0.clear();
            if step.is_multiple_of(2) {
                writer.close()?;
                history.closed(&model);
            }
            *writer = bench.open()?;
            model = history.opened(writer)?;
        }
    }
    writer.close()?;
    history.closed(&model);
    Ok(())
}

/// After a cut: what is there is one of the states, and life goes on.
fn survives(bench: &mut Bench, history: &History, id: &str) {
    bench.device.power_on();
    bench.device.set_scenario(Scenario::calm(1));
    if !history.created {
        return;
    }
    // A page that reads well once does so for this reader.
    let shown = bench.judged().unwrap_or_else(|error| panic!("{id}: reading answers {error}"));
    let mut writer = bench.open().unwrap_or_else(|error| panic!("{id}: opening answers {error}"));
    writer.check();
    let payload_bytes = writer.payload_bytes();
    let mut states = std::iter::once(&history.acknowledged).chain(&history.possible);
    let found =
        states.find(|state| state.matches(&writer, payload_bytes).unwrap_or_else(|error| panic!("{id}: {error}")));
    let mut model = found.unwrap_or_else(|| panic!("{id}: neither the state before nor one after")).clone();
    let payload_bytes = shown.payload_bytes();
    let mut states = std::iter::once(&history.acknowledged).chain(&history.possible);
    let known = states.any(|state| {
        matches!(
            state.matches(&shown, payload_bytes).as_ref().map_err(Error::cause),
            Ok(true) | Err(Cause::Tampered { .. })
        )
    });
    assert!(known, "{id}: readers see a state that never was");
    for step in 1000..1004 {
        writer.begin().unwrap();
        model.change(&mut writer, step).unwrap_or_else(|error| panic!("{id}: {error}"));
        writer.commit().unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    drop(writer);
    let writer = bench.open().unwrap_or_else(|error| panic!("{id}: opening again answers {error}"));
    assert!(model.matches(&writer, payload_bytes).unwrap(), "{id}: lost after the second opening");
    assert_eq!(witness::duplicates(), [], "{id}: a (key, nonce) pair was used twice");
}

fn new_bench(part: &Part) -> Bench {
    witness::reset();
    let in_groups = !part.geometry.erase_before_program;
    let mut bench = Bench::new(part.clone(), 16);
    bench.clock = in_groups.then(Arc::default);
    bench
}

fn parts() -> [Part; 2] {
    [Part::file(512, 4, 600), Part::nand(512, 4, 600)]
}

fn steps() -> u64 {
    if full() { 120 } else { 60 }
}

fn writes_of_the_script(part: &Part) -> u64 {
    let mut bench = new_bench(part);
    let history = play(&mut bench, steps());
    assert!(history.possible.is_empty() && history.acknowledged.step == steps(), "the script runs to its end");
    assert_eq!(witness::duplicates(), []);
    let mut model = history.acknowledged.clone();
    let writer = bench.open().unwrap();
    assert!(model.matches(&writer, writer.payload_bytes()).unwrap());
    model.step += 1;
    assert!(!model.matches(&writer, writer.payload_bytes()).unwrap(), "the comparison can fail");
    bench.device.writes()
}

fn every_cut(part: &Part) {
    let writes = writes_of_the_script(part);
    let mut tried = 0;
    for (number, scenario) in Scenario::every_cut(5, writes, 512).enumerate() {
        if !full() && !number.is_multiple_of(11) {
            continue;
        }
        let id = scenario.to_string();
        let mut bench = new_bench(part);
        bench.device.set_scenario(scenario);
        let history = play(&mut bench, steps());
        assert!(!history.is_undone, "{id}: an opening undid what was acknowledged");
        survives(&mut bench, &history, &id);
        tried += 1;
    }
    println!("{tried} cuts over {writes} writes of {} transactions", steps());
    assert!(tried > 300, "{tried}");
}

/// Media that lie or fade: the state is there, or somebody says so.
fn lying_media(part: &Part) {
    let writes = writes_of_the_script(part);
    let mut dice = Dice::new(78);
    let (mut intact, mut refused) = (0, 0);
    for round in 0..if full() { 3000 } else { 300 } {
        let at = 1 + dice.below(writes);
        let fault = match dice.below(8) {
            0 => Fault::LostFlush { at },
            1 => Fault::FailedFlush { at },
            2 => Fault::FailedWrite { at },
            3 => Fault::Fade { at },
            // Late, so that what was there is not written again.
            _ => Fault::Rot { at: writes - dice.below(8), page: 272 + dice.below(160), bits: 1 + dice.below(3) },
        };
        let scenario = Scenario::one(round, fault);
        let id = scenario.to_string();
        let mut bench = new_bench(part);
        bench.device.set_scenario(scenario);
        let history = play(&mut bench, steps());
        bench.device.power_on();
        if !history.created {
            continue;
        }
        let found = bench.judged().and_then(|snapshot| {
            let states = std::iter::once(&history.acknowledged).chain(&history.possible);
            let mut states = states.chain(&history.since_counted);
            states.try_fold(false, |found, state| Ok(found || state.matches(&snapshot, snapshot.payload_bytes())?))
        });
        match found {
            Ok(true) => intact += 1,
            Ok(false) => panic!("{id}: an acknowledged state is missing unnoticed"),
            Err(_) => refused += 1,
        }
    }
    println!("{intact} intact, {refused} refused");
    assert!(intact > 20 && refused > 0, "{intact} {refused}");
}

/// Every image that ever was is put back over the last one, whole and as mixtures.
fn a_restoring_attacker(part: &Part) {
    let mut bench = new_bench(part);
    let attacker = Attacker::new();
    bench.device.watch(&attacker);
    let history = play(&mut bench, steps());
    let last = bench.device.image();
    let (kept, mut noticed) = (attacker.image_count(), 0);
    let value = bench.counter.value().unwrap();
    let mut put_back = |image, id: &str| {
        bench.device.restore(image);
        let shown =
            bench.judged().and_then(|snapshot| history.acknowledged.matches(&snapshot, snapshot.payload_bytes()));
        match shown {
            Ok(matches) => assert!(matches, "{id}: an older state is shown as the present one"),
            Err(_) => noticed += 1,
        }
    };
    for index in 0..kept {
        put_back(attacker.whole(index).unwrap(), &format!("image {index} of {kept}"));
    }
    for seed in 0..1500 {
        let other = Dice::new(seed).below(kept as u64) as usize;
        let mixture =
            if seed % 2 == 0 { attacker.mixture_of(&[kept - 1, other], seed) } else { attacker.mixture(seed) };
        put_back(mixture.unwrap(), &format!("mixture {seed}"));
    }
    println!("{noticed} of {} noticed", kept + 1500);
    assert!(noticed > kept / 2);
    assert_eq!(bench.counter.value().unwrap(), value);
    bench.device.restore(last);
    let snapshot = bench.judged().unwrap();
    assert!(history.acknowledged.matches(&snapshot, snapshot.payload_bytes()).unwrap(), "the untouched copy opens");
}

/// One test, because the memory of (key, nonce) pairs is one for the process.
#[test]
fn the_law_holds_for_nameless_pages() {
    for part in &parts() {
        every_cut(part);
        lying_media(part);
        a_restoring_attacker(part);
    }
}
