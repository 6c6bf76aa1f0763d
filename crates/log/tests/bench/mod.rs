//! What the tests of single histories share: a medium, a counter, a clock, readers and headers as a test sets them.
#![allow(dead_code)]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use counterfoil_flash::{BlockNumber, Device, Geometry, PageNumber, Read};
use counterfoil_flash_sim::{Part, Scenario, SimulatedDevice};
use counterfoil_log::{
    Cause, ContainerId, Counting, Error, GroupId, HeaderKeeper, Layout, Media, Pins, Recovered, Settings, View, Writer,
    create, record_space,
};
use counterfoil_vault::{
    Counter, CounterError, CounterKind, CounterValue, DangerFixedEntropy, DatabaseId, Entropy, MemoryCounter, Suite,
    Tag, Vault, VolumeKey,
};

pub const CACHE: usize = 1 << 18;

/// A process that dies at its so-manieth operation on the medium: what it wrote stays in the system's cache.
#[derive(Clone)]
pub struct Mortal {
    pub device: SimulatedDevice,
    pub left: Arc<AtomicU64>,
}

impl Mortal {
    fn step(&self) -> Result<(), counterfoil_flash::Error> {
        let left = self.left.load(Ordering::Relaxed);
        self.left.store(left.saturating_sub(1), Ordering::Relaxed);
        if left == 0 { Err(counterfoil_flash::Error::Latched) } else { Ok(()) }
    }
}

impl Read for Mortal {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), counterfoil_flash::Error> {
        self.device.read(page, offset, buffer)
    }
}

impl Device for Mortal {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), counterfoil_flash::Error> {
        self.step()?;
        self.device.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), counterfoil_flash::Error> {
        self.device.erase(block)
    }

    fn flush(&mut self) -> Result<(), counterfoil_flash::Error> {
        self.step()?;
        self.device.flush()
    }
}

/// A disk that others fill, too: so many pages of it may be ours.
#[derive(Clone)]
pub struct Shared {
    device: SimulatedDevice,
    pages: Arc<AtomicU64>,
}

impl Shared {
    pub fn of(device: &SimulatedDevice, pages: u64) -> Shared {
        Shared { device: device.clone(), pages: Arc::new(AtomicU64::new(pages)) }
    }

    /// Others leave so much, or what is ours already.
    pub fn leave(&self, pages: u64) {
        self.pages.store(pages, Ordering::Relaxed);
    }
}

impl Read for Shared {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), counterfoil_flash::Error> {
        self.device.read(page, offset, buffer)
    }
}

impl Device for Shared {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), counterfoil_flash::Error> {
        assert!(page.0 < self.pages.load(Ordering::Relaxed), "page {} was never reserved", page.0);
        self.device.program(page, data)
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), counterfoil_flash::Error> {
        self.device.erase(block)
    }

    fn flush(&mut self) -> Result<(), counterfoil_flash::Error> {
        self.device.flush()
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), counterfoil_flash::Error> {
        match page.0 + pages <= self.pages.load(Ordering::Relaxed) {
            true => self.device.reserve(page, pages),
            false => Err(counterfoil_flash::Error::Full { page }),
        }
    }
}

/// A counter without room for a tag, as a TPM is.
pub struct Tagless(pub MemoryCounter);

impl Counter for Tagless {
    fn kind(&self) -> CounterKind {
        CounterKind::Tpm
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        Ok(CounterValue { tag: None, ..self.0.value()? })
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        self.0.step(to, tag)
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        self.0.adopt(value, tag)
    }
}

/// Readers of other processes, as a test sets them.
#[derive(Clone, Default)]
pub struct SetPins(pub Arc<Mutex<Option<u64>>>);

impl Pins for SetPins {
    fn oldest(&mut self) -> Option<u64> {
        *self.0.lock().unwrap()
    }
}

/// Headers that remember the window, and commit as often as a test likes while they are changed.
#[derive(Clone)]
pub struct Keeper {
    pub window: Arc<Mutex<Option<(u32, u32)>>>,
    pub salts: DangerFixedEntropy,
    pub commits: u64,
}

impl HeaderKeeper for Keeper {
    fn salt(&mut self) -> Result<[u8; 16], Error> {
        let mut salt = [0; 16];
        self.salts.fill(&mut salt).map_err(|_| Error::from(Cause::NoEntropy))?;
        Ok(salt)
    }

    fn move_window(&mut self, writer: &mut Writer, first_extent: u32, extents: u32) -> Result<(), Error> {
        for commit in 0..self.commits {
            put(writer, "moving", &commit.to_le_bytes())?;
        }
        *self.window.lock().unwrap() = Some((first_extent, extents));
        Ok(())
    }
}

pub struct Bench {
    pub device: SimulatedDevice,
    pub vault: Arc<Vault>,
    pub layout: Layout,
    pub counter: MemoryCounter,
    pub tagless: bool,
    pub entropy: DangerFixedEntropy,
    /// Milliseconds of the clock, where commits are counted in groups of 1000.
    pub clock: Option<Arc<AtomicU64>>,
    pub pins: SetPins,
    pub keeper: Option<Keeper>,
}

/// Whatever a test is about: where the part has rules, no page was to be programmed twice or out of order.
impl Drop for Bench {
    fn drop(&mut self) {
        let refused = self.device.refused();
        assert!(
            std::thread::panicking() || refused.is_none(),
            "{refused:?} was to be programmed twice or out of order"
        );
    }
}

impl Bench {
    /// A medium of so many extents of eight pages, the record store's window being so many of them.
    pub fn new(part: Part, window_extents: u32) -> Bench {
        // Each has keys of its own, so that the memory of (key, nonce) pairs serves all tests of this process.
        static SEED: AtomicU64 = AtomicU64::new(1);
        let geometry = part.geometry;
        let mut entropy = DangerFixedEntropy::seeded(SEED.fetch_add(1, Ordering::Relaxed));
        let key = VolumeKey::generate(&mut entropy).unwrap();
        let id = DatabaseId::generate(&mut entropy).unwrap();
        Bench {
            device: SimulatedDevice::new(part, Scenario::calm(1)),
            vault: Arc::new(Vault::new(&key, id, Suite::Aes256GcmSiv)),
            layout: Layout::new(&geometry, 8, window_extents).unwrap(),
            counter: MemoryCounter::at(0, None),
            tagless: false,
            entropy,
            clock: None,
            pins: SetPins::default(),
            keeper: None,
        }
    }

    pub fn file(extents: u64, window_extents: u32) -> Bench {
        Bench::new(Part::file(512, 4, extents * 2), window_extents)
    }

    /// Lets the record store move.
    pub fn with_keeper(mut self, commits: u64) -> Bench {
        let mut salts = self.entropy.clone();
        salts.fill(&mut [0; 7]).unwrap();
        self.keeper = Some(Keeper { window: Arc::default(), salts, commits });
        self
    }

    pub fn settings(&self) -> Settings {
        let counter: Box<dyn Counter + Send> =
            if self.tagless { Box::new(Tagless(self.counter.clone())) } else { Box::new(self.counter.clone()) };
        let counting = match &self.clock {
            None => Counting::EveryCommit,
            Some(clock) => {
                let clock = clock.clone();
                Counting::Every { milliseconds: 1000, clock: Box::new(move || clock.load(Ordering::Relaxed)) }
            }
        };
        let headers = self.keeper.clone().map(|keeper| Box::new(keeper) as Box<dyn HeaderKeeper>);
        Settings { counter: Some(counter), counting, pins: Box::new(self.pins.clone()), headers }
    }

    pub fn create(&mut self) -> Writer {
        self.try_create().unwrap()
    }

    pub fn try_create(&mut self) -> Result<Writer, Error> {
        let media = Media { reader: Arc::new(self.device.clone()), writer: Box::new(self.device.clone()) };
        let settings = self.settings();
        create(media, self.vault.clone(), self.layout, settings, &mut self.entropy, 0, CACHE)
    }

    pub fn layout(&self) -> Layout {
        let window = self.keeper.as_ref().and_then(|keeper| *keeper.window.lock().unwrap());
        let (window_first, window_extents) = window.unwrap_or((self.layout.window_first, self.layout.window_extents));
        Layout { window_first, window_extents, ..self.layout }
    }

    pub fn recover(&self) -> Result<Recovered, Error> {
        Recovered::recover(Arc::new(self.device.clone()), self.vault.clone(), self.layout(), CACHE)
    }

    pub fn open_on(&mut self, device: Box<dyn Device + Send>) -> Result<Writer, Error> {
        let settings = self.settings();
        self.recover()?.open(device, settings, &mut self.entropy)
    }

    pub fn open(&mut self) -> Result<Writer, Error> {
        self.open_on(Box::new(self.device.clone()))
    }

    pub fn judged(&self) -> Result<counterfoil_log::Snapshot, Error> {
        let recovered = self.recover()?;
        let mut value = self.counter.clone().value().unwrap();
        value.tag = value.tag.filter(|_| !self.tagless);
        recovered.judge(&value)?;
        Ok(recovered.snapshot())
    }
}

pub fn put(writer: &mut Writer, name: &str, value: &[u8]) -> Result<(), Error> {
    writer.begin()?;
    writer.put_record(record_space::USER, name.as_bytes(), value)?;
    writer.commit().map(drop)
}

pub fn record(view: &dyn View, name: &str) -> Option<Vec<u8>> {
    view.record(record_space::USER, name.as_bytes()).map(|value| value.to_vec())
}

pub fn fill(writer: &mut Writer, group: GroupId, bytes: usize) -> Result<ContainerId, Error> {
    let id = writer.create_container(group)?;
    writer.append(id, &vec![id.0 as u8; bytes])?;
    Ok(id)
}

/// A new group with one container of so many bytes, committed.
pub fn grow(writer: &mut Writer, bytes: usize) -> Result<(GroupId, ContainerId), Error> {
    writer.begin()?;
    let made = writer.create_group().and_then(|group| Ok((group, fill(writer, group, bytes)?)));
    let made = made.and_then(|made| writer.commit().map(|_| made));
    if made.is_err() {
        writer.rollback();
    }
    made
}

pub fn holds(view: &dyn View, id: ContainerId, bytes: usize) {
    let mut read = vec![0; bytes];
    view.read(id, 0, &mut read).unwrap();
    assert!(read.iter().all(|byte| *byte == id.0 as u8));
}
