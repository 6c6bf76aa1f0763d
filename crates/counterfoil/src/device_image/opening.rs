//! Opening the store of an image: beside its counter, or where there is none, to read.

use std::time::Duration;

use counterfoil_flash::FileDevice;
use counterfoil_flash::lock::WriterLock;
use counterfoil_record::alone::{self, Standalone, Surroundings, Word};
use counterfoil_vault::{Counter, CounterError, SystemEntropy};

use super::chip::Chip;
use super::counting::{Remembering, StandIn};
use super::medium::GRAIN;
use super::memory::{Buffers, PENDING_MAX, PENDING_MIN};
use super::{DeviceImage, path_of};
use crate::error::{Error, Kind, Result};

/// What is done with an open store, from the beginning each time.
pub(super) type User<'u, T> = &'u mut dyn FnMut(&mut dyn Chip) -> Result<T, alone::Error>;

/// How a store is opened.
struct How<'c> {
    counter: Option<&'c mut dyn Counter>,
    /// Changes that may wait for their leaves.
    pending: usize,
    /// Images behind their counter that are gone on from.
    rollbacks_max: u16,
}

/// How often an image is read before what speaks against it is believed.
const TRIES_MAX: u64 = 4;

impl DeviceImage {
    /// Opens the store to read. It is held against its counter, if that is here.
    pub(super) fn read<T>(&self, user: User<'_, T>) -> Result<T> {
        let file = FileDevice::open_read_only(path_of(&self.options)?, GRAIN)?;
        let Some(counter) = self.counter_to_read()? else {
            return self.run_without_counter(&file, user).map_err(|error| self.explain(error, None));
        };
        let mut counter = Remembering::new(counter);
        let outcome = settled(|| {
            let how = How { counter: Some(&mut counter), pending: PENDING_MAX, rollbacks_max: 0 };
            self.run(&file, how, user)
        });
        outcome.map_err(|error| self.refusal(&file, error, &mut counter))
    }

    /// Opens the store to write, beside its counter, alone.
    pub(super) fn write<T>(&self, user: User<'_, T>) -> Result<T> {
        if self.options.read_only {
            return Err(Error::new(Kind::Misuse, "the image was opened to be read"));
        }
        let file = FileDevice::open(path_of(&self.options)?, GRAIN)?;
        let _lock = WriterLock::acquire(file.handle(), self.options.lock_timeout)?;
        let mut counter = Remembering::new(self.counter_to_write()?);
        let outcome = self.least_pending(&file, &mut counter).and_then(|pending| {
            let how = How { counter: Some(&mut counter), pending, rollbacks_max: 0 };
            self.run(&file, how, user)
        });
        outcome.map_err(|error| self.refusal(&file, error, &mut counter))
    }

    /// Whether the store can be read at all.
    pub(super) fn probe(&self, file: &FileDevice) -> Result<()> {
        self.run_without_counter(file, &mut |_| Ok(())).map_err(|error| self.explain(error, None))
    }

    /// Opens the store of an image that its counter has left behind, in an epoch above it; what the counter stands at then.
    pub(super) fn go_on_from_older(
        &self,
        file: &FileDevice,
        image: u64,
        counter: &mut dyn Counter,
    ) -> Result<u64, alone::Error> {
        let pending = self.least_pending(file, &mut StandIn(image))?;
        let how = How { counter: Some(counter), pending, rollbacks_max: u16::MAX };
        self.run(file, how, &mut |chip| Ok(chip.counted()))
    }

    fn run<T>(&self, file: &FileDevice, how: How<'_>, user: User<'_, T>) -> Result<T, alone::Error> {
        match self.site.superblock.word_bytes {
            2 => self.run_with::<u16, T>(file, how, user),
            _ => self.run_with::<u32, T>(file, how, user),
        }
    }

    fn run_with<W: Word + 'static, T>(
        &self,
        file: &FileDevice,
        how: How<'_>,
        user: User<'_, T>,
    ) -> Result<T, alone::Error> {
        let (mut part, shape) = (self.site.part(file.clone()), self.site.superblock.shape);
        let mut buffers = Buffers::<W>::new(&part.geometry, &shape, how.pending)?;
        let mut entropy = SystemEntropy;
        let around = Surroundings {
            device: &mut part,
            vault: &self.vault,
            // Lent for as long as the buffers are there.
            counter: how.counter.map(|counter| &mut *counter as &mut dyn Counter),
            entropy: Some(&mut entropy),
        };
        let memory = buffers.memory();
        let mut store = match how.rollbacks_max {
            0 => Standalone::open(around, shape, memory)?,
            most => Standalone::open_despite_rollback(around, shape, memory, most)?,
        };
        user(&mut store)
    }

    /// The same for reading an image whose counter is somewhere else.
    pub(super) fn run_without_counter<T>(&self, file: &FileDevice, user: User<'_, T>) -> Result<T, alone::Error> {
        settled(|| self.run(file, How { counter: None, pending: PENDING_MAX, rollbacks_max: 0 }, user))
    }

    /// The smallest list of waiting changes that the store opens with. Whoever writes with a longer one may leave more of them
    /// waiting than the device has room for.
    fn least_pending(&self, file: &FileDevice, counter: &mut dyn Counter) -> Result<usize, alone::Error> {
        let mut opens = |pending| {
            let how = How { counter: Some(&mut *counter), pending, rollbacks_max: 0 };
            match self.run(file, how, &mut |_| Ok(())) {
                Err(alone::Error::BufferTooSmall) => Ok(false),
                outcome => outcome.map(|()| true),
            }
        };
        let (mut low, mut high) = (PENDING_MIN, PENDING_MIN);
        while !opens(high)? {
            if high == PENDING_MAX {
                return Err(alone::Error::BufferTooSmall);
            }
            (low, high) = (high + 1, (2 * high).min(PENDING_MAX));
        }
        while low < high {
            let middle = low.midpoint(high);
            if opens(middle)? { high = middle } else { low = middle + 1 }
        }
        Ok(high)
    }

    /// An error of the store, as people and programs get it.
    pub(super) fn explain(&self, error: alone::Error, counter: Option<CounterError>) -> Error {
        use alone::Error as Store;
        let text = error.to_string();
        let (kind, advice) = match error {
            Store::Counter => return counter.map_or_else(|| Error::new(Kind::Device, text), Error::from),
            // What records may be called is said by whoever knows what this one was.
            Store::IdOutOfRange | Store::Name => return Error::new(Kind::Input, text),
            Store::RecordTooLong => {
                let advice = format!("{} bytes fit at most, with the name", self.record_bytes_max());
                return Error::new(Kind::Input, text).advise(advice);
            }
            Store::Tampered | Store::NoCommit => (Kind::Tampered, "read the image out again, or use an older copy"),
            Store::Corrupt | Store::Geometry => (Kind::Corrupt, "read the image out again, or use an older copy"),
            Store::RolledBack => (Kind::RolledBack, "put the newest image back"),
            Store::CounterLost => (Kind::CounterLost, "bring the counter back"),
            Store::Full | Store::IdsExhausted => (Kind::Full, "delete records, or use a larger part"),
            Store::WornOut => (Kind::Full, "make a new image"),
            Store::BufferTooSmall => (Kind::NotSupported, "the device has more memory than a host takes for it"),
            Store::NoRecord => (Kind::NotFound, "see `counterfoil kv IMAGE list`"),
            Store::NoGenerator => (Kind::Misuse, "use a counter, a salted store, or aes-256-gcm-siv"),
            Store::Device | Store::Latched => (Kind::Device, "see the system's log, then open the image again"),
            _ => (Kind::Bug, "please report it"),
        };
        Error::new(kind, text).advise(advice)
    }

    fn record_bytes_max(&self) -> usize {
        let superblock = self.site.superblock;
        let sizes = match superblock.word_bytes {
            2 => superblock.shape.sizes::<u16>(&superblock.geometry),
            _ => superblock.shape.sizes::<u32>(&superblock.geometry),
        };
        sizes.map_or(0, |sizes| sizes.record_bytes_max)
    }
}

/// Reads until nothing speaks against the image, or what does stays: another process may write meanwhile, and move the image
/// and its counter.
fn settled<T>(mut read: impl FnMut() -> Result<T, alone::Error>) -> Result<T, alone::Error> {
    use alone::Error::{Corrupt, CounterLost, NoCommit, RolledBack, Tampered};
    for tries in 1..TRIES_MAX {
        match read() {
            Err(Corrupt | CounterLost | NoCommit | RolledBack | Tampered) => {
                std::thread::sleep(Duration::from_millis(5 * tries));
            }
            outcome => return outcome,
        }
    }
    read()
}
