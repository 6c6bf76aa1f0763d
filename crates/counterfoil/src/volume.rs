//! A database that a key has opened: its header, its keys, and what its counter says of an image of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use counterfoil_flash::Geometry;
use counterfoil_log::{self as log, HEADER_RECORD, HeaderKeeper, Layout, Recovered, View, Writer, record_space};
use counterfoil_vault::{
    self as vault, ChangeStep, CounterError, CounterKind, Entropy, FileCounter, Header, HeaderChange, HostCounter,
    RootDigests, Settled, SystemEntropy, Unlocked, Vault, VolumeLayout,
};
use parking_lot::RwLock;

use crate::convert::no_place_for_counter;
use crate::error::{Error, Kind, Result};
use crate::medium::Medium;
use crate::options::{Counter, Options, Place};
use crate::rollback::{self, Permitted};

/// An opened header over a medium, and everything that follows from it.
pub(crate) struct Volume {
    pub(crate) medium: Medium,
    pub(crate) vault: Arc<Vault>,
    pub(crate) options: Options,
    opened: RwLock<Arc<OpenedHeader>>,
}

/// The header as it was read last, by us or after a change of ours.
pub(crate) struct OpenedHeader {
    pub(crate) unlocked: Unlocked,
    /// The header that holds, as far as we know.
    pub(crate) header: Header,
    pub(crate) layout: Layout,
}

/// What the counter says of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// It is the newest.
    Compared,
    /// It is not the newest, and is to be gone on from all the same.
    Behind(Permitted),
    /// There is no counter here to compare with.
    Absent,
    /// The database has none.
    NoCounter,
}

impl OpenedHeader {
    fn new(unlocked: Unlocked) -> Result<Self> {
        let layout = layout_of(&unlocked.header.layout)?;
        Ok(Self { header: unlocked.header.clone(), unlocked, layout })
    }
}

impl Volume {
    /// Opens the header of what is there.
    pub(crate) fn open(options: Options) -> Result<Self> {
        let medium = Medium::open(&options.place, options.read_only)?;
        let unlocked = unlock(&medium, &options)?;
        let geometry = geometry_of(&unlocked.header.layout)?;
        let medium = medium.with_geometry(geometry)?;
        Self::new(medium, unlocked, options)
    }

    /// Opens the header of a medium that is open already.
    pub(crate) fn of_device(medium: Medium, options: Options) -> Result<Self> {
        let unlocked = unlock(&medium, &options)?;
        Self::new(medium, unlocked, options)
    }

    /// A volume whose header is in hand.
    pub(crate) fn new(medium: Medium, unlocked: Unlocked, options: Options) -> Result<Self> {
        let header = &unlocked.header;
        let vault = Arc::new(Vault::new(&unlocked.volume_key, header.id, header.suite));
        let opened = RwLock::new(Arc::new(OpenedHeader::new(unlocked)?));
        Ok(Self { medium, vault, options, opened })
    }

    /// The header as it is known here.
    pub(crate) fn opened(&self) -> Arc<OpenedHeader> {
        self.opened.read().clone()
    }

    /// Reads and opens the header again: another process may have changed slots, or moved the record window.
    pub(crate) fn refresh(&self) -> Result<()> {
        let unlocked = unlock(&self.medium, &self.options)?;
        if unlocked.header.id != self.vault.id() {
            return Err(
                Error::new(Kind::Misuse, "another database was put in the place of this one").advise("open it again")
            );
        }
        *self.opened.write() = Arc::new(OpenedHeader::new(unlocked)?);
        Ok(())
    }

    pub(crate) fn counter_kind(&self) -> CounterKind {
        self.opened().header.counter
    }

    /// Brings the image to its last whole commit, in memory.
    pub(crate) fn recover(&self) -> Result<Recovered> {
        let cache = self.options.page_bytes_kept()?;
        let layout = self.opened().layout;
        let recovered = Recovered::recover(self.medium.reader(), self.vault.clone(), layout, cache);
        match recovered {
            Err(error) if self.window_left(&error) => {
                self.refresh()?;
                let layout = self.opened().layout;
                Ok(Recovered::recover(self.medium.reader(), self.vault.clone(), layout, cache)?)
            }
            other => Ok(other?),
        }
    }

    /// Whether an error of following the spine comes of the record window having moved away meanwhile.
    pub(crate) fn window_left(&self, error: &log::Error) -> bool {
        let suspicious = matches!(error.cause(), log::Cause::Corrupt { .. } | log::Cause::Tampered { .. });
        suspicious && self.window_moved(&self.opened().layout)
    }

    /// Whether the header on the medium names another record window than the one we know.
    fn window_moved(&self, known: &Layout) -> bool {
        let there = vault::read_headers(&self.medium).ok().and_then(|copies| copies.layout_unchecked());
        there.and_then(|layout| layout_of(&layout).ok()).is_some_and(|layout| layout != *known)
    }

    /// Puts `new` in the place of the header, step by step, with the roots that name it.
    pub(crate) fn change_header(&self, writer: &mut Writer, new: &Header) -> Result<(), log::Error> {
        let before = self.opened();
        let mut change = before.unlocked.change(&before.header, new);
        self.drive(writer, &mut change)?;
        drop(before);
        if let Some(opened) = Arc::get_mut(&mut self.opened.write()) {
            opened.layout = layout_of(&new.layout).unwrap_or(opened.layout);
            opened.header = new.clone();
            return Ok(());
        }
        // Somebody else looks at the old one right now: what is on the medium is read again when it is needed.
        self.refresh().map_err(|_| log::Error::corrupt("header just written"))
    }

    /// Does what a change of the header asks for, step by step.
    pub(crate) fn drive(&self, writer: &mut Writer, change: &mut HeaderChange) -> Result<(), log::Error> {
        let layout = self.opened().header.layout;
        loop {
            match change.step() {
                ChangeStep::Done => return Ok(()),
                ChangeStep::Commit(digests) => {
                    writer.begin()?;
                    writer.put_record(record_space::SETTING, HEADER_RECORD, &digests.encode())?;
                    writer.commit()?;
                    writer.count()?;
                }
                ChangeStep::Write { copy, bytes } => writer.write_header(copy.first_page(&layout), bytes)?,
            }
            change.done();
        }
    }

    /// Recovers the image and holds it against its counter. A writer may go on meanwhile: the counter is read first,
    /// and a comparison that fails is made again with fresh ones, so that only what stays wrong is called wrong. While the counter
    /// moves, somebody writes, and may have written over what was being read: then it is tried for longer, but not for ever.
    pub(crate) fn recover_and_judge(&self) -> Result<(Recovered, Freshness)> {
        let (begun, mut tries, mut before) = (Instant::now(), 0, None);
        loop {
            let result = self.try_recover_and_judge();
            tries += 1;
            let may_be_a_race = match &result {
                Ok((_, freshness)) => matches!(freshness, Freshness::Behind(_)),
                Err(error) => may_be_a_race(error),
            };
            if !may_be_a_race {
                return result;
            }
            let counter = self.counter_record().ok().flatten();
            let moves = std::mem::replace(&mut before, counter.clone()) != counter;
            if tries >= JUDGE_TRIES_MAX && !(moves && begun.elapsed() < JUDGE_PATIENCE) {
                return result;
            }
            std::thread::sleep(Duration::from_millis(5 * tries.min(JUDGE_TRIES_MAX)));
        }
    }

    /// An image that has lost none of its commits, as far as it can say so itself: a backup knows its last one.
    pub(crate) fn whole(&self, recovered: Recovered) -> Result<Recovered> {
        let recovered = readable(recovered)?;
        let (least, found) = (self.opened().header.least_commit, recovered.commit().0);
        if found < least {
            let text = format!("commits {} to {least} are not there: a page that held them is damaged", found + 1);
            return Err(Error::new(Kind::Tampered, text)
                .advise("use another copy, or save what authenticates with `counterfoil salvage`"));
        }
        Ok(recovered)
    }

    fn try_recover_and_judge(&self) -> Result<(Recovered, Freshness)> {
        let record = self.counter_record()?;
        let recovered = self.whole(self.recover()?)?;
        if self.counter_kind() == CounterKind::None {
            return Ok((recovered, Freshness::NoCounter));
        }
        let Some(record) = record else { return Ok((recovered, Freshness::Absent)) };
        let freshness = judge(&recovered, &record)?;
        Ok((recovered, freshness))
    }

    /// What the counter holds; none where there is none, unless one is required.
    pub(crate) fn counter_record(&self) -> Result<Option<vault::CounterRecord>> {
        if self.options.is_copy {
            return Ok(None);
        }
        let mut counter = self.counter()?;
        match counter.as_mut().map(|counter| counter.record()) {
            Some(Ok(record)) => Ok(Some(record)),
            Some(Err(error)) if error != CounterError::Absent => Err(error.into()),
            // What is in memory alone nobody puts back.
            _ if self.options.require_counter && self.options.place != Place::Memory => Err(self.lacks_counter()),
            _ => Ok(None),
        }
    }

    fn lacks_counter(&self) -> Error {
        match self.counter_kind() {
            CounterKind::None => {
                let text = "this database was made without a counter: nothing tells an older copy of it from this one";
                Error::new(Kind::CounterLost, text)
                    .advise("do without --require-counter, or export it into one that has a counter")
            }
            _ => Error::new(Kind::CounterLost, "there is no counter for this database here")
                .advise("bring it from where the database was used, or bind it anew with `counterfoil counter adopt`"),
        }
    }

    /// The header that the newest root names, what is wrong with its copies, and a change that was cut short.
    pub(crate) fn settle(&self, view: &dyn View) -> Result<Settled> {
        let record = view.record(record_space::SETTING, HEADER_RECORD);
        let digests: [u8; 64] = record
            .as_deref()
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or_else(|| Error::new(Kind::Corrupt, "the newest commit names no header").advise("restore a backup"))?;
        Ok(self.opened().unlocked.settle(&RootDigests::decode(&digests))?)
    }

    /// As [`Volume::settle`], for whoever begins with a key: one that a change which was cut short has replaced opens nothing any more.
    pub(crate) fn settle_begun(&self, view: &dyn View) -> Result<Settled> {
        let settled = self.settle(view)?;
        match self.opened().unlocked.is_opened_by_a_replaced_slot(&settled) {
            true => Err(Error::new(Kind::WrongKey, "this key was replaced, by a change that was cut short")
                .advise("open it with the new key, which finishes the change")),
            false => Ok(settled),
        }
    }

    /// The counter of this database, where it has one and somebody said where it is kept.
    pub(crate) fn counter(&self) -> Result<Option<Box<dyn HostCounter>>> {
        match (self.counter_kind(), &self.options.counter) {
            (CounterKind::None, _) => Ok(None),
            (CounterKind::Tpm, counter) => {
                let locks = counter.as_ref().and_then(Counter::directory);
                self.options.tpm.counter(locks, &self.vault).map(Some)
            }
            (CounterKind::File, Some(Counter::File(directory) | Counter::Tpm(directory))) => {
                let place = self.options.place.path().map(|path| std::path::absolute(path).unwrap_or(path.into()));
                Ok(Some(Box::new(FileCounter::new(directory, &place.unwrap_or_default(), &self.vault))))
            }
            (CounterKind::File, _) => Ok(None),
            (kind, _) => Err(Error::new(Kind::NotSupported, format!("not supported: a {kind} counter"))
                .advise("open the database where it was made")),
        }
    }

    /// The counter, for whoever is going to step it; none where the database has none.
    pub(crate) fn counter_to_step(&self) -> Result<Option<Box<dyn HostCounter>>> {
        match self.counter()? {
            None if self.counter_kind() != CounterKind::None => Err(no_place_for_counter()),
            counter => Ok(counter),
        }
    }
}

pub(crate) fn unlock(medium: &Medium, options: &Options) -> Result<Unlocked> {
    let Some(key) = &options.key else {
        return Err(Error::new(Kind::Misuse, "no key was given"));
    };
    key.unlock(&vault::read_headers(medium)?)
}

/// Writes the header anew when the log moves the record store to a larger window.
pub(crate) struct Keeper(pub(crate) Arc<Volume>);

impl HeaderKeeper for Keeper {
    fn salt(&mut self) -> Result<[u8; 16], log::Error> {
        let mut salt = [0; 16];
        SystemEntropy.fill(&mut salt).map_err(|_| log::Error::from(log::Cause::NoEntropy))?;
        Ok(salt)
    }

    fn move_window(&mut self, writer: &mut Writer, first_extent: u32, extents: u32) -> Result<(), log::Error> {
        let mut header = self.0.opened().header.clone();
        header.layout.record_first_extent = u64::from(first_extent);
        header.layout.record_extents = u64::from(extents);
        header.generation += 1;
        self.0.change_header(writer, &header)
    }
}

/// An image behind whose newest commit nothing stands that cannot be read. Where something does, acknowledged commits may
/// stand there: commits are counted in groups, so a counter that fits cannot deny it. Whoever takes what there is all the
/// same says so, by `salvage` or `counter adopt`.
fn readable(recovered: Recovered) -> Result<Recovered> {
    match recovered.unreadable() {
        None => Ok(recovered),
        Some(error) => {
            Err(Error::new(Kind::Device, format!("{error}: newer commits may stand there, so none are shown"))
                .advise("try again, restore a backup, or save what authenticates with `counterfoil salvage`"))
        }
    }
}

/// How often an image and its counter are compared before a mismatch is believed: a writer beside us moves both.
const JUDGE_TRIES_MAX: u64 = 4;
/// For how long beside a writer that goes on.
const JUDGE_PATIENCE: Duration = Duration::from_secs(10);

fn may_be_a_race(error: &Error) -> bool {
    matches!(error.kind(), Kind::RolledBack | Kind::CounterLost | Kind::Tampered | Kind::Corrupt)
}

/// Holds an image against its counter, by the database's own rule for images that are behind.
pub(crate) fn judge(recovered: &Recovered, record: &vault::CounterRecord) -> Result<Freshness> {
    let value = vault::CounterValue { value: record.value, tag: Some(record.tag) };
    match recovered.judge(&value) {
        Ok(()) => Ok(Freshness::Compared),
        Err(error) => rollback::permit(&recovered.snapshot(), record, dated(error, record)).map(Freshness::Behind),
    }
}

/// Says when the counter took its last step, and for a database where.
fn dated(error: log::Error, record: &vault::CounterRecord) -> Error {
    let when = crate::time::utc(record.time);
    let text = match error.cause() {
        log::Cause::RolledBack { image, counter } => format!(
            "this is not the newest image of the database: its version is {image}, the counter stands at {counter} \
             since {when}{}",
            if record.path.is_empty() { String::new() } else { format!(", when it was at {}", record.path) }
        ),
        _ if record.path.is_empty() => format!("{error}; the counter last moved {when}"),
        _ => format!("{error}; the counter last moved {when}, when the database was at {}", record.path),
    };
    let full = Error::from(error);
    Error::new(full.kind(), text)
        .advise("put the newest image back, or accept this one with `counterfoil counter adopt`")
}

/// The shape of the medium below a volume.
pub(crate) fn geometry_of(layout: &VolumeLayout) -> Result<Geometry> {
    let extents = extents_of(layout);
    Ok(Geometry {
        page_bytes: layout.page_bytes,
        block_pages: layout.extent_pages,
        block_count: extents,
        erase_before_program: false,
        grows: true,
    })
}

fn extents_of(layout: &VolumeLayout) -> u64 {
    let most = counterfoil_flash::MEDIUM_BYTES_MAX / layout.extent_bytes().max(1);
    let most = most.min(u64::from(u32::MAX) - 1);
    if layout.size_limit == 0 { most } else { (layout.size_limit / layout.extent_bytes().max(1)).min(most) }
}

/// The layout for the log, from that of the header.
pub(crate) fn layout_of(layout: &VolumeLayout) -> Result<Layout> {
    let small = |number: u64| {
        u32::try_from(number)
            .map_err(|_| Error::new(Kind::Corrupt, "the header gives an impossible layout").advise("restore a backup"))
    };
    Ok(Layout {
        page_bytes: layout.page_bytes,
        extent_pages: layout.extent_pages,
        window_first: small(layout.record_first_extent)?,
        window_extents: small(layout.record_extents)?,
        extents_max: small(extents_of(layout))?,
    })
}

#[cfg(test)]
mod tests {
    use counterfoil_flash::{self as flash, MemoryDevice, PageNumber, Read};
    use counterfoil_log::{Counting, Media, NoPins, Settings};
    use counterfoil_vault::{DatabaseId, Suite, VolumeKey};

    use super::*;

    const SHAPE: Geometry =
        Geometry { page_bytes: 512, block_pages: 8, block_count: 256, erase_before_program: false, grows: true };

    /// A medium on which one page is an error.
    struct Unreadable {
        device: MemoryDevice,
        page: u64,
    }

    impl Read for Unreadable {
        fn geometry(&self) -> Geometry {
            self.device.geometry()
        }

        fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
            let pages = (u64::from(offset) + buffer.len() as u64).div_ceil(512);
            if (page.0..page.0 + pages).contains(&self.page) {
                let operation = flash::Operation::Read;
                return Err(flash::Error::Device { operation, page: PageNumber(self.page), code: nix::libc::EIO });
            }
            self.device.read(page, offset, buffer)
        }
    }

    #[test]
    fn a_page_that_cannot_be_read_hides_no_commit() -> Result<()> {
        let device = MemoryDevice::new(SHAPE)?;
        let vault = Arc::new(Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), Suite::Aes256GcmSiv));
        let layout = Layout::new(&SHAPE, 8, 16)?;
        let media = Media { reader: Arc::new(device.clone()), writer: Box::new(device.clone()) };
        let settings =
            Settings { counter: None, counting: Counting::EveryCommit, pins: Box::new(NoPins), headers: None };
        let mut writer = log::create(media, vault.clone(), layout, settings, &mut SystemEntropy, 0, 1 << 16)?;
        for value in 0..3_u8 {
            writer.begin()?;
            writer.put_record(record_space::USER, b"name", &[value])?;
            writer.commit()?;
        }
        let recovered = |page| {
            let media = Unreadable { device: device.clone(), page };
            Recovered::recover(Arc::new(media), vault.clone(), layout, 1 << 16)
        };
        let newest = |recovered: &Recovered| recovered.snapshot().record(record_space::USER, b"name");
        let mut refused = 0;
        for page in 0..1024 {
            let Ok(recovered) = recovered(page) else { continue };
            let is_older = newest(&recovered).as_deref() != Some(&[2]);
            match readable(recovered) {
                Ok(_) => assert!(!is_older, "page {page} hides a commit"),
                Err(error) => {
                    assert_eq!((error.kind(), error.exit_code()), (Kind::Device, 2));
                    refused += 1;
                }
            }
        }
        // The pages of the three commits, and where the next one, or the next opening, would stand.
        assert!(refused >= 4, "{refused}");
        Ok(())
    }
}
