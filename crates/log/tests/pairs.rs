//! Every (key, nonce) pair of histories that part from one file is distinct: two databases under one key, a copy that
//! goes on beside its original, an image put back and adopted, a database sealed anew under another key or name.
//!
//! One test in a binary of its own: the witness remembers every seal of the process, and at the end all of them are
//! compared. What a single history does when it is cut is compared in `power.rs`.

use std::sync::Arc;

use counterfoil_flash::{Device, Geometry, MemoryDevice, PageNumber, Read};
use counterfoil_log::{
    Cause, ContainerId, Counting, Error, GroupId, Layout, Media, NamelessPage, NoPins, PoolId, PoolOptions, PoolOwner,
    Recovered, Sealing, Settings, Snapshot, View, Visit, Writer, create, record_space,
};
use counterfoil_vault::{
    Counter, DangerFixedEntropy, DatabaseId, MemoryCounter, Suite, SystemEntropy, Vault, VolumeKey, witness,
};

const SHAPE: Geometry =
    Geometry { page_bytes: 512, block_pages: 4, block_count: 1024, erase_before_program: false, grows: true };

/// A file somewhere, with the counter that is there.
struct Place {
    device: MemoryDevice,
    counter: Option<MemoryCounter>,
    vault: Arc<Vault>,
}

fn layout() -> Layout {
    Layout::new(&SHAPE, 8, 32).expect("a layout")
}

impl Place {
    fn new(key: u8, id: u8, suite: Suite, counter: Option<MemoryCounter>) -> Place {
        let vault = Vault::new(&VolumeKey::from_bytes(&[key; 32]), DatabaseId([id; 32]), suite);
        Place { device: MemoryDevice::new(SHAPE).expect("a device"), counter, vault: Arc::new(vault) }
    }

    /// What `cp` makes of it, with a counter of its own that stands where this one stands.
    fn copied(&self) -> Place {
        let device = MemoryDevice::new(SHAPE).expect("a device");
        copy(&self.device, &device);
        let value = |counter: &MemoryCounter| counter.clone().value().expect("stands");
        let counter = self.counter.as_ref().map(value).map(|value| MemoryCounter::at(value.value, value.tag));
        Place { device, counter, vault: self.vault.clone() }
    }

    fn settings(&self) -> Settings {
        let counter = self.counter.clone().map(|counter| Box::new(counter) as Box<dyn Counter + Send>);
        Settings { counter, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None }
    }

    fn created(&self) -> Writer {
        let media = Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) };
        create(media, self.vault.clone(), layout(), self.settings(), &mut SystemEntropy, 0, 1 << 16).expect("created")
    }

    fn recovered(&self) -> Recovered {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), layout(), 1 << 16).expect("recovers")
    }

    fn opened(&self) -> Writer {
        self.recovered().open(Box::new(self.device.clone()), self.settings(), &mut SystemEntropy).expect("opens")
    }

    fn adopted(&self) -> Writer {
        let value = self.counter.clone().map_or(0, |mut counter| counter.value().expect("stands").value);
        let device = Box::new(self.device.clone());
        self.recovered().adopt(device, self.settings(), &mut SystemEntropy, value, unmarked).expect("adopts")
    }
}

/// An adoption that is cut before its first commit, and one that is cut behind it.
fn cut_adoptions(place: &Place) {
    for commits in 0..2 {
        let cut = |writer: &mut Writer| {
            for _ in 0..commits {
                writer.begin()?;
                writer.put_record(record_space::USER, b"incident", &[7; 40])?;
                writer.commit()?;
            }
            Err(Error::full(0, None))
        };
        let device = Box::new(place.device.clone());
        let value = place.counter.clone().map_or(0, |mut counter| counter.value().expect("stands").value);
        let outcome = place.recovered().adopt(device, place.settings(), &mut SystemEntropy, value, cut);
        assert!(matches!(outcome.as_ref().map_err(Error::cause), Err(Cause::Full { .. })));
    }
}

/// An adoption that leaves no incident.
fn unmarked(_: &mut Writer) -> Result<(), Error> {
    Ok(())
}

/// Puts the contents of one medium in the place of another's.
fn copy(from: &MemoryDevice, to: &MemoryDevice) {
    let mut extent = vec![0; 512 * 4];
    for block in 0..SHAPE.block_count {
        from.read(PageNumber(block * 4), 0, &mut extent).expect("reads");
        to.clone().program(PageNumber(block * 4), &extent).expect("writes");
    }
}

/// The pool, and the addresses of its pages.
fn addresses(view: &dyn View) -> Option<(PoolId, Vec<NamelessPage>)> {
    let known = view.record(record_space::USER, b"pages")?;
    let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
    let page = |bytes: &[u8]| NamelessPage { page: number(&bytes[..8]), write: number(&bytes[8..]) };
    Some((PoolId(number(&known[..8])), known[8..].chunks(16).map(page).collect()))
}

/// Writes nameless pages anew, those of an earlier history too.
fn write_pages(writer: &mut Writer, byte: u8) {
    let make = |writer: &mut Writer| writer.create_pool(PoolOptions::default()).expect("a pool");
    let (pool, mut pages) = addresses(writer).unwrap_or_else(|| (make(writer), Vec::new()));
    for page in pages.drain(..pages.len().min(5)) {
        writer.free_nameless(pool, page).expect("frees");
    }
    while pages.len() < 9 {
        pages.push(writer.write_nameless(pool, &[byte; 496]).expect("writes"));
    }
    let numbers = pages.iter().flat_map(|page| [page.page, page.write]);
    let value: Vec<u8> = std::iter::once(pool.0).chain(numbers).flat_map(u64::to_le_bytes).collect();
    writer.put_record(record_space::USER, b"pages", &value).expect("put");
}

/// Whoever reads the record of the addresses knows all pages.
struct Addresses;

impl PoolOwner for Addresses {
    fn visit_pages(&self, source: &Snapshot, _: PoolId, visit: Visit<'_>) -> Result<(), Error> {
        addresses(source).into_iter().flat_map(|(_, pages)| pages).try_for_each(visit)
    }
}

/// The same for every history, but for one byte: pages filled, tails, records, a rollback, a checkpoint, a close.
fn go_on(mut writer: Writer, byte: u8) {
    writer.begin().expect("begins");
    let group = writer.create_group().expect("a group");
    let fresh = writer.create_container(group).expect("a container");
    writer.append(fresh, &vec![byte; 3000]).expect("appends");
    let cells = writer.create_container_sealed(group, Sealing::Cells).expect("a container");
    writer.append(cells, &vec![byte; 1000]).expect("appends");
    writer.commit().expect("commits");
    writer.begin().expect("begins");
    writer.append(fresh, &vec![byte ^ 0x80; 1000]).expect("appends");
    writer.append(cells, &vec![byte ^ 0x80; 1000]).expect("appends");
    writer.rollback();
    for round in 0..3 {
        writer.begin().expect("begins");
        // What an earlier history left half filled goes on in this one.
        let first = writer.length(ContainerId(1)).is_ok();
        writer.append(if first { ContainerId(1) } else { fresh }, &[byte ^ round; 600]).expect("appends");
        writer.append(if first { ContainerId(2) } else { cells }, &[byte ^ round; 400]).expect("appends");
        writer.put_record(record_space::USER, b"name", &[byte; 40]).expect("put");
        write_pages(&mut writer, byte ^ round);
        writer.commit().expect("commits");
        writer.begin().expect("begins");
        write_pages(&mut writer, byte ^ round ^ 0x80);
        writer.rollback();
    }
    assert!(group >= GroupId(16));
    writer.checkpoint().expect("a checkpoint");
    writer.close().expect("closes");
}

/// Everything that can part from one closed database.
fn histories(key: u8, suite: Suite, counter: Option<MemoryCounter>) {
    let first = Place::new(key, 1, suite, counter.clone());
    go_on(first.created(), 1);
    // Another one under the same key does the same things.
    let other = counter.as_ref().map(|_| MemoryCounter::at(0, None));
    go_on(Place::new(key, 2, suite, other).created(), 1);

    let kept = first.copied();
    // A copy on another machine goes on, and so does the original; a third counter was lost.
    go_on(first.opened(), 2);
    go_on(kept.copied().opened(), 3);
    let mut lost = kept.copied();
    lost.counter = lost.counter.map(|_| MemoryCounter::new());
    go_on(
        lost.recovered()
            .adopt(Box::new(lost.device.clone()), lost.settings(), &mut SystemEntropy, 0, unmarked)
            .unwrap(),
        4,
    );
    // Yesterday's image is put back and adopted, twice; without a counter it is just opened.
    for byte in 5..7 {
        copy(&kept.device, &first.device);
        cut_adoptions(&first);
        go_on(if first.counter.is_some() { first.adopted() } else { first.opened() }, byte);
    }
    // Sealed anew: under another key as the same database, and as a new database under its own.
    for (key, id) in [(key + 100, 1), (key, 3)] {
        let counter = counter.as_ref().map(|_| MemoryCounter::at(0, None));
        let anew = Place::new(key, id, suite, counter);
        let mut writer = anew.created();
        assert!(writer.fill_from_with(&first.recovered().snapshot(), &Addresses, &mut |_, _| true).expect("fills"));
        go_on(writer, 7);
        go_on(anew.opened(), 8);
    }
}

#[test]
fn histories_that_part_share_no_pair() {
    for (key, suite) in (1..).zip([Suite::Aes256GcmSiv, Suite::Aes256Gcm, Suite::ChaCha20Poly1305]) {
        histories(key, suite, Some(MemoryCounter::at(0, None)));
        histories(key + 10, suite, None);
    }
    let seen = witness::distinct();
    assert!(seen > 1500, "{seen} pairs");
    assert_eq!(witness::duplicates(), []);

    // And that the witness would tell: two copies without a counter whose generators are one.
    let first = Place::new(50, 1, Suite::Aes256GcmSiv, None);
    go_on(first.created(), 1);
    let second = first.copied();
    for (place, byte) in [(first, 2), (second, 3)] {
        let device = Box::new(place.device.clone());
        go_on(place.recovered().open(device, place.settings(), &mut DangerFixedEntropy::seeded(1)).unwrap(), byte);
    }
    assert!(!witness::duplicates().is_empty());
}
