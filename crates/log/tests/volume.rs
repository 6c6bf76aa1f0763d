//! The log against a model: containers are byte vectors, records a map; random commits, rollbacks, savepoints,
//! checkpoints and reopenings, over a medium in memory. After every step both must agree.

use std::collections::BTreeMap;
use std::sync::Arc;

use counterfoil_flash::{Geometry, MemoryDevice};
use counterfoil_log::{
    Captured, Cause, ContainerId, Counting, Error, GroupId, Layout, Media, NoPins, Pins, Recovered, Sealing, Settings,
    View, Writer, create, record_space,
};
use counterfoil_vault::{DangerFixedEntropy, DatabaseId, Entropy, MemoryCounter, Suite, Vault, VolumeKey};

/// What is kept of pages: of every third history so little that pages of cells are read in pieces.
const CACHES: [usize; 3] = [1 << 14, 1 << 20, 1 << 20];

struct Bench {
    device: MemoryDevice,
    vault: Arc<Vault>,
    layout: Layout,
    counter: MemoryCounter,
    entropy: DangerFixedEntropy,
    cache: usize,
}

impl Bench {
    fn new(seed: u64) -> Bench {
        Bench::over(seed, false)
    }

    /// Over raw flash every other time.
    fn over(seed: u64, erase_before_program: bool) -> Bench {
        let (block_count, grows) = (4096, !erase_before_program);
        let geometry = Geometry { page_bytes: 512, block_pages: 4, block_count, erase_before_program, grows };
        let device = MemoryDevice::new(geometry).unwrap();
        let mut entropy = DangerFixedEntropy::seeded(seed);
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        let vault = Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv));
        let layout = Layout::new(&geometry, 8, 64).unwrap();
        let cache = CACHES[seed as usize % 3];
        Bench { device, vault, layout, counter: MemoryCounter::at(0, None), entropy, cache }
    }

    fn settings(&self) -> Settings {
        let counter: Box<dyn counterfoil_vault::Counter + Send> = Box::new(self.counter.clone());
        Settings { counter: Some(counter), counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None }
    }

    fn media(&self) -> Media {
        Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) }
    }

    fn create(&mut self) -> Writer {
        let settings = self.settings();
        create(self.media(), self.vault.clone(), self.layout, settings, &mut self.entropy, 0, self.cache).unwrap()
    }

    fn recover(&self) -> Recovered {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout, self.cache).unwrap()
    }

    fn open(&mut self) -> Result<Writer, Error> {
        let settings = self.settings();
        self.recover().open(Box::new(self.device.clone()), settings, &mut self.entropy)
    }

    fn dice(&mut self, sides: u64) -> u64 {
        let mut bytes = [0; 8];
        self.entropy.fill(&mut bytes).unwrap();
        u64::from_le_bytes(bytes) % sides
    }
}

#[derive(Clone, Default, PartialEq, Debug)]
struct Model {
    containers: BTreeMap<ContainerId, (GroupId, Vec<u8>)>,
    groups: Vec<GroupId>,
    records: BTreeMap<Vec<u8>, Vec<u8>>,
}

impl Model {
    fn agrees(&self, view: &dyn View) {
        for (id, (_, bytes)) in &self.containers {
            assert_eq!(view.length(*id).unwrap(), bytes.len() as u64);
            let mut read = vec![0; bytes.len()];
            view.read(*id, 0, &mut read).unwrap();
            assert!(read == *bytes, "container {id:?} differs");
            let third = bytes.len() / 3;
            for (from, to) in [(third, bytes.len() / 2), (third, third + third.min(1)), (third, third + third.min(33))]
            {
                view.read(*id, from as u64, &mut read[from..to]).unwrap();
                assert_eq!(read[from..to], bytes[from..to]);
            }
            assert!(view.read(*id, bytes.len() as u64, &mut [0]).is_err());
        }
        let records = view.records(record_space::USER, b"");
        let expected: Vec<(Vec<u8>, Vec<u8>)> = self.records.clone().into_iter().collect();
        let found: Vec<(Vec<u8>, Vec<u8>)> = records.into_iter().map(|(name, value)| (name, value.to_vec())).collect();
        assert_eq!(found, expected);
    }

    fn change(&mut self, bench: &mut Bench, writer: &mut Writer) {
        match bench.dice(10) {
            0 => self.groups.push(writer.create_group().unwrap()),
            1 if !self.groups.is_empty() => {
                let group = self.groups[bench.dice(self.groups.len() as u64) as usize];
                let sealing =
                    [Sealing::Whole, Sealing::Cells, Sealing::Pointers, Sealing::Sectors][bench.dice(4) as usize];
                let id = writer.create_container_sealed(group, sealing).unwrap();
                self.containers.insert(id, (group, Vec::new()));
            }
            2 if self.groups.len() > 3 => {
                let group = self.groups.remove(bench.dice(self.groups.len() as u64) as usize);
                writer.drop_group(group).unwrap();
                self.containers.retain(|_, (of, _)| *of != group);
            }
            3 => {
                let name = format!("record {}", bench.dice(20)).into_bytes();
                let value = vec![bench.dice(256) as u8; bench.dice(1500) as usize];
                writer.put_record(record_space::USER, &name, &value).unwrap();
                self.records.insert(name, value);
            }
            4 => {
                let name = format!("record {}", bench.dice(20)).into_bytes();
                writer.delete_record(record_space::USER, &name).unwrap();
                self.records.remove(&name);
            }
            _ if !self.containers.is_empty() => {
                let index = bench.dice(self.containers.len() as u64) as usize;
                let (id, (_, bytes)) = self.containers.iter_mut().nth(index).unwrap();
                let count = if bench.dice(8) == 0 { 20_000 } else { bench.dice(700) as usize };
                let mut new = vec![0; count];
                bench.entropy.fill(&mut new).unwrap();
                assert_eq!(writer.append(*id, &new).unwrap(), bytes.len() as u64);
                bytes.extend_from_slice(&new);
            }
            _ => {}
        }
    }
}

fn run(seed: u64, steps: usize) {
    let mut bench = Bench::over(seed, seed % 2 == 1);
    let mut writer = bench.create();
    let mut model = Model::default();
    let mut old: Vec<(counterfoil_log::Snapshot, Model)> = Vec::new();
    for _ in 0..steps {
        let before = model.clone();
        writer.begin().unwrap();
        for _ in 0..bench.dice(6) {
            model.change(&mut bench, &mut writer);
        }
        if bench.dice(4) == 0 {
            let savepoint = writer.savepoint().unwrap();
            let saved = model.clone();
            (0..3).for_each(|_| model.change(&mut bench, &mut writer));
            writer.rollback_to(&savepoint).unwrap();
            model = saved;
        }
        model.agrees(&writer);
        model.agrees(&writer.pending());
        if bench.dice(5) == 0 {
            writer.rollback();
            model = before;
        } else {
            writer.commit().unwrap();
        }
        writer.check();
        model.agrees(&writer);
        if bench.dice(10) == 0 {
            old.push((writer.snapshot(), model.clone()));
        }
        if bench.dice(25) == 0 {
            old.clear();
        }
        old.iter().for_each(|(snapshot, then)| then.agrees(snapshot));
        match bench.dice(20) {
            0 => writer.checkpoint().unwrap(),
            1 => {
                if bench.dice(2) == 0 {
                    writer.close().unwrap();
                }
                drop(writer);
                old.clear();
                model.agrees(&bench.recover().snapshot());
                writer = bench.open().unwrap();
                model.agrees(&writer);
            }
            _ => {}
        }
    }
}

#[test]
fn agrees_with_a_model_through_commits_rollbacks_checkpoints_and_reopenings() {
    (0..12).for_each(|seed| run(seed, 150));
}

#[test]
fn a_volume_does_not_grow_when_what_it_holds_does_not() {
    let mut bench = Bench::new(7);
    let mut writer = bench.create();
    let mut extents = Vec::new();
    for round in 0..60 {
        writer.begin().unwrap();
        let group = writer.create_group().unwrap();
        let id = writer.create_container(group).unwrap();
        writer.append(id, &[7; 30_000]).unwrap();
        writer.commit().unwrap();
        writer.begin().unwrap();
        writer.drop_group(group).unwrap();
        writer.commit().unwrap();
        if round % 10 == 9 {
            writer.close().unwrap();
            writer = bench.open().unwrap();
            extents.push(writer.extents());
        }
    }
    assert_eq!(extents[2], extents[5], "extents are used again: {extents:?}");
}

/// A checkpoint tells where everything is, so it stands twice: a page of it that is lost costs nothing, and is there
/// again after the next opening for writing.
#[test]
fn one_lost_page_of_the_record_store_costs_nothing() {
    use counterfoil_flash::{Device, PageNumber, Read};
    let mut bench = Bench::new(16);
    let mut writer = bench.create();
    let mut model = Model::default();
    for _ in 0..30 {
        writer.begin().unwrap();
        (0..5).for_each(|_| model.change(&mut bench, &mut writer));
        writer.commit().unwrap();
        writer.checkpoint().unwrap();
    }
    writer.close().unwrap();
    drop(writer);
    let counter = counterfoil_vault::Counter::value(&mut bench.counter.clone()).unwrap();
    let window = 2 * u64::from(bench.layout.window_extents * bench.layout.extent_pages);
    let first = u64::from(bench.layout.window_first * bench.layout.extent_pages);
    let mut needed = Vec::new();
    for page in (first..first + window).map(PageNumber) {
        let mut good = [0; 512];
        bench.device.read(page, 0, &mut good).unwrap();
        bench.device.program(page, &[0xA5; 512]).unwrap();
        let mut recovered = bench.recover();
        recovered.judge(&counter).unwrap_or_else(|error| panic!("{page:?}: {error}"));
        model.agrees(&recovered.snapshot());
        let damaged = recovered.damaged_checkpoint_pages().unwrap();
        assert!(damaged.is_empty() || damaged == [(page, true)], "{page:?}: {damaged:?}");
        needed.extend(damaged.into_iter().map(|(page, _)| page));
        bench.device.program(page, &good).unwrap();
    }
    assert!(needed.len() > 20 && needed.len().is_multiple_of(2), "{} pages are needed", needed.len());
    // All first copies at once, then all second ones.
    let half = PageNumber(first + window / 2);
    for second in [false, true] {
        let of_half: Vec<_> = needed.iter().filter(|page| (**page >= half) == second).collect();
        of_half.iter().for_each(|page| bench.device.program(**page, &[0xA5; 512]).unwrap());
        let writer = bench.open().unwrap();
        assert_eq!(writer.mended_pages() as usize, of_half.len());
        model.agrees(&writer);
        drop(writer);
        assert_eq!(bench.recover().damaged_checkpoint_pages().unwrap(), []);
    }
}

#[test]
fn an_older_image_is_refused() {
    let mut bench = Bench::new(9);
    let mut writer = bench.create();
    let put = |writer: &mut Writer, value: &[u8]| {
        writer.begin().unwrap();
        writer.put_record(record_space::USER, b"balance", value).unwrap();
        writer.commit().unwrap();
    };
    put(&mut writer, b"100");
    let yesterday = bench.recover();
    put(&mut writer, b"0");
    drop(writer);
    let value = bench.counter.clone();
    let value = counterfoil_vault::Counter::value(&mut value.clone()).unwrap();
    assert!(matches!(yesterday.judge(&value).as_ref().map_err(Error::cause), Err(Cause::RolledBack { .. })));
    assert_eq!(bench.recover().judge(&value), Ok(()));
    bench.counter.danger_set(Some(counterfoil_vault::CounterValue { value: 1, tag: None }));
    assert!(matches!(bench.open().as_ref().map_err(Error::cause), Err(Cause::CounterLost { .. })));
}

#[test]
fn a_backup_taken_beside_a_writer_opens_and_is_what_was_there() {
    let mut bench = Bench::new(11);
    let mut writer = bench.create();
    let mut model = Model::default();
    for _ in 0..40 {
        writer.begin().unwrap();
        (0..5).for_each(|_| model.change(&mut bench, &mut writer));
        writer.commit().unwrap();
    }
    let captured = Captured::new(Arc::new(bench.device.clone()), &bench.layout).unwrap();
    let recovered = Recovered::recover_captured(captured, bench.vault.clone(), bench.layout, bench.cache).unwrap();
    let then = model.clone();
    // The writer goes on before the copy is made; it reclaims nothing, as a pin below every commit would have it.
    let held = writer.snapshot();
    for _ in 0..5 {
        writer.begin().unwrap();
        model.change(&mut bench, &mut writer);
        writer.commit().unwrap();
    }
    let mut target = MemoryDevice::new(counterfoil_flash::Read::geometry(&bench.device)).unwrap();
    assert!(recovered.copy_pages(&mut target, &mut |_, _| true).unwrap());
    let copy = Recovered::recover(Arc::new(target.clone()), bench.vault.clone(), bench.layout, bench.cache).unwrap();
    assert_eq!(copy.commit(), held.commit_number());
    then.agrees(&copy.snapshot());
    assert!(copy.snapshot().verify_pages(&mut |_, _| {}).is_empty());
    model.agrees(&writer);

    // Restored: bound to the counter above its value, after which the original is refused.
    let value = counterfoil_vault::Counter::value(&mut bench.counter.clone()).unwrap().value;
    let settings = bench.settings();
    let mut restored =
        copy.adopt(Box::new(target.clone()), settings, &mut bench.entropy, value, |_| Ok::<_, Error>(())).unwrap();
    then.agrees(&restored);
    restored.close().unwrap();
    drop(writer);
    assert!(matches!(bench.open().as_ref().map_err(Error::cause), Err(Cause::RolledBack { .. })));
}

/// As whoever makes a backup pins it.
struct Everything;

impl Pins for Everything {
    fn oldest(&mut self) -> Option<u64> {
        Some(0)
    }
}

/// Following the spine past a checkpoint that the copy of the record store does not hold would give a state whose
/// beginning is not copied: the spine before that checkpoint is nobody's then.
#[test]
fn a_backup_is_whole_however_many_checkpoints_come_between() {
    let mut bench = Bench::new(15);
    let settings = Settings { pins: Box::new(Everything), ..bench.settings() };
    let mut writer =
        create(bench.media(), bench.vault.clone(), bench.layout, settings, &mut bench.entropy, 0, bench.cache).unwrap();
    let mut model = Model::default();
    for round in 0..60 {
        let captured = Captured::new(Arc::new(bench.device.clone()), &bench.layout).unwrap();
        let (then, acknowledged) = (model.clone(), writer.commit_number());
        for _ in 0..bench.dice(30) {
            writer.begin().unwrap();
            model.change(&mut bench, &mut writer);
            writer.commit().unwrap();
            if bench.dice(4) == 0 {
                writer.checkpoint().unwrap();
            }
        }
        let recovered = Recovered::recover_captured(captured, bench.vault.clone(), bench.layout, bench.cache).unwrap();
        assert!(recovered.commit() >= acknowledged, "round {round}");
        let mut target = MemoryDevice::new(counterfoil_flash::Read::geometry(&bench.device)).unwrap();
        assert!(recovered.copy_pages(&mut target, &mut |_, _| true).unwrap());
        let copy =
            Recovered::recover(Arc::new(target.clone()), bench.vault.clone(), bench.layout, bench.cache).unwrap();
        assert_eq!(copy.commit(), recovered.commit(), "round {round}");
        assert!(copy.snapshot().verify_pages(&mut |_, _| {}).is_empty());
        if copy.commit() == acknowledged {
            then.agrees(&copy.snapshot());
        }
    }
}

#[test]
fn a_volume_sealed_anew_holds_the_same() {
    let mut bench = Bench::new(12);
    let mut writer = bench.create();
    let mut model = Model::default();
    for _ in 0..40 {
        writer.begin().unwrap();
        (0..5).for_each(|_| model.change(&mut bench, &mut writer));
        writer.commit().unwrap();
    }
    let mut other = Bench::new(13);
    let mut copy = other.create();
    assert!(copy.fill_from(&writer.snapshot(), &mut |_, _| true).unwrap());
    model.agrees(&copy);
    copy.close().unwrap();
    drop(copy);
    model.agrees(&other.open().unwrap());
}

#[test]
fn a_flipped_byte_is_an_error_or_without_effect() {
    let mut bench = Bench::new(15);
    let mut writer = bench.create();
    let mut model = Model::default();
    for _ in 0..60 {
        writer.begin().unwrap();
        (0..5).for_each(|_| model.change(&mut bench, &mut writer));
        writer.commit().unwrap();
    }
    writer.close().unwrap();
    drop(writer);
    let pages = u64::from(bench.layout.extent_pages) * 250;
    let (mut refused, mut harmless) = (0, 0);
    for _ in 0..800 {
        let page = counterfoil_flash::PageNumber(bench.dice(pages));
        let mut bytes = [0; 512];
        if counterfoil_flash::Read::read(&bench.device, page, 0, &mut bytes).is_err() {
            continue;
        }
        let good = bytes;
        bytes[bench.dice(512) as usize] ^= 1 << bench.dice(8);
        counterfoil_flash::Device::program(&mut bench.device, page, &bytes).unwrap();
        let counter = counterfoil_vault::Counter::value(&mut bench.counter.clone()).unwrap();
        let image: Arc<dyn counterfoil_flash::Read + Send + Sync> = Arc::new(bench.device.clone());
        let outcome = Recovered::recover(image, bench.vault.clone(), bench.layout, bench.cache)
            .and_then(|recovered| recovered.judge(&counter).map(|()| recovered));
        match outcome {
            Err(_) => refused += 1,
            Ok(recovered) => {
                let snapshot = recovered.snapshot();
                if snapshot.verify_pages(&mut |_, _| {}).is_empty() {
                    model.agrees(&snapshot);
                    harmless += 1;
                } else {
                    refused += 1;
                }
            }
        }
        counterfoil_flash::Device::program(&mut bench.device, page, &good).unwrap();
    }
    assert!(refused > 50 && harmless > 50, "refused {refused}, harmless {harmless}");
    model.agrees(&bench.open().unwrap());
}
