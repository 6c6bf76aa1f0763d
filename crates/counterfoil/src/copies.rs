//! Copies of a database: backups beside a writer, databases made of backups, and all of one sealed anew.
//!
//! ```text
//! backup    pin everything -> record store into memory -> recover -> pages as they are -> rename
//! restore   recover the backup, check all of it -> pages to NAME.creating -> new epoch above the counter -> rename
//! rekey     a new volume under a new key, filled from the old one -> new epoch -> rename
//! ```
//! A cut before the rename leaves the old database as it was, except that after the new epoch was counted it is refused:
//! then the restore is repeated.

use std::path::Path;
use std::sync::Arc;

use counterfoil_flash::lock::WriterLock;
use counterfoil_flash::{Device, FileDevice};
use counterfoil_log::{Captured, Recovered, Snapshot};
use counterfoil_relation::Relations;
use counterfoil_vault::{Counter as _, CounterError, CounterKind, FileCounter, HeaderCopy};

use crate::counters::adopt_image;
use crate::create::{self, Temporary, sync_folder};
use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::incidents;
use crate::medium::Medium;
use crate::options::{Options, Place};
use crate::volume::{Volume, geometry_of};

/// Told how far something long has come: done, and in all. Answering false stops it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

fn stopped() -> Error {
    Error::new(Kind::Interrupted, "interrupted").advise("nothing was changed")
}

impl Database {
    /// Writes a consistent copy of the newest commit to a new file, beside a writer if there is one. It opens with the
    /// same keys.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if the file exists; those of reading and writing.
    pub fn backup(&self, path: impl AsRef<Path>, progress: Progress<'_>) -> Result<()> {
        let path = path.as_ref();
        self.require_process()?;
        self.backup_to(path, progress).map_err(|error| error.at(path.display()))
    }

    fn backup_to(&self, path: &Path, progress: Progress<'_>) -> Result<()> {
        create::refuse_existing(path)?;
        let volume = self.volume();
        // Below every commit: nothing that the copy needs is reclaimed while this is held.
        let _pin = self.inner.store.pins().map(|pins| pins.acquire(0)).transpose()?;
        let recovered = recover_captured(volume)?;
        let temporary = Temporary::create(path, geometry_of(&volume.opened().header.layout)?)?;
        let _lock = temporary.lock()?;
        copy(volume, &recovered, &mut temporary.device(), progress)?;
        temporary.publish(path)
    }

    /// Draws a new key for the data and seals everything again. Only `key` opens the database afterwards: the other slots
    /// would need their secrets, and are gone. Copies from before still open with the old ones.
    ///
    /// # Errors
    /// [`Kind::NotSupported`] for anything but a file; those of reading and writing.
    pub fn rekey(options: Options, progress: Progress<'_>) -> Result<()> {
        let place = options.place.clone();
        rekey(options, progress).map_err(|error| error.at(&place))
    }

    /// Makes a database of a backup, or replaces one by it: everything is checked before, and what was replaced is
    /// refused from then on. `options` say where the new database is, and the key of the backup. `as_new` gives it an
    /// identity, a key of its data and a counter of its own.
    ///
    /// # Errors
    /// Those of opening the backup, whatever is wrong with it, and those of writing.
    pub fn restore(backup: impl AsRef<Path>, options: Options, as_new: bool, progress: Progress<'_>) -> Result<()> {
        let backup = backup.as_ref();
        let from = Options { place: Place::File(backup.to_owned()), read_only: true, ..options.clone() };
        let source = Volume::open(from).map_err(|error| error.at(backup.display()))?;
        let checked = check(&source).map_err(|error| error.at(backup.display()))?;
        let place = options.place.clone();
        let restored =
            if as_new { restore_as_new(&checked, options, progress) } else { restore(&source, options, progress) };
        restored.map_err(|error| error.at(&place))
    }
}

/// Recovers from a copy of the record store that nobody writes to.
fn recover_captured(volume: &Volume) -> Result<Recovered> {
    let mut tries = 0;
    loop {
        let layout = volume.opened().layout;
        let captured = Captured::new(volume.medium.reader(), &layout)?;
        let recovered = Recovered::recover(Arc::new(captured), volume.vault.clone(), layout, 1 << 20);
        let settled = recovered.map_err(Error::from).and_then(|recovered| {
            volume.settle(&recovered.snapshot())?;
            Ok(recovered)
        });
        tries += 1;
        match settled {
            // A writer was in the middle of a checkpoint, or has changed the header since.
            Err(error) if tries < 5 && matches!(error.kind(), Kind::Corrupt | Kind::Tampered) => volume.refresh()?,
            other => return other,
        }
    }
}

/// Copies the pages of an image, and the header that goes with it.
fn copy(volume: &Volume, recovered: &Recovered, target: &mut FileDevice, progress: Progress<'_>) -> Result<()> {
    if !recovered.copy_pages(target, progress)? {
        return Err(stopped());
    }
    let settled = volume.settle(&recovered.snapshot())?;
    let opened = volume.opened();
    let pages = settled.header.encode(&opened.unlocked.volume_key);
    for copy in HeaderCopy::BOTH {
        target.program(copy.first_page(&settled.header.layout), &pages)?;
        target.flush()?;
    }
    Ok(())
}

/// Reads and checks everything in an image. No counter is asked: a backup is always older.
fn check(volume: &Volume) -> Result<Snapshot> {
    let recovered = volume.recover()?;
    let snapshot = recovered.snapshot();
    volume.settle(&snapshot)?;
    if let Some((_, error)) = snapshot.verify_pages(&mut |_, _| {}).into_iter().next() {
        return Err(error.into());
    }
    let report = Relations::new().verify(&snapshot, &mut |_| {})?;
    match report.problems.first() {
        Some(problem) => Err(Error::new(Kind::Corrupt, format!("table {}: {}", problem.table, problem.what))
            .advise("use another backup")),
        None => Ok(snapshot),
    }
}

fn target_path(options: &Options) -> Result<&Path> {
    match &options.place {
        Place::File(path) => Ok(path),
        _ => Err(Error::new(Kind::NotSupported, "not supported: anything but a file here")),
    }
}

fn restore(source: &Volume, options: Options, progress: Progress<'_>) -> Result<()> {
    let path = target_path(&options)?.to_owned();
    let replaced = Replaced::look(&path, source, &options)?;
    let temporary = Temporary::create(&path, geometry_of(&source.opened().header.layout)?)?;
    let lock = temporary.lock()?;
    let recovered = source.recover()?;
    copy(source, &recovered, &mut temporary.device(), progress)?;
    let text = format!("made of a backup whose version was {}", recovered.version());
    drop(recovered);
    let volume = Arc::new(Volume::of_device(Medium::File(temporary.device()), options)?);
    begin_epoch(&volume, &text)?;
    drop(lock);
    replaced.publish(temporary, &path)
}

/// Opens an image in an epoch above everything its counter has seen, and leaves an incident.
fn begin_epoch(volume: &Arc<Volume>, text: &str) -> Result<()> {
    let mut writer = match volume.counter_kind() {
        CounterKind::None => adopt_image(volume, None, 0)?,
        _ => {
            let mut counter = volume.file_counter()?.ok_or_else(|| {
                Error::new(Kind::Misuse, "nothing says where the counter is").advise("give Options::counter")
            })?;
            counter.hold(volume.options.lock_timeout)?;
            let value = value_of(&mut counter)?;
            adopt_image(volume, Some(Box::new(counter)), value)?
        }
    };
    incidents::record(&mut writer, incidents::IncidentKind::Restored, text)?;
    Ok(writer.close()?)
}

fn value_of(counter: &mut FileCounter) -> Result<u64> {
    match counter.value() {
        Ok(value) => Ok(value.value),
        Err(error @ CounterError::Device { .. }) => Err(error.into()),
        // Whoever restores says so: what is left of a damaged counter cannot hold them up.
        Err(_) => Ok(0),
    }
}

fn restore_as_new(source: &Snapshot, options: Options, progress: Progress<'_>) -> Result<()> {
    target_path(&options)?;
    let (id, volume_key) = create::fresh_names()?;
    let text = format!("made as a new database of a backup whose commit was {}", commit_of(source));
    create::create_as(options, id, &volume_key, |writer| {
        if !writer.fill_from(source, progress)? {
            return Err(stopped());
        }
        incidents::record(writer, incidents::IncidentKind::Restored, &text)
    })?;
    Ok(())
}

fn commit_of(snapshot: &Snapshot) -> u64 {
    use counterfoil_log::View;
    snapshot.commit_number().0
}

/// What stands where a database is going to be put.
enum Replaced {
    Nothing,
    /// The same database, which nobody may write to meanwhile.
    Older(Option<WriterLock>),
}

impl Replaced {
    fn look(path: &Path, source: &Volume, options: &Options) -> Result<Self> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Replaced::Nothing),
            Err(error) => return Err(Error::host("look at", path.display(), &error)),
            Ok(_) => {}
        }
        let medium = Medium::open(&options.place, false)?;
        let there = counterfoil_vault::read_headers(&medium).ok().and_then(|copies| copies.id_unchecked());
        if there.is_some_and(|id| id != source.vault.id()) {
            return Err(Error::new(Kind::Misuse, "another database is there").advise("choose another name"));
        }
        // A file whose headers are gone may be what a restore is for; but only its owner knows.
        if there.is_none() {
            return Err(Error::new(Kind::Misuse, "something else is there").advise("move it away first"));
        }
        let lock = match medium.handle() {
            Some(handle) => Some(WriterLock::acquire(handle, options.lock_timeout)?),
            None => None,
        };
        Ok(Replaced::Older(lock))
    }

    fn publish(self, temporary: Temporary, path: &Path) -> Result<()> {
        match self {
            Replaced::Nothing => temporary.publish(path),
            Replaced::Older(_lock) => {
                temporary.replace(path)?;
                sync_folder(path).map_err(|error| Error::host("write", path.display(), &error))
            }
        }
    }
}

fn rekey(options: Options, progress: Progress<'_>) -> Result<()> {
    let path = target_path(&options)?.to_owned();
    let volume = Volume::open(options.clone())?;
    let handle = volume.medium.handle();
    let _lock = handle.map(|handle| WriterLock::acquire(handle, volume.options.lock_timeout)).transpose()?;
    let (recovered, _) = volume.recover_and_judge()?;
    let snapshot = recovered.snapshot();
    volume.settle(&snapshot)?;
    let header = volume.opened().header.clone();
    let old_counter = match volume.file_counter()? {
        Some(mut counter) => Some(value_of(&mut counter)?),
        None => None,
    };
    let (_, volume_key) = create::fresh_names()?;
    let geometry = geometry_of(&header.layout)?;
    let temporary = Temporary::create(&path, geometry)?;
    let temporary_lock = temporary.lock()?;
    let made = Options {
        cipher: header.suite,
        page_bytes: header.layout.page_bytes,
        size_limit: (header.layout.size_limit > 0).then_some(header.layout.size_limit),
        recovery: false,
        ..options
    };
    let filled = create::reseal(&temporary, made, &header, &volume_key, |writer| {
        if writer.fill_from(&snapshot, progress)? { Ok(()) } else { Err(stopped()) }
    })?;
    bind_again(&filled, old_counter)?;
    drop(temporary_lock);
    temporary.replace(&path)?;
    sync_folder(&path).map_err(|error| Error::host("write", path.display(), &error))
}

/// The counter under the new key: above what it was, so that the old file is refused.
fn bind_again(volume: &Arc<Volume>, old_value: Option<u64>) -> Result<()> {
    let Some(old_value) = old_value else { return Ok(()) };
    let Some(counter) = volume.file_counter()? else { return Ok(()) };
    Ok(adopt_image(volume, Some(Box::new(counter)), old_value)?.close()?)
}
