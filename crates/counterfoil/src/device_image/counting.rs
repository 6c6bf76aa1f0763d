//! The counter of an image: on a host, a file in the state directory. What the device itself counts with is elsewhere.

use std::time::Duration;

use counterfoil_flash::FileDevice;
use counterfoil_flash::lock::WriterLock;
use counterfoil_record::alone;
use counterfoil_vault::{
    Counter as _, CounterError, CounterKind, CounterRecord, CounterValue, FileCounter, Tag, Vault,
};

use super::medium::GRAIN;
use super::{DeviceImage, path_of};
use crate::counters::CounterInfo;
use crate::error::{Error, Kind, Result};
use crate::options::{Counter, Options};
use crate::time::utc;

const ADOPT: &str = "put the newest image back, or accept this one with `counterfoil counter adopt`";

/// A file counter that remembers why it failed: the store has one byte to say so.
pub(super) struct Remembering {
    counter: FileCounter,
    failure: Option<CounterError>,
}

impl Remembering {
    pub(super) fn new(counter: FileCounter) -> Self {
        Self { counter, failure: None }
    }

    pub(super) fn failure(&self) -> Option<CounterError> {
        self.failure
    }

    fn remember<T>(&mut self, outcome: Result<T, CounterError>) -> Result<T, CounterError> {
        self.failure = outcome.as_ref().err().copied().or(self.failure);
        outcome
    }
}

impl counterfoil_vault::Counter for Remembering {
    fn kind(&self) -> CounterKind {
        self.counter.kind()
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        let outcome = self.counter.value();
        self.remember(outcome)
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        let outcome = self.counter.step(to, tag);
        self.remember(outcome)
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        let outcome = self.counter.adopt(value, tag);
        self.remember(outcome)
    }
}

/// Stands in for a counter that is somewhere else. It never moves.
pub(super) struct StandIn(pub(super) u64);

impl counterfoil_vault::Counter for StandIn {
    fn kind(&self) -> CounterKind {
        CounterKind::None
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        Ok(CounterValue { value: self.0, tag: None })
    }

    fn step(&mut self, _: u64, _: &Tag) -> Result<(), CounterError> {
        Err(CounterError::Absent)
    }

    fn adopt(&mut self, _: u64, _: &Tag) -> Result<(), CounterError> {
        Err(CounterError::Absent)
    }
}

/// The file counter that the options name for the store of these keys.
pub(super) fn file_counter(options: &Options, vault: &Vault) -> Result<Option<FileCounter>> {
    let Some(Counter::File(directory)) = &options.counter else { return Ok(None) };
    let path = path_of(options)?;
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    Ok(Some(FileCounter::new(directory, &path, vault)))
}

fn absent() -> Error {
    Error::new(Kind::CounterLost, "the counter of this device is not here, so its image can only be read")
        .advise("write on the device, or let this copy go on in its place with `counterfoil counter adopt`")
}

impl DeviceImage {
    fn file_counter(&self) -> Result<Option<FileCounter>> {
        file_counter(&self.options, &self.vault)
    }

    /// The counter, if there is one here. Says so if not.
    pub(super) fn counter_to_read(&self) -> Result<Option<FileCounter>> {
        let mut counter = self.file_counter()?;
        match counter.as_mut().map(FileCounter::record) {
            Some(Ok(_)) => Ok(counter),
            Some(Err(error)) if error != CounterError::Absent => Err(error.into()),
            _ if self.options.require_counter => Err(Error::new(Kind::CounterLost, absent_here())
                .advise("bring it here, or bind one to the image with `counterfoil counter adopt`")),
            _ => {
                self.options.note("freshness not checked");
                Ok(None)
            }
        }
    }

    /// The counter, for this opening alone.
    pub(super) fn counter_to_write(&self) -> Result<FileCounter> {
        let mut counter = self.file_counter()?.ok_or_else(absent)?;
        match counter.record() {
            Err(CounterError::Absent) => Err(absent()),
            Err(error) => Err(error.into()),
            Ok(_) => {
                counter.hold(self.options.lock_timeout)?;
                Ok(counter)
            }
        }
    }

    /// What the newest commit of the image was counted under, and its tag, whatever the counter says.
    fn newest(&self, file: &FileDevice) -> Result<(u64, Tag)> {
        let newest = self.run_without_counter(file, &mut |chip| Ok((chip.counted(), chip.tag())));
        newest.map_err(|error| self.explain(error, None))
    }

    /// Why the store was not opened beside this counter, or did not do what it was asked.
    pub(super) fn refusal(&self, file: &FileDevice, error: alone::Error, counter: &mut Remembering) -> Error {
        if !matches!(error, alone::Error::RolledBack | alone::Error::CounterLost) {
            return self.explain(error, counter.failure);
        }
        let newest = self.newest(file).map(|(counted, _)| counted);
        match (newest, counter.counter.record()) {
            (Ok(image), Ok(record)) => disagreement(image, &record),
            _ => self.explain(error, None),
        }
    }

    /// The counter beside the image, whatever they say of each other.
    ///
    /// # Errors
    /// Those of opening the image, except for the counter's own.
    pub fn show_counter(&self) -> Result<CounterInfo> {
        let file = FileDevice::open_read_only(path_of(&self.options)?, GRAIN)?;
        let (image, tag) = self.newest(&file).map_err(|error| error.at(&self.options.place))?;
        let mut info = CounterInfo {
            kind: self.kind().name(),
            path: None,
            value: None,
            moved: None,
            seen_at: None,
            image,
            verdict: None,
        };
        let (Some(mut counter), Some(Counter::File(directory))) = (self.file_counter()?, &self.options.counter) else {
            return Ok(info);
        };
        info.path = Some(FileCounter::path_in(directory, self.vault.id()));
        match counter.record() {
            Ok(record) => {
                let is_newest = match image.checked_sub(record.value) {
                    Some(0) => record.tag == tag,
                    Some(_) => self.read(&mut |_| Ok(())).is_ok(),
                    None => false,
                };
                info.verdict = (!is_newest).then(|| disagreement(image, &record));
                (info.value, info.moved, info.seen_at) = (Some(record.value), Some(record.time), Some(record.path));
            }
            Err(CounterError::Absent) => info.verdict = Some(absent()),
            Err(error) => info.verdict = Some(error.into()),
        }
        Ok(info)
    }

    /// Binds the counter here to the image as it is now, on its owner's word, so that the host may write to it. An image that
    /// is behind its counter is gone on from in an epoch above it, and tells of that ever after. What the counter stands at
    /// then.
    ///
    /// From then on **no other copy may be written to**, by the device neither, until it has this one and its counter
    /// stands at that number: in stores that are not salted, two that go on from one image seal other bytes under the same
    /// keys.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if nothing says where counters are kept; those of writing.
    pub fn adopt_counter(&self) -> Result<u64> {
        self.adopt().map_err(|error| error.at(&self.options.place))
    }

    fn adopt(&self) -> Result<u64> {
        let file = FileDevice::open(path_of(&self.options)?, GRAIN)?;
        let _lock = WriterLock::acquire(file.handle(), self.options.lock_timeout)?;
        let mut counter = self.file_counter()?.ok_or_else(crate::convert::no_place_for_counter)?;
        counter.hold(self.options.lock_timeout)?;
        let (image, tag) = self.newest(&file)?;
        let is_behind = match counter.record() {
            Err(error @ CounterError::Device { .. }) => return Err(error.into()),
            Ok(record) => record.value > image || (record.value == image && record.tag != tag),
            Err(_) => false,
        };
        if !is_behind {
            counter.adopt(image, &tag)?;
            return Ok(image);
        }
        let mut counter = Remembering::new(counter);
        let gone_on = self.go_on_from_older(&file, image, &mut counter);
        gone_on.map_err(|error| self.explain(error, counter.failure))
    }

    /// Deletes this host's counter of the image.
    ///
    /// # Errors
    /// [`Kind::NotFound`] if there is none.
    pub fn forget_counter(&self) -> Result<()> {
        let forget = || {
            let mut counter = self.file_counter()?.ok_or_else(crate::convert::no_place_for_counter)?;
            counter.hold(Duration::ZERO)?;
            counter.forget().map_err(|error| match error {
                CounterError::Absent => Error::new(Kind::NotFound, absent_here()),
                other => other.into(),
            })
        };
        forget().map_err(|error: Error| error.at(&self.options.place))
    }
}

fn absent_here() -> &'static str {
    "there is no counter for this image here"
}

/// What an image and a counter say that are not of one moment.
fn disagreement(image: u64, record: &CounterRecord) -> Error {
    let (value, when, place) = (record.value, utc(record.time), &record.path);
    if image > value {
        let text = format!(
            "the counter stands at {value} since {when}, when the image was at {place}, and the image is at {image}: \
             it went on elsewhere, or the counter was put back"
        );
        return Error::new(Kind::CounterLost, text)
            .advise("if it comes from the device, accept it with `counterfoil counter adopt`");
    }
    let text = format!(
        "this is not the newest image of the device: it is at {image}, and the counter stands at {value} since {when}, \
         when the image was at {place}"
    );
    Error::new(Kind::RolledBack, text).advise(ADOPT)
}
