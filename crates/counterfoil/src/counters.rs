//! The one-way counter as its owner handles it: looked at, bound anew, forgotten.

use std::path::PathBuf;
use std::sync::Arc;

use counterfoil_flash as flash;
use counterfoil_flash::lock::{LockError, Pins, WriterLock};
use counterfoil_log::{Settings, Writer};
use counterfoil_vault::{self as vault, CounterError, CounterKind, HostCounter, SystemEntropy};

use crate::convert::no_place_for_counter;
use crate::error::{Error, Kind, Result};
use crate::incidents;
use crate::options::{Counter, Options};
use crate::rollback;
use crate::store::{OtherReaders, counting};
use crate::volume::{Freshness, Keeper, Volume};

/// A counter beside the image it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterInfo {
    /// `file`, `tpm` or `none`.
    pub kind: &'static str,
    /// Where it is kept.
    pub path: Option<PathBuf>,
    /// Its value, if it could be read.
    pub value: Option<u64>,
    /// When it last moved, in seconds since 1970.
    pub moved: Option<u64>,
    /// Where the database was then.
    pub seen_at: Option<String>,
    /// The version of the newest commit in the image.
    pub image: u64,
    /// What the two say together: nothing if the image is the newest.
    pub verdict: Option<Error>,
}

impl Counter {
    /// The counter of a database beside its image, whatever they say of each other.
    ///
    /// # Errors
    /// Those of opening the database, except for the counter's own.
    pub fn show(options: Options) -> Result<CounterInfo> {
        let place = options.place.clone();
        let volume = Volume::open(options).map_err(|error| error.at(&place))?;
        show(&volume).map_err(|error| error.at(&place))
    }

    /// Binds the counter to the image as it is now, on its owner's word, and leaves an incident behind. Every other image
    /// of the database is refused from then on.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for a database without a counter; those of writing.
    pub fn adopt(options: Options) -> Result<()> {
        let place = options.place.clone();
        adopt(options).map_err(|error| error.at(&place))
    }

    /// Deletes this machine's counter of a database: what it vouched for can then be put back unnoticed.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is none, [`Kind::Misuse`] for a database without a counter.
    pub fn forget(options: Options) -> Result<()> {
        let place = options.place.clone();
        forget(options).map_err(|error| error.at(&place))
    }
}

fn show(volume: &Volume) -> Result<CounterInfo> {
    let recovered = volume.recover()?;
    let mut info = CounterInfo {
        kind: volume.counter_kind().name(),
        path: None,
        value: None,
        moved: None,
        seen_at: None,
        image: recovered.version(),
        verdict: None,
    };
    if volume.counter_kind() == CounterKind::None {
        return Ok(info);
    }
    let mut counter = counter_of(volume)?;
    info.path = Some(counter.place());
    match counter.record() {
        Ok(record) => {
            (info.value, info.moved) = (Some(record.value), Some(record.time));
            info.seen_at = Some(record.path).filter(|path| !path.is_empty());
            info.verdict = match volume.recover_and_judge() {
                Ok((_, Freshness::Behind(permitted))) => Some(permitted.refusal),
                judged => judged.err(),
            };
        }
        Err(CounterError::Absent) => {
            let absent = Error::new(Kind::CounterLost, "there is no counter for this database here");
            info.verdict = Some(absent.advise(match volume.counter_kind() {
                CounterKind::Tpm => "use the machine that has it, or bind another with `counterfoil counter adopt`",
                _ => "bring it from where the database was used: the next write adopts one",
            }));
        }
        Err(error) => info.verdict = Some(error.into()),
    }
    Ok(info)
}

fn forget(options: Options) -> Result<()> {
    let volume = Volume::open(options)?;
    let mut counter = counter_of(&volume)?;
    let handle = volume.medium.handle();
    let lock = handle.map(|handle| WriterLock::acquire(handle, volume.options.lock_timeout)).transpose();
    let _lock = match lock {
        // Nobody writes to what can only be read.
        Err(LockError::Device(flash::Error::ReadOnly)) => None,
        lock => lock?,
    };
    counter.forget().map_err(|error| match error {
        CounterError::Absent => Error::new(Kind::NotFound, "there is no counter for this database here"),
        other => other.into(),
    })
}

fn counter_of(volume: &Volume) -> Result<Box<dyn HostCounter>> {
    if volume.counter_kind() == CounterKind::None {
        return Err(Error::new(Kind::Misuse, "this database has no counter"));
    }
    volume.counter()?.ok_or_else(no_place_for_counter)
}

fn adopt(options: Options) -> Result<()> {
    let volume = Arc::new(Volume::open(options)?);
    let mut counter = counter_of(&volume)?;
    let handle = volume.medium.handle();
    let _lock = handle.map(|handle| WriterLock::acquire(handle, volume.options.lock_timeout)).transpose()?;
    counter.hold(volume.options.lock_timeout)?;
    let found = match counter.record() {
        Ok(record) => format!("the counter stood at {}", record.value),
        Err(error @ CounterError::Device { .. }) => return Err(error.into()),
        Err(error) => error.to_string(),
    };
    let value = counter.record().map_or(0, |record| record.value);
    let recovered = volume.recover()?;
    let image = recovered.version();
    let hidden =
        recovered.unreadable().map(|error| format!("; {error}, and what stood there is gone")).unwrap_or_default();
    drop(recovered);
    counter.set_rollbacks(0);
    let text = format!("this image, version {image}, was taken for the newest by hand; {found}{hidden}");
    let accepted = |writer: &mut Writer| {
        writer.begin()?;
        incidents::put(writer, incidents::IncidentKind::AdoptedByHand, &text)?;
        rollback::accept(writer)?;
        writer.commit()?;
        Ok(())
    };
    Ok(adopt_image(&volume, Some(counter), value, accepted)?.close()?)
}

/// Opens an image for writing in an epoch above `value`, and when `first` has left its incident behind, binds its counter
/// to it, where it has one. The writer's lock is the caller's.
pub(crate) fn adopt_image(
    volume: &Arc<Volume>,
    counter: Option<Box<dyn vault::Counter + Send>>,
    value: u64,
    first: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<Writer> {
    let recovered = volume.recover()?;
    volume.settle(&recovered.snapshot())?;
    let pins = volume.medium.handle().map(Pins::new);
    let settings = Settings {
        counter,
        counting: counting(volume.counter_kind()),
        pins: match pins {
            Some(pins) => Box::new(OtherReaders::new(pins, volume.options.snapshot_max_age)),
            None => Box::new(counterfoil_log::NoPins),
        },
        headers: Some(Box::new(Keeper(volume.clone()))),
    };
    recovered.adopt(volume.medium.writer(), settings, &mut SystemEntropy, value, first)
}
