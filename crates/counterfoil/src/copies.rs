//! Copies of a database: backups beside a writer, databases made of backups, and all of one sealed anew.
//!
//! ```text
//! backup    pin everything -> record store into memory -> recover -> pages as they are -> rename
//! restore   recover the backup, check all of it -> pages to NAME.creating -> new epoch above the counter -> rename
//!           (onto a block device: see `restore_device`)
//! rekey     a new volume under a new key, filled from the old one -> counter good for both -> rename -> for the new one
//! ```
//! A cut before the rename leaves the old database as it was, except that a restore's old database is refused once the
//! new epoch was counted: then the restore is repeated.

use std::path::Path;
use std::sync::Arc;

use counterfoil_flash::lock::WriterLock;
use counterfoil_flash::{Device, FileDevice};
use counterfoil_log::{Captured, Recovered, Snapshot, Writer, record_space};
use counterfoil_relation::Relations;
use counterfoil_sql::series_engine::SeriesTables;
use counterfoil_sql::{leave_tables_to_the_other, secrets_of_before};
use counterfoil_vault::{
    Counter as _, CounterError, CounterKind, DatabaseId, FileCounter, HeaderCopy, HostCounter, Succession,
};

use crate::convert::no_place_for_counter;
use crate::counters::adopt_image;
use crate::create::{self, Temporary, sync_folder};
use crate::database::Database;
use crate::error::{Error, Kind, Result};
use crate::incidents;
use crate::medium::Medium;
use crate::options::{Options, Place};
use crate::restore_device;
use crate::rollback;
use crate::verify::Verification;
use crate::volume::{Freshness, Volume, geometry_of};

/// Told how far something long has come: done, and in all. Answering false stops it.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64) -> bool;

pub(crate) fn stopped() -> Error {
    Error::new(Kind::Interrupted, "interrupted").advise("nothing was changed")
}

impl Database {
    /// Writes a consistent copy of the newest commit, or of one that was made meanwhile, to a new file, beside a writer if
    /// there is one. It opens with the same keys.
    ///
    /// # Errors
    /// [`Kind::Misuse`] if the file exists; those of reading and writing.
    pub fn backup(&self, path: impl AsRef<Path>, progress: Progress<'_>) -> Result<()> {
        let path = path.as_ref();
        self.require_process()?;
        self.backup_to(path, progress).map_err(|error| error.at(path.display()))
    }

    /// Checks a backup of this database as [`Database::verify`] checks a database: what was damaged here is damaged there, and
    /// [`Database::restore`] refuses it.
    ///
    /// # Errors
    /// What kept the check from being made.
    pub fn verify_backup(
        &self,
        path: impl AsRef<Path>,
        progress: &mut dyn FnMut(&str, u64, u64),
    ) -> Result<Verification> {
        let place = Place::File(path.as_ref().to_owned());
        let asked = self.volume().options.clone();
        // A copy is behind the counter with the next commit, which is no fault of it.
        let options = Options { place, is_copy: true, require_counter: false, read_only: true, on_note: None, ..asked };
        Database::open(options)?.verify(progress)
    }

    fn backup_to(&self, path: &Path, progress: Progress<'_>) -> Result<()> {
        create::refuse_existing(path)?;
        let volume = self.volume();
        // Below every commit: nothing that the copy needs is reclaimed while this is held.
        let _pin = self.inner.store.pins().map(|pins| pins.acquire(0)).transpose()?;
        // What is there when we begin must be in the copy: a damaged page must not make it an older one.
        let recovered = recover_captured(volume, commit_of(&self.snapshot()?))?;
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
    /// identity, a key of its data and a counter of its own. A block device is taken as by [`Database::create`]; a cut
    /// leaves it without a database, and then the restore is repeated.
    ///
    /// # Errors
    /// Those of opening the backup, whatever is wrong with it, and those of writing.
    pub fn restore(backup: impl AsRef<Path>, options: Options, as_new: bool, progress: Progress<'_>) -> Result<()> {
        let backup = backup.as_ref();
        let from = Options { place: Place::File(backup.to_owned()), read_only: true, ..options.clone() };
        let source = Volume::open(from).map_err(|error| error.at(backup.display()))?;
        let checked = check(&source).map_err(|error| error.at(backup.display()))?;
        if source.opened().header.least_commit == 0 {
            note_plain_copy(&source, checked.commit().0, checked.version());
        }
        let place = options.place.clone();
        let restored = match &place {
            Place::Memory => Err(Error::new(Kind::NotSupported, "not supported: restoring into memory")),
            _ if as_new => restore_as_new(&checked.snapshot(), options, progress),
            Place::File(path) => restore(&source, checked, path, options, progress),
            Place::Block(path) => restore_device::restore(&source, checked, path, options, progress),
        };
        restored.map_err(|error| error.at(&place))
    }
}

/// Recovers from a copy of the record store that nobody writes to, up to commit `least` at least.
fn recover_captured(volume: &Volume, least: u64) -> Result<Recovered> {
    let mut tries = 0;
    loop {
        let layout = volume.opened().layout;
        let captured = Captured::new(volume.medium.reader(), &layout)?;
        let recovered = Recovered::recover_captured(captured, volume.vault.clone(), layout, 1 << 20);
        let settled =
            recovered.map_err(Error::from).and_then(|recovered| volume.whole(recovered)).and_then(|recovered| {
                volume.settle(&recovered.snapshot())?;
                not_before(recovered, least)
            });
        tries += 1;
        match settled {
            // A writer was in the middle of a checkpoint, or has changed the header since.
            Err(error) if tries < 5 && matches!(error.kind(), Kind::Corrupt | Kind::Tampered) => volume.refresh()?,
            other => return other,
        }
    }
}

fn not_before(recovered: Recovered, least: u64) -> Result<Recovered> {
    let found = recovered.commit().0;
    if found < least {
        let text = format!("commits {} to {least} cannot be read: a page that holds them is damaged", found + 1);
        return Err(Error::new(Kind::Tampered, text).advise("run `counterfoil verify`"));
    }
    Ok(recovered)
}

/// Copies the pages of an image, and the header that goes with it.
fn copy(volume: &Volume, recovered: &Recovered, target: &mut FileDevice, progress: Progress<'_>) -> Result<()> {
    if !recovered.copy_pages(target, progress)? {
        return Err(stopped());
    }
    let settled = volume.settle(&recovered.snapshot())?;
    let opened = volume.opened();
    // No counter knows a backup: it says itself where it ends.
    let mut header = settled.header.clone();
    header.least_commit = recovered.commit().0;
    let pages = header.encode(&opened.unlocked.volume_key);
    for copy in HeaderCopy::BOTH {
        target.program(copy.first_page(&header.layout), &pages)?;
        target.flush()?;
    }
    Ok(())
}

/// Reads and checks everything in an image. No counter is asked: a backup is always older.
fn check(volume: &Volume) -> Result<Recovered> {
    let recovered = volume.whole(volume.recover()?)?;
    let snapshot = recovered.snapshot();
    volume.settle(&snapshot)?;
    if let Some((_, error)) = snapshot.verify_pages(&mut |_, _| {}).into_iter().next() {
        return Err(error.into());
    }
    let report = Relations::new().verify(&snapshot, &mut |_| {})?;
    match report.problems.first() {
        Some(problem) => {
            Err(Error::new(Kind::Corrupt, format!("table {}: {problem}", problem.table)).advise("use another backup"))
        }
        None => Ok(recovered),
    }
}

/// A backup says itself which commit is its last. Of a copy of a database file only the counter could say so, and it has
/// seen whatever came after.
fn note_plain_copy(source: &Volume, commit: u64, version: u64) {
    let counter = source.counter().ok().flatten().and_then(|mut counter| counter.value().ok());
    let counted = match counter.map(|counter| counter.value) {
        None => "no counter here says whether it had later ones".to_owned(),
        Some(value) if value <= version => "the counter here knows of no later one".to_owned(),
        Some(value) => format!("the counter here has seen later ones, up to version {value}"),
    };
    source.options.note(&format!("a copy of a database file, and no backup: its last commit is {commit}; {counted}"));
}

fn restore(source: &Volume, recovered: Recovered, path: &Path, options: Options, progress: Progress<'_>) -> Result<()> {
    let replaced = Replaced::look(path, source.vault.id(), &options)?;
    let temporary = Temporary::create(path, geometry_of(&source.opened().header.layout)?)?;
    let lock = temporary.lock()?;
    copy(source, &recovered, &mut temporary.device(), progress)?;
    let text = format!("made of a backup whose version was {}", recovered.version());
    drop(recovered);
    let volume = Arc::new(Volume::of_device(Medium::File(temporary.device()), options)?);
    begin_epoch(&volume, |writer| tell_of_restoring(writer, &text))?;
    drop(lock);
    replaced.publish(temporary, path)
}

/// Leaves the incident of a restored database. Whoever restores has looked: what went before is accepted with it.
pub(crate) fn tell_of_restoring(writer: &mut Writer, text: &str) -> Result<()> {
    writer.begin()?;
    incidents::put(writer, incidents::IncidentKind::Restored, text)?;
    rollback::accept(writer)?;
    writer.commit()?;
    Ok(())
}

/// Opens an image in an epoch above everything its counter has seen; `told` leaves the incident.
pub(crate) fn begin_epoch(volume: &Arc<Volume>, told: impl FnOnce(&mut Writer) -> Result<()>) -> Result<()> {
    let mut writer = match volume.counter_kind() {
        CounterKind::None => adopt_image(volume, None, 0, told)?,
        _ => {
            let mut counter = volume.counter()?.ok_or_else(no_place_for_counter)?;
            counter.hold(volume.options.lock_timeout)?;
            counter.set_rollbacks(0);
            let value = value_of(&mut *counter, volume.options.require_counter)?;
            adopt_image(volume, Some(counter), value, told)?
        }
    };
    Ok(writer.close()?)
}

fn value_of(counter: &mut dyn HostCounter, required: bool) -> Result<u64> {
    match counter.value() {
        Ok(value) => Ok(value.value),
        Err(error @ CounterError::Absent) if required => Err(error.into()),
        Err(error @ CounterError::Device { .. }) => Err(error.into()),
        // Whoever restores says so: what is left of a damaged counter cannot hold them up.
        Err(_) => Ok(0),
    }
}

fn restore_as_new(source: &Snapshot, options: Options, progress: Progress<'_>) -> Result<()> {
    let (id, volume_key) = create::fresh_names()?;
    let text = format!("made as a new database of a backup whose commit was {}", commit_of(source));
    create::create_as(options, id, &volume_key, Some(source), |writer| {
        if !writer.fill_from_with(source, &SeriesTables::new(), progress)? {
            return Err(stopped());
        }
        writer.begin()?;
        incidents::put(writer, incidents::IncidentKind::Restored, &text)?;
        leave_tables_to_the_other(writer)?;
        Ok(writer.commit().map(drop)?)
    })?;
    Ok(())
}

fn commit_of(snapshot: &Snapshot) -> u64 {
    use counterfoil_log::View;
    snapshot.commit_number().0
}

/// What stands where a database is going to be put.
pub(crate) enum Replaced {
    Nothing,
    /// The same database, which nobody may write to meanwhile.
    Older(Option<WriterLock>),
}

impl Replaced {
    pub(crate) fn look(path: &Path, own: DatabaseId, options: &Options) -> Result<Self> {
        match path.symlink_metadata() {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Replaced::Nothing),
            Err(error) => return Err(Error::host("look at", path.display(), &error)),
            Ok(_) => {}
        }
        let medium = Medium::open(&options.place, false)?;
        let there = counterfoil_vault::read_headers(&medium).ok().and_then(|copies| copies.id_unchecked());
        if there.is_some_and(|id| id != own) {
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

    pub(crate) fn publish(self, temporary: Temporary, path: &Path) -> Result<()> {
        match self {
            Replaced::Nothing => temporary.publish(path),
            Replaced::Older(_lock) => {
                temporary.replace(path)?;
                sync_folder(path).map_err(|error| Error::host("write", path.display(), &error))
            }
        }
    }
}

/// How far sealing anew has come: at each of these a cut leaves a database that opens with the counter there is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Resealing {
    /// The new file is whole and nobody's yet.
    Filled,
    /// The counter is good for both files.
    Counted,
    /// The new file has the name of the old one.
    Renamed,
    /// The old file is refused.
    Settled,
}

fn rekey(options: Options, progress: Progress<'_>) -> Result<()> {
    rekey_watched(options, progress, &mut |_| {})
}

fn rekey_watched(options: Options, progress: Progress<'_>, reached: &mut dyn FnMut(Resealing)) -> Result<()> {
    let Place::File(path) = options.place.clone() else {
        // A device has no room for a second database beside the first, and its header no room for a second key.
        let text = "not supported: a new key for the data of what is not a file";
        let advice = "`backup` it to a file, `rekey --data` that file, and `restore` it with --erase";
        return Err(Error::new(Kind::NotSupported, text).advise(advice));
    };
    let volume = Volume::open(options)?;
    let handle = volume.medium.handle();
    let _lock = handle.map(|handle| WriterLock::acquire(handle, volume.options.lock_timeout)).transpose()?;
    if volume.counter_kind() == CounterKind::Tpm {
        let text = "not supported: a new key for the data of a database whose counter is in a TPM";
        return Err(Error::new(Kind::NotSupported, text).advise("`backup` it, and `restore --as-new` the backup"));
    }
    let mut counter = volume.counter_to_step()?;
    if let Some(counter) = &mut counter {
        counter.hold(volume.options.lock_timeout)?;
    }
    let (recovered, freshness) = volume.recover_and_judge()?;
    if let Freshness::Behind(permitted) = freshness {
        return Err(permitted.refusal);
    }
    volume.settle_begun(&recovered.snapshot())?;
    let temporary = Temporary::create(&path, geometry_of(&volume.opened().header.layout)?)?;
    let _temporary_lock = temporary.lock()?;
    let filled = reseal(&volume, &recovered.snapshot(), &temporary, progress)?;
    reached(Resealing::Filled);
    // Where no counter is here the new database is opened as the old one would have been: its writer adopts.
    let counter = counter.filter(|_| freshness == Freshness::Compared).and_then(HostCounter::into_file);
    let succession = counter.map(|counter| hand_on(&filled, counter)).transpose()?;
    reached(Resealing::Counted);
    temporary.replace(&path)?;
    reached(Resealing::Renamed);
    // The old file must not come back by a power cut once the counter has left it.
    sync_folder(&path).map_err(|error| Error::host("write", path.display(), &error))?;
    if let Some(succession) = succession {
        succession.complete()?;
    }
    reached(Resealing::Settled);
    Ok(())
}

/// Everything that the snapshot holds, in a new file under a new key.
fn reseal(volume: &Volume, snapshot: &Snapshot, temporary: &Temporary, progress: Progress<'_>) -> Result<Arc<Volume>> {
    let header = volume.opened().header.clone();
    let (_, volume_key) = create::fresh_names()?;
    let options = Options {
        cipher: header.suite,
        page_bytes: header.layout.page_bytes,
        size_limit: (header.layout.size_limit > 0).then_some(header.layout.size_limit),
        recovery: false,
        ..volume.options.clone()
    };
    create::reseal(temporary, options, &header, &volume_key, snapshot, |writer| {
        if !writer.fill_from_with(snapshot, &SeriesTables::new(), progress)? {
            return Err(stopped());
        }
        keep_catalogue_secret(volume, snapshot, writer)
    })
}

/// What clouds show under the old key is looked at before it goes: other clients know no other.
fn keep_catalogue_secret(volume: &Volume, snapshot: &Snapshot, writer: &mut Writer) -> Result<()> {
    let own = volume.opened().unlocked.volume_key.catalogue_secret(volume.vault.id());
    let Some((name, secrets)) = secrets_of_before(snapshot, &own) else { return Ok(()) };
    writer.begin()?;
    writer.put_record(record_space::SETTING, name, &secrets)?;
    Ok(writer.commit().map(drop)?)
}

/// Binds the new file to the counter, above what it holds for the old one and without taking it from that yet.
fn hand_on(filled: &Arc<Volume>, mut counter: FileCounter) -> Result<Succession> {
    let old_value = counter.value()?.value;
    let succession = counter.hand_on(&filled.vault)?;
    adopt_image(filled, Some(Box::new(succession.clone())), old_value, |_| Ok(()))?.close()?;
    Ok(succession)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tempfile::TempDir;

    use super::*;
    use crate::key::Key;
    use crate::options::Counter;

    /// The database of a folder, and what it has to say when it is used.
    fn options(folder: &Path) -> (Options, Arc<Mutex<Vec<String>>>) {
        let notes = Arc::new(Mutex::new(Vec::new()));
        let kept = notes.clone();
        let options = Options::path(folder.join("db")).key(Key::bytes(&[7; 32]));
        let options = options.counter(Counter::File(folder.join("state")));
        (options.on_note(move |note| kept.lock().expect("sound").push(note.to_owned())), notes)
    }

    fn change(options: Options, sql: &str) -> Result<()> {
        let database = Database::open(options)?;
        database.connect()?.execute(sql, &[])?;
        database.close()
    }

    /// The rows there are, by way of everything that looks at freshness; and no word about anything being wrong.
    fn rows(folder: &Path) -> Result<u64> {
        let (options, notes) = options(folder);
        let database = Database::open(options)?;
        assert!(database.verify(&mut |_, _, _| {})?.problems.is_empty());
        let count = database.relation("t")?.count()?;
        assert!(database.incidents()?.is_empty());
        assert!(notes.lock().expect("sound").is_empty());
        Ok(count)
    }

    /// A folder as a process that is killed now would leave it.
    fn keep(from: &Path, to: &Path) {
        for entry in std::fs::read_dir(from).expect("a folder") {
            let entry = entry.expect("an entry");
            let target = to.join(entry.file_name());
            if entry.path().is_dir() {
                std::fs::create_dir_all(&target).expect("made");
                keep(&entry.path(), &target);
            } else {
                std::fs::copy(entry.path(), target).expect("copied");
            }
        }
    }

    fn made() -> TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        Database::create(options(folder.path()).0).expect("made").close().expect("closes");
        change(options(folder.path()).0, "CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
            .expect("filled");
        folder
    }

    /// A writer goes on while a backup is checked, and the counter with him: the copy is behind it, and not at fault.
    #[test]
    fn a_backup_that_a_writer_has_left_behind_is_good() -> Result<()> {
        let folder = made();
        let backup = folder.path().join("backup");
        let database = Database::open(options(folder.path()).0)?;
        database.backup(&backup, &mut |_, _| true)?;
        database.connect()?.execute("INSERT INTO t VALUES (3)", &[])?;
        let checked = database.verify_backup(&backup, &mut |_, _, _| {})?;
        assert!(checked.problems.is_empty(), "{:?}", checked.problems);
        assert_eq!((checked.freshness, checked.tables[0].rows), ("not checked", 2));
        let mut bytes = std::fs::read(&backup).expect("read");
        let end = bytes.len();
        // Most pages are needed: somewhere in the last half one is.
        bytes[end / 2..].iter_mut().for_each(|byte| *byte ^= 1);
        std::fs::write(&backup, bytes).expect("written");
        let checked = database.verify_backup(&backup, &mut |_, _, _| {});
        assert!(checked.is_err() || checked.is_ok_and(|checked| !checked.problems.is_empty()));
        Ok(())
    }

    /// The folder after each step of sealing anew, and the last one.
    fn cuts(folder: &Path) -> Vec<(Resealing, TempDir)> {
        let mut cuts = Vec::new();
        rekey_watched(options(folder).0, &mut |_, _| true, &mut |step| {
            let cut = tempfile::tempdir().expect("a folder");
            keep(folder, cut.path());
            cuts.push((step, cut));
        })
        .expect("sealed anew");
        cuts
    }

    #[test]
    fn a_cut_at_any_step_of_sealing_anew_leaves_a_database_that_opens() -> Result<()> {
        let folder = made();
        let old = std::fs::read(folder.path().join("db")).expect("read");
        let cuts = cuts(folder.path());
        let steps: Vec<Resealing> = cuts.iter().map(|(step, _)| *step).collect();
        assert_eq!(steps, [Resealing::Filled, Resealing::Counted, Resealing::Renamed, Resealing::Settled]);
        for (step, cut) in cuts {
            let path = cut.path().join("db");
            let is_old = std::fs::read(&path).expect("read") == old;
            assert_eq!(is_old, matches!(step, Resealing::Filled | Resealing::Counted));
            assert_eq!(rows(cut.path())?, 2, "{step:?}");
            change(options(cut.path()).0, "INSERT INTO t VALUES (3)")?;
            assert_eq!(rows(cut.path())?, 3, "{step:?}");
            // Whichever of the two went on, the other one's counter is gone; and what was cut can be done again.
            let gone_on = std::fs::read(&path).expect("read");
            if !is_old {
                std::fs::write(&path, &old).expect("written");
                assert_eq!(rows(cut.path()).err().map(|error| error.kind()), Some(Kind::CounterLost), "{step:?}");
                std::fs::write(&path, &gone_on).expect("written");
            }
            Database::rekey(options(cut.path()).0, &mut |_, _| true)?;
            assert_eq!(rows(cut.path())?, 3, "{step:?}");
            assert!(!path.with_file_name("db.creating").exists());
        }
        Ok(())
    }

    /// A damaged page at the end of the spine looks like the end of an older image: no counter knows better.
    #[test]
    fn no_damaged_page_makes_a_backup_an_older_one() -> Result<()> {
        let folder = made();
        for row in 3..9 {
            change(options(folder.path()).0, &format!("INSERT INTO t VALUES ({row})"))?;
        }
        let database = Database::open(options(folder.path()).0)?;
        let connection = database.connect()?;
        database.relation("t")?.insert(&[9.into()])?;
        database.relation("t")?.insert(&[10.into()])?;
        let (backup, to) = (folder.path().join("backup"), folder.path().join("restored"));
        database.backup(&backup, &mut |_, _| true)?;
        drop(connection);
        let sound = std::fs::read(&backup).expect("read");
        let restore = || -> Result<u64> {
            let options = Options::path(&to).key(Key::bytes(&[7; 32])).counter(Counter::File(folder.path().join("s")));
            Database::restore(&backup, options.clone(), true, &mut |_, _| true)?;
            let rows = Database::open(options)?.relation("t")?.count();
            std::fs::remove_file(&to).expect("removed");
            rows
        };
        assert_eq!(restore()?, 10);
        let mut refused = 0;
        for page in (0..sound.len()).step_by(4096).filter(|at| sound[*at..at + 4096].iter().any(|byte| *byte != 0)) {
            let mut damaged = sound.clone();
            damaged[page + 100] ^= 1;
            std::fs::write(&backup, damaged).expect("written");
            match restore() {
                Ok(rows) => assert_eq!(rows, 10, "page {}", page / 4096),
                Err(error) => {
                    assert_eq!(error.exit_code(), 3, "page {}: {error}", page / 4096);
                    refused += 1;
                }
            }
        }
        // The spine and the table; the header and the checkpoint stand twice.
        assert!(refused > 2, "{refused} refused");
        Ok(())
    }

    /// What is damaged behind an open database's back must not be missing from its backups unnoticed.
    #[test]
    fn a_backup_is_not_older_than_what_was_committed_before_it() -> Result<()> {
        let folder = made();
        let database = Database::open(options(folder.path()).0)?;
        let mut connection = database.connect()?;
        connection.execute("INSERT INTO t VALUES (3)", &[])?;
        let (path, backup) = (folder.path().join("db"), folder.path().join("backup"));
        let before = std::fs::read(&path).expect("read");
        connection.execute("INSERT INTO t VALUES (4)", &[])?;
        let after = std::fs::read(&path).expect("read");
        let mut damaged = after.clone();
        let changed =
            (0..after.len()).step_by(4096).filter(|at| before.get(*at..*at + 4096) != after.get(*at..*at + 4096));
        changed.for_each(|at| damaged[at + 100] ^= 1);
        assert_ne!(damaged, after);
        std::fs::write(&path, damaged).expect("written");
        let refused = database.backup(&backup, &mut |_, _| true).expect_err("is older");
        assert_eq!((refused.exit_code(), backup.exists()), (3, false), "{refused}");
        std::fs::write(&path, after).expect("written");
        database.backup(&backup, &mut |_, _| true)
    }

    #[test]
    fn what_is_sealed_anew_has_room_for_the_largest_records() -> Result<()> {
        let folder = made();
        let database = Database::open(options(folder.path()).0)?;
        for name in ["a", "b", "c"] {
            database.records().put(name, &[7; 1 << 20])?;
        }
        let backup = folder.path().join("backup");
        database.backup(&backup, &mut |_, _| true)?;
        database.close()?;
        Database::rekey(options(folder.path()).0, &mut |_, _| true)?;
        let to = Options::path(folder.path().join("new")).key(Key::bytes(&[7; 32]));
        Database::restore(&backup, to.clone(), true, &mut |_, _| true)?;
        for options in [options(folder.path()).0, to] {
            assert_eq!(Database::open(options)?.records().get("c")?.map(|value| value.len()), Some(1 << 20));
        }
        Ok(())
    }

    #[test]
    fn the_old_file_is_refused_when_its_successor_is_in_place() -> Result<()> {
        let folder = made();
        let path = folder.path().join("db");
        let old = std::fs::read(&path).expect("read");
        Database::rekey(options(folder.path()).0, &mut |_, _| true)?;
        assert_eq!(rows(folder.path())?, 2);
        std::fs::write(&path, old).expect("written");
        assert_eq!(rows(folder.path()).err().map(|error| error.kind()), Some(Kind::CounterLost));
        Ok(())
    }

    #[test]
    fn what_is_stopped_or_refused_changes_nothing() -> Result<()> {
        let folder = made();
        let stopped = Database::rekey(options(folder.path()).0, &mut |_, _| false);
        assert_eq!(stopped.err().map(|error| error.kind()), Some(Kind::Interrupted));
        let without = Options::path(folder.path().join("db")).key(Key::bytes(&[7; 32]));
        let refused = Database::rekey(without, &mut |_, _| true);
        assert_eq!(refused.err().map(|error| error.kind()), Some(Kind::Misuse));
        assert_eq!(rows(folder.path())?, 2);
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 2, "db and state");
        Ok(())
    }

    #[test]
    fn without_a_counter_here_the_next_writer_adopts_as_ever() -> Result<()> {
        let folder = made();
        std::fs::remove_dir_all(folder.path().join("state")).expect("removed");
        Database::rekey(options(folder.path()).0, &mut |_, _| true)?;
        let (options, notes) = options(folder.path());
        change(options.clone(), "INSERT INTO t VALUES (3)")?;
        assert!(notes.lock().expect("sound").iter().any(|note| note.contains("counter adopted")));
        assert_eq!(Database::open(options)?.incidents()?.len(), 1);
        Ok(())
    }
}
