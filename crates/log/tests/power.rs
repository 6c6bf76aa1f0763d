//! The law on the real code: no commit acknowledged, or shown after a completed opening, is ever missing unnoticed.
//!
//! A script of transactions runs over a simulated part; the power fails at each write in each way, and between the
//! steps of the counter. What the next open sees must be the last acknowledged state, or the one whose commit was
//! interrupted, whole. An attacker keeps every image and puts them back, whole and as mixtures of pages. Every
//! (key, nonce) pair of a history must be distinct, and on raw flash no page be programmed twice or out of order.
//!
//! `COUNTERFOIL_PROOF=full` tries every point of a script of 200 transactions; otherwise a sample of a shorter one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use counterfoil_flash::{PageNumber, Read};
use counterfoil_flash_sim::{Attacker, Dice, Fault, Part, Scenario, SimulatedDevice, Survivors, Tearing};
use counterfoil_log::{
    Cause, ContainerId, Counting, Error, GroupId, HeaderKeeper, Layout, Media, NoPins, Recovered, Sealing, Settings,
    View, Writer, create, record_space,
};
use counterfoil_vault::{
    Counter, CounterError, CounterKind, CounterValue, DangerFixedEntropy, DatabaseId, Entropy, MemoryCounter, Suite,
    Tag, Vault, VolumeKey, witness,
};

const CACHE: usize = 1 << 18;

fn full() -> bool {
    std::env::var("COUNTERFOIL_PROOF").is_ok_and(|proof| proof == "full")
}

/// A counter whose power fails at one of its steps.
#[derive(Clone)]
struct CutCounter {
    inner: MemoryCounter,
    steps: Arc<AtomicU64>,
    /// The step at which it fails, and whether it has moved by then.
    cut: Option<(u64, bool)>,
}

impl CutCounter {
    fn new() -> Self {
        CutCounter { inner: MemoryCounter::at(0, None), steps: Arc::default(), cut: None }
    }
}

impl Counter for CutCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::File
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.inner.value()
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        let step = self.steps.fetch_add(1, Ordering::Relaxed) + 1;
        match self.cut {
            Some((at, moved)) if at == step => {
                if moved {
                    self.inner.step(to, tag)?;
                }
                Err(CounterError::Device { operation: "stepped", code: 5 })
            }
            _ => self.inner.step(to, tag),
        }
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        self.inner.adopt(value, tag)
    }
}

#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    containers: BTreeMap<ContainerId, Vec<u8>>,
    groups: Vec<(GroupId, Vec<ContainerId>)>,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    /// Whether a view shows this state; an error of the view is passed on.
    fn matches(&self, view: &dyn View) -> Result<bool, Error> {
        let records: BTreeMap<Vec<u8>, Vec<u8>> =
            view.records(record_space::USER, b"").into_iter().map(|(name, value)| (name, value.to_vec())).collect();
        if records != self.records {
            return Ok(false);
        }
        for (id, bytes) in &self.containers {
            if view.length(*id).ok() != Some(bytes.len() as u64) {
                return Ok(false);
            }
            let mut read = vec![0; bytes.len()];
            view.read(*id, 0, &mut read)?;
            if read != *bytes {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Transaction number `step`, made of a few changes; the commit is the caller's.
    fn change(&mut self, writer: &mut Writer, step: u64) -> Result<(), Error> {
        let mut dice = Dice::new(step);
        if self.groups.len() < 2 || (dice.below(12) == 0 && self.groups.len() < 5) {
            let group = writer.create_group()?;
            let pieces = [Sealing::Cells, Sealing::Pointers, Sealing::Sectors][dice.below(3) as usize];
            let ids = [writer.create_container(group)?, writer.create_container_sealed(group, pieces)?];
            ids.iter().for_each(|id| drop(self.containers.insert(*id, Vec::new())));
            self.groups.push((group, ids.to_vec()));
        }
        if dice.below(20) == 0 && self.groups.len() > 2 {
            let (group, ids) = self.groups.remove(0);
            writer.drop_group(group)?;
            ids.iter().for_each(|id| drop(self.containers.remove(id)));
        }
        for _ in 0..1 + dice.below(3) {
            let ids = &self.groups[dice.below(self.groups.len() as u64) as usize].1;
            let id = ids[dice.below(ids.len() as u64) as usize];
            let count = [10, 60, 300, 1500, 12_000][dice.below(5) as usize * dice.below(2) as usize];
            let bytes: Vec<u8> = (0..count).map(|index| (step as u8) ^ (index as u8)).collect();
            writer.append(id, &bytes)?;
            self.containers.get_mut(&id).unwrap().extend_from_slice(&bytes);
        }
        if dice.below(3) == 0 {
            let name = format!("record {}", dice.below(5)).into_bytes();
            let value = vec![step as u8; dice.below(200) as usize];
            writer.put_record(record_space::USER, &name, &value)?;
            self.records.insert(name, value);
        }
        if step.is_multiple_of(20) && step <= 60 {
            // Two of these are more than half of what the window takes: it moves.
            let (name, value) = (format!("large {step}").into_bytes(), vec![step as u8; 3500]);
            writer.put_record(record_space::USER, &name, &value)?;
            self.records.insert(name, value);
        }
        Ok(())
    }
}

/// Makes a torn copy of the window's place readable as torn.
const SUM: u32 = 0x5EA1_ED01;

/// Headers as far as the log is concerned: where the window is, twice.
struct Keeper {
    layout: Layout,
    salts: DangerFixedEntropy,
}

impl HeaderKeeper for Keeper {
    fn salt(&mut self) -> Result<[u8; 16], Error> {
        let mut salt = [0; 16];
        self.salts.fill(&mut salt).map_err(|_| Error::from(Cause::NoEntropy))?;
        Ok(salt)
    }

    fn move_window(&mut self, writer: &mut Writer, first_extent: u32, extents: u32) -> Result<(), Error> {
        writer.begin()?;
        writer.put_record(record_space::SETTING, b"window", &extents.to_le_bytes())?;
        writer.commit()?;
        let mut page = vec![0; self.layout.page_bytes as usize];
        let numbers = [first_extent, extents, first_extent ^ extents ^ SUM];
        page.iter_mut().zip(numbers.iter().flat_map(|number| number.to_le_bytes())).for_each(|(to, from)| *to = from);
        for extent in 0..2 {
            writer.write_header(PageNumber(extent * u64::from(self.layout.extent_pages)), &page)?;
        }
        Ok(())
    }
}

struct Rig {
    device: SimulatedDevice,
    vault: Arc<Vault>,
    layout: Layout,
    counter: CutCounter,
    entropy: DangerFixedEntropy,
}

impl Rig {
    fn new(part: Part, scenario: Scenario) -> Rig {
        let geometry = part.geometry;
        let mut entropy = DangerFixedEntropy::seeded(scenario.seed);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let layout = Layout::new(&geometry, 8, 8).unwrap();
        Rig {
            device: SimulatedDevice::new(part, scenario),
            vault: Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv)),
            layout,
            counter: CutCounter::new(),
            entropy,
        }
    }

    fn settings(&self) -> Settings {
        let mut salts = self.entropy.clone();
        salts.fill(&mut [0; 16]).unwrap();
        Settings {
            counter: Some(Box::new(self.counter.clone())),
            counting: Counting::EveryCommit,
            pins: Box::new(NoPins),
            headers: Some(Box::new(Keeper { layout: self.layout, salts })),
        }
    }

    /// The layout as the headers have it: of two readable copies the one with the larger window.
    fn layout(&self) -> Layout {
        let mut layout = self.layout;
        for extent in 0..2 {
            let mut bytes = [0; 12];
            let page = PageNumber(extent * u64::from(self.layout.extent_pages));
            let read = self.device.read(page, 0, &mut bytes).is_ok();
            let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
            let (first, extents, sum) = (number(0), number(4), number(8));
            if read && sum == first ^ extents ^ SUM && extents > layout.window_extents {
                (layout.window_first, layout.window_extents) = (first, extents);
            }
        }
        layout
    }

    fn create(&mut self) -> Result<Writer, Error> {
        let media = Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) };
        let settings = self.settings();
        create(media, self.vault.clone(), self.layout, settings, &mut self.entropy, 0, CACHE)
    }

    fn recover(&self) -> Result<Recovered, Error> {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout(), CACHE)
    }

    fn open(&mut self) -> Result<Writer, Error> {
        let settings = self.settings();
        self.recover()?.open(Box::new(self.device.clone()), settings, &mut self.entropy)
    }

    /// A reader's view, held against the counter.
    fn judged(&mut self) -> Result<counterfoil_log::Snapshot, Error> {
        let recovered = self.recover()?;
        let value = self.counter.inner.value().unwrap();
        recovered.judge(&value)?;
        Ok(recovered.snapshot())
    }
}

/// How a history ended: the last acknowledged state, and the one whose commit failed, if one did.
struct History {
    acknowledged: Model,
    interrupted: Option<Model>,
    created: bool,
}

/// A transaction that is rolled back, now and then.
fn undone(writer: &mut Writer, model: &Model, step: u64) -> Result<(), Error> {
    if step.is_multiple_of(4) {
        writer.begin()?;
        let done = model.clone().change(writer, step + 5000);
        writer.rollback();
        done?;
    }
    Ok(())
}

/// A part of a transaction that is undone.
fn back_to_a_savepoint(writer: &mut Writer, model: &Model, step: u64) -> Result<(), Error> {
    if step.is_multiple_of(5) {
        let savepoint = writer.savepoint()?;
        let done = model.clone().change(writer, step + 6000);
        writer.rollback_to(&savepoint)?;
        done?;
    }
    Ok(())
}

/// Runs the script until something fails; every `reopen_every` transactions the volume is closed and opened again.
fn play(rig: &mut Rig, transactions: u64, reopen_every: u64) -> History {
    let mut model = Model::default();
    let mut history = History { acknowledged: model.clone(), interrupted: None, created: false };
    let Ok(mut writer) = rig.create() else { return history };
    history.created = true;
    for step in 1..=transactions {
        if undone(&mut writer, &model, step).is_err() || writer.begin().is_err() {
            return history;
        }
        if model.change(&mut writer, step).is_err() || back_to_a_savepoint(&mut writer, &model, step).is_err() {
            return history;
        }
        if writer.commit().is_err() {
            history.interrupted = Some(model);
            return history;
        }
        writer.check();
        history.acknowledged = model.clone();
        if step % 31 == 0 && writer.checkpoint().is_err() {
            return history;
        }
        if step % reopen_every == 0 {
            if step % (2 * reopen_every) == 0 && writer.close().is_err() {
                return history;
            }
            match rig.open() {
                Ok(opened) => writer = opened,
                Err(_) => return history,
            }
        }
    }
    history
}

/// After a cut: what is there is one of the two states, readers and writers agree, and life goes on.
fn survives(rig: &mut Rig, history: &History, id: &str) {
    survives_read(rig, history, true, id);
}

/// As [`survives`]; whether a reader comes before the writer.
fn survives_read(rig: &mut Rig, history: &History, by_a_reader: bool, id: &str) {
    rig.counter.cut = None;
    rig.device.power_on();
    rig.device.set_scenario(Scenario::calm(1));
    if !history.created {
        return;
    }
    let read = |rig: &mut Rig| rig.judged().unwrap_or_else(|error| panic!("{id}: reading answers {error}"));
    let shown = by_a_reader.then(|| read(rig));
    let mut writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening answers {error}"));
    writer.check();
    let mut model = history.acknowledged.clone();
    if !model.matches(&writer).unwrap_or_else(|error| panic!("{id}: {error}")) {
        model = history.interrupted.clone().unwrap_or_else(|| panic!("{id}: an acknowledged state is missing"));
        let matches = model.matches(&writer).unwrap_or_else(|error| panic!("{id}: {error}"));
        assert!(matches, "{id}: neither the state before nor the one after");
    }
    // A page that reads well once may show a reader the interrupted commit and the writer not: a reader is promised
    // acknowledged commits only.
    if let Some(shown) = shown {
        let mut states = std::iter::once(&history.acknowledged).chain(&history.interrupted);
        let known = states.any(|state| {
            matches!(state.matches(&shown).as_ref().map_err(Error::cause), Ok(true) | Err(Cause::Tampered { .. }))
        });
        assert!(known, "{id}: readers see a state that never was");
    }
    for step in 1000..1003 {
        writer.begin().unwrap();
        model.change(&mut writer, step).unwrap_or_else(|error| panic!("{id}: {error}"));
        writer.commit().unwrap_or_else(|error| panic!("{id}: {error}"));
    }
    drop(writer);
    let writer = rig.open().unwrap_or_else(|error| panic!("{id}: opening again answers {error}"));
    assert!(model.matches(&writer).unwrap(), "{id}: lost after the second opening");
    assert_eq!(witness::duplicates(), [], "{id}: a (key, nonce) pair was used twice");
    assert_eq!(rig.device.refused(), None, "{id}: a page was to be programmed twice or out of order");
}

/// What the script runs over: a file, and raw flash that wants an erase first and its pages in order.
fn parts() -> [Part; 2] {
    [Part::file(512, 4, 4096), Part::nand(512, 4, 4096)]
}

fn transactions() -> u64 {
    if full() { 200 } else { 60 }
}

/// Every write of the script, once each without a fault.
fn writes_of_the_script(part: &Part, transactions: u64) -> (u64, u64) {
    witness::reset();
    let mut rig = Rig::new(part.clone(), Scenario::calm(5));
    let history = play(&mut rig, transactions, 25);
    assert!(history.interrupted.is_none());
    assert_eq!(witness::duplicates(), []);
    let moved = rig.layout().window_extents > rig.layout.window_extents;
    assert!(moved || transactions < 60, "the script makes the record store move");
    (rig.device.writes(), rig.counter.steps.load(Ordering::Relaxed))
}

fn every_cut(part: &Part) {
    let transactions = transactions();
    let (writes, _) = writes_of_the_script(part, transactions);
    let mut tried = 0;
    for (number, scenario) in Scenario::every_cut(5, writes, 512).enumerate() {
        if !full() && !number.is_multiple_of(13) {
            continue;
        }
        witness::reset();
        let id = scenario.to_string();
        let mut rig = Rig::new(part.clone(), scenario);
        let history = play(&mut rig, transactions, 25);
        survives(&mut rig, &history, &id);
        tried += 1;
    }
    println!("{tried} cuts over {writes} writes of {transactions} transactions");
    assert!(tried > 500);
}

/// Cuts that leave a page which reads well for the opening, and never again: what is acknowledged after it stands without it.
fn every_cut_that_leaves_a_page_to_fade(part: &Part) {
    let transactions = transactions();
    let (writes, _) = writes_of_the_script(part, transactions);
    for at in (1..=writes).filter(|at| full() || at.is_multiple_of(3)) {
        witness::reset();
        let scenario = Scenario::one(5, Fault::Cut { at, tearing: Tearing::Fickle, survivors: Survivors::All });
        let id = scenario.to_string();
        let mut rig = Rig::new(part.clone(), scenario);
        let history = play(&mut rig, transactions, 25);
        survives_read(&mut rig, &history, false, &id);
    }
}

/// Cuts that leave a page which reads as an error from then on, as flash with error correction does.
fn every_cut_that_leaves_an_unreadable_page(part: &Part) {
    let transactions = transactions();
    let (writes, _) = writes_of_the_script(part, transactions);
    let mut met = 0;
    for at in (1..=writes).filter(|at| full() || at.is_multiple_of(5)) {
        for survivors in [Survivors::All, Survivors::Any] {
            witness::reset();
            let cut = Fault::Cut { at, tearing: Tearing::Unreadable, survivors };
            let scenario = Scenario::one(at, cut);
            let id = scenario.to_string();
            let mut rig = Rig::new(part.clone(), scenario);
            let history = play(&mut rig, transactions, 25);
            rig.device.power_on();
            met += u32::from(rig.recover().is_ok_and(|recovered| recovered.unreadable().is_some()));
            survives(&mut rig, &history, &id);
        }
    }
    println!("{met} of the pages stood where the spine was to go on");
    assert!(met > 10);
}

fn every_cut_between_the_steps_of_the_counter(part: &Part) {
    let transactions = transactions();
    let (_, steps) = writes_of_the_script(part, transactions);
    for step in 1..=steps {
        for moved in [false, true] {
            for survivors in [Survivors::All, Survivors::None, Survivors::Any] {
                witness::reset();
                let mut rig = Rig::new(part.clone(), Scenario::calm(step));
                rig.counter.cut = Some((step, moved));
                let history = play(&mut rig, transactions, 25);
                let image = rig.device.image_if_cut(survivors, step);
                rig.device.restore(image);
                survives(&mut rig, &history, &format!("counter step {step}, moved {moved}, {survivors:?}"));
            }
        }
    }
}

/// Two cuts: one anywhere, another one during the opening that follows.
fn a_second_cut_while_opening(part: &Part) {
    let (writes, _) = writes_of_the_script(part, transactions());
    let mut dice = Dice::new(77);
    for round in 0..if full() { 4000 } else { 300 } {
        witness::reset();
        let tearing =
            [Tearing::Untouched, Tearing::Complete, Tearing::Byte(100), Tearing::Bits][dice.below(4) as usize];
        let cut = |at| Fault::Cut { at, tearing, survivors: Survivors::Any };
        let first = 1 + dice.below(writes);
        let scenario = Scenario::one(round, cut(first));
        let mut rig = Rig::new(part.clone(), scenario);
        let history = play(&mut rig, transactions(), 25);
        rig.device.power_on();
        let second = first + 1 + dice.below(6);
        rig.device.set_scenario(Scenario::one(round, cut(second)));
        drop(rig.open());
        survives(&mut rig, &history, &format!("cut at {first}, then at {second}, round {round}"));
    }
}

/// Media that lie or fade: the state is there, or somebody says so. Never an older one unnoticed.
fn lying_media(part: &Part) {
    let transactions = transactions();
    let (writes, _) = writes_of_the_script(part, transactions);
    let mut dice = Dice::new(78);
    let (mut intact, mut refused) = (0, 0);
    for round in 0..if full() { 6000 } else { 600 } {
        witness::reset();
        let at = 1 + dice.below(writes);
        let fault = match dice.below(5) {
            0 => Fault::LostFlush { at },
            1 => Fault::FailedFlush { at },
            2 => Fault::FailedWrite { at },
            3 => Fault::Fade { at },
            // Half of the time behind headers and checkpoint, which stand twice.
            _ => Fault::Rot { at, page: [0, 144][dice.below(2) as usize] + dice.below(150), bits: 1 + dice.below(3) },
        };
        let scenario = Scenario::one(round, fault);
        let id = scenario.to_string();
        let mut rig = Rig::new(part.clone(), scenario);
        let history = play(&mut rig, transactions, 25);
        rig.device.power_on();
        if !history.created {
            continue;
        }
        match rig.judged().and_then(|snapshot| Ok((history.acknowledged.matches(&snapshot)?, snapshot))) {
            Ok((true, _)) => intact += 1,
            Ok((false, snapshot)) => {
                let interrupted = history.interrupted.as_ref().is_some_and(|model| model.matches(&snapshot).unwrap());
                assert!(interrupted, "{id}: an acknowledged state is missing unnoticed");
            }
            Err(_) => refused += 1,
        }
    }
    println!("{intact} intact, {refused} refused");
    assert!(intact > 50 && refused > 10);
}

/// Every image that ever was is put back over the last one, whole and as mixtures.
fn a_restoring_attacker(part: &Part) {
    witness::reset();
    let mut rig = Rig::new(part.clone(), Scenario::calm(6));
    let attacker = Attacker::new();
    rig.device.watch(&attacker);
    let history = play(&mut rig, transactions(), 25);
    let last = rig.device.image();
    let kept = attacker.image_count();
    let mut noticed = 0;
    let mut put_back = |image, id: &str| {
        rig.device.restore(image);
        match rig.judged().and_then(|snapshot| history.acknowledged.matches(&snapshot)) {
            Ok(matches) => assert!(matches, "{id}: an older state is shown as the present one"),
            Err(_) => noticed += 1,
        }
    };
    for index in 0..kept {
        put_back(attacker.whole(index).unwrap(), &format!("image {index} of {kept}"));
    }
    for seed in 0..2000 {
        let mixture = if seed % 2 == 0 {
            let mut dice = Dice::new(seed);
            let other = dice.below(kept as u64) as usize;
            attacker.mixture_of(&[kept - 1, other], seed)
        } else {
            attacker.mixture(seed)
        };
        put_back(mixture.unwrap(), &format!("mixture {seed}"));
    }
    println!("{noticed} of {} noticed", kept + 2000);
    assert!(noticed > kept / 2);
    rig.device.restore(last);
    assert!(history.acknowledged.matches(&rig.judged().unwrap()).unwrap(), "the untouched copy opens");
}

/// Cut, put an earlier image back, let history go on from it to an acknowledgement, put the cut image back.
fn the_attack_that_the_opening_rule_answers(part: &Part) {
    let (writes, _) = writes_of_the_script(part, 30);
    for at in (1..=writes).step_by(if full() { 1 } else { 7 }) {
        witness::reset();
        let cut = Fault::Cut { at, tearing: Tearing::Complete, survivors: Survivors::All };
        let mut rig = Rig::new(part.clone(), Scenario::one(at, cut));
        let attacker = Attacker::new();
        rig.device.watch(&attacker);
        let history = play(&mut rig, 30, 11);
        if !history.created || !rig.device.is_cut() {
            continue;
        }
        rig.device.power_on();
        rig.device.set_scenario(Scenario::calm(2));
        let cut_image = rig.device.image();
        let kept = attacker.image_count();
        for earlier in kept.saturating_sub(8)..kept {
            let counter = rig.counter.inner.value().unwrap();
            rig.device.restore(attacker.whole(earlier).unwrap());
            let Ok(mut writer) = rig.open() else { continue };
            writer.begin().unwrap();
            writer.put_record(record_space::USER, b"paid", b"yes").unwrap();
            writer.commit().unwrap();
            drop(writer);
            rig.device.restore(cut_image.clone());
            if let Ok(snapshot) = rig.judged() {
                assert!(snapshot.record(record_space::USER, b"paid").is_some(), "cut {at}, image {earlier}: B is gone");
            }
            rig.counter.inner.danger_set(Some(counter));
        }
        rig.device.restore(cut_image);
    }
}

/// One test, because the memory of (key, nonce) pairs is one for the process.
#[test]
fn the_law_holds_on_the_real_code() {
    let [_, raw] = parts();
    every_cut_that_leaves_a_page_to_fade(&raw);
    for part in &parts() {
        every_cut(part);
        every_cut_that_leaves_an_unreadable_page(part);
        every_cut_between_the_steps_of_the_counter(part);
        a_second_cut_while_opening(part);
        lying_media(part);
        a_restoring_attacker(part);
        the_attack_that_the_opening_rule_answers(part);
    }
}
