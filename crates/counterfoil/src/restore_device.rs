//! Restoring onto a block device, which has no second place to make a database in and rename it from.
//!
//! ```text
//! refuse or wipe what is there -> zeros -> pages of the backup -> new epoch above the counter -> header A -> header B
//! ```
//! 1. Until the first header is written the device carries no database: a cut leaves `NotADatabase`, and the restore is
//!    repeated.
//! 2. No page of an earlier life of the device is left where this one may look: of the same database, under the same
//!    key, it would authenticate. What the backup reaches over is zeroed here; behind it the log clears what would be
//!    believed when its spine gets there.

use std::path::Path;
use std::sync::Arc;

use counterfoil_flash::{self as flash, BlockDevice, BlockNumber, Device, Geometry, PageNumber, Read};
use counterfoil_log::{HEADER_EXTENTS, Recovered};
use counterfoil_vault::{HeaderCopy, VolumeLayout};

use crate::copies::{Progress, begin_epoch, stopped, tell_of_restoring};
use crate::create;
use crate::error::{Error, Kind, Result};
use crate::medium::Medium;
use crate::options::Options;
use crate::volume::{Volume, unlock};

/// Extents that opening a restored database may take beyond those of its backup.
const EXTENTS_TO_OPEN: u64 = 4;

pub(crate) fn restore(
    source: &Volume,
    recovered: Recovered,
    path: &Path,
    options: Options,
    progress: Progress<'_>,
) -> Result<()> {
    let layout = source.opened().header.layout;
    let device = BlockDevice::open_alone(path, layout.page_bytes, layout.extent_pages)?;
    restore_onto(source, recovered, device, options, progress)
}

fn restore_onto(
    source: &Volume,
    recovered: Recovered,
    mut device: BlockDevice,
    options: Options,
    progress: Progress<'_>,
) -> Result<()> {
    let extents = recovered.report().extents.len() as u64;
    require_room(&source.opened().header.layout, extents, device.geometry().block_count)?;
    let _lock = create::take(&mut device, &options)?;
    copy(&recovered, &mut device, extents, progress)?;
    let volume = Arc::new(adapted(source, &recovered, device, options)?);
    let text = format!("made of a backup whose version was {}", recovered.version());
    drop(recovered);
    begin_epoch(&volume, |writer| {
        create::name_header(writer, &volume.opened().header)?;
        tell_of_restoring(writer, &text)
    })?;
    write_headers(&volume)
}

fn require_room(layout: &VolumeLayout, needed: u64, there: u64) -> Result<()> {
    let needed = needed + EXTENTS_TO_OPEN;
    if there >= needed {
        return Ok(());
    }
    let bytes = |extents: u64| extents * layout.extent_bytes();
    let text = format!("the device has {} bytes, and the backup needs {}", bytes(there), bytes(needed));
    Err(Error::new(Kind::Full, text).advise("take a larger one"))
}

/// All pages of the backup but its headers, and zeros in between.
fn copy(recovered: &Recovered, device: &mut BlockDevice, extents: u64, progress: Progress<'_>) -> Result<()> {
    let geometry = device.geometry();
    let pages = extents * u64::from(geometry.block_pages);
    for extent in 0..extents {
        device.erase(BlockNumber(extent))?;
        if !progress(extent * u64::from(geometry.block_pages), 2 * pages) {
            return Err(interrupted());
        }
    }
    let first = PageNumber(u64::from(HEADER_EXTENTS) * u64::from(geometry.block_pages));
    let mut target = WithoutHeaders { device, first };
    let copied = recovered
        .copy_pages(&mut target, &mut |done, total| progress(pages + pages * done / total.max(1), 2 * pages))?;
    if copied { Ok(()) } else { Err(interrupted()) }
}

fn interrupted() -> Error {
    Error::new(stopped().kind(), "interrupted: the device carries no database now").advise("restore again")
}

/// The volume on the device, as large as the device is. Its header is on the medium nowhere yet.
fn adapted(source: &Volume, recovered: &Recovered, device: BlockDevice, options: Options) -> Result<Volume> {
    let mut header = source.settle(&recovered.snapshot())?.header;
    header.layout.size_limit = device.geometry().block_count * header.layout.extent_bytes();
    header.least_commit = recovered.commit().0;
    let mut unlocked = unlock(&source.medium, &options)?;
    unlocked.header = header;
    Volume::new(Medium::Block(device), unlocked, options)
}

fn write_headers(volume: &Volume) -> Result<()> {
    let opened = volume.opened();
    let pages = opened.header.encode(&opened.unlocked.volume_key);
    let mut medium = volume.medium.clone();
    for copy in HeaderCopy::BOTH {
        medium.program(copy.first_page(&opened.header.layout), &pages)?;
        medium.flush()?;
    }
    Ok(())
}

/// A device whose first pages stay as they are.
struct WithoutHeaders<'a> {
    device: &'a mut BlockDevice,
    first: PageNumber,
}

impl Read for WithoutHeaders<'_> {
    fn geometry(&self) -> Geometry {
        self.device.geometry()
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        self.device.read(page, offset, buffer)
    }
}

impl Device for WithoutHeaders<'_> {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), flash::Error> {
        if page < self.first { Ok(()) } else { self.device.program(page, data) }
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), flash::Error> {
        self.device.erase(block)
    }

    fn flush(&mut self) -> Result<(), flash::Error> {
        self.device.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use tempfile::TempDir;

    use super::*;
    use crate::database::Database;
    use crate::key::Key;
    use crate::options::Counter;

    /// A database of so many rows, a backup of it, and a file that stands for a device.
    struct Bench {
        folder: TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let bench = Self { folder: tempfile::tempdir().expect("a folder") };
            Database::create(bench.options("db")).expect("made").close().expect("closes");
            bench.change("db", "CREATE TABLE t (a BIGINT PRIMARY KEY); INSERT INTO t VALUES (1), (2)");
            let backup = bench.path("backup");
            Database::open(bench.options("db")).expect("opens").backup(backup, &mut |_, _| true).expect("backed up");
            bench.change("db", "INSERT INTO t SELECT i FROM generate_series(3, 30000) s(i)");
            bench
        }

        fn path(&self, name: &str) -> PathBuf {
            self.folder.path().join(name)
        }

        fn options(&self, name: &str) -> Options {
            let counter = Counter::File(self.path("state"));
            Options::path(self.path(name)).key(Key::bytes(&[7; 32])).counter(counter)
        }

        fn change(&self, name: &str, sql: &str) {
            let database = Database::open(self.options(name)).expect("opens");
            database.connect().expect("connects").run(sql, &[]).expect("runs");
            database.close().expect("closes");
        }

        fn device(&self, bytes: &[u8]) -> BlockDevice {
            std::fs::write(self.path("device"), bytes).expect("written");
            BlockDevice::stand_in(self.path("device"), 4096, 64).expect("opens")
        }

        /// Restores the backup, until so many calls to tell how far it has come.
        fn restore(&self, device: BlockDevice, erase: bool, calls: u64) -> Result<()> {
            let options = self.options("device").danger_erase(erase);
            let source = Volume::open(Options { place: crate::Place::File(self.path("backup")), ..options.clone() })?;
            let mut told = 0;
            restore_onto(&source, source.recover()?, device, options, &mut |_, _| {
                told += 1;
                told <= calls
            })
        }

        /// What is on the device, opened as the file that stands for it, whole and without a fault.
        fn rows(&self) -> Result<u64> {
            let database = Database::open(self.options("device"))?;
            assert_eq!(database.verify(&mut |_, _, _| {})?.problems, []);
            assert_eq!(database.incidents()?.last().map(|incident| incident.kind), Some("restored"));
            database.relation("t")?.count()
        }
    }

    const DEVICE_BYTES: usize = 24 << 20;

    #[test]
    fn a_backup_becomes_the_database_of_a_device() -> Result<()> {
        let bench = Bench::new();
        bench.restore(bench.device(&vec![0; DEVICE_BYTES + 5000]), false, u64::MAX)?;
        assert_eq!(bench.rows()?, 2);
        // It is as large as the device, goes on, and every other copy is refused.
        let inspection = Database::open(bench.options("device"))?.inspect()?;
        assert_eq!(inspection.size_limit, Some(DEVICE_BYTES as u64));
        bench.change("device", "INSERT INTO t VALUES (3)");
        assert_eq!(bench.rows()?, 3);
        assert_eq!(Database::open(bench.options("db")).err().map(|error| error.kind()), Some(Kind::RolledBack));
        Ok(())
    }

    #[test]
    fn what_is_occupied_or_too_small_is_refused() {
        let bench = Bench::new();
        let mut ext = vec![0; DEVICE_BYTES];
        ext[1080..1082].copy_from_slice(&[0x53, 0xef]);
        let newer = std::fs::read(bench.path("db")).expect("read");
        for bytes in [&ext, &newer] {
            let refused = bench.restore(bench.device(bytes), false, u64::MAX).err();
            assert_eq!(refused.map(|error| error.kind()), Some(Kind::Misuse));
            assert!(std::fs::read(bench.path("device")).expect("read") == *bytes, "it was written to");
        }
        let small = bench.restore(bench.device(&[0; 3 << 20]), true, u64::MAX).err();
        assert_eq!(small.map(|error| error.kind()), Some(Kind::Full));
    }

    /// Pages of a newer state authenticate under the same key: none may be left where the older one looks.
    #[test]
    fn a_newer_state_of_the_same_database_is_gone_when_it_is_erased() -> Result<()> {
        let bench = Bench::new();
        let newer = std::fs::read(bench.path("db")).expect("read");
        bench.restore(bench.device(&[newer, vec![0; DEVICE_BYTES]].concat()), true, u64::MAX)?;
        assert_eq!(bench.rows()?, 2);
        Ok(())
    }

    /// Where the restored one goes on, openings of the earlier life stand under the numbers that it gives.
    #[test]
    fn openings_of_an_earlier_life_are_not_taken_for_its_own() -> Result<()> {
        for openings in 1..7 {
            let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
            let made = Database::create(bench.options("db")).expect("made");
            made.backup(bench.path("backup"), &mut |_, _| true).expect("backed up");
            made.close().expect("closes");
            (0..openings).for_each(|opening| bench.change("db", &format!("CREATE TABLE t{opening} (a BIGINT)")));
            let later = std::fs::read(bench.path("db")).expect("read");
            bench.restore(bench.device(&[later, vec![0; DEVICE_BYTES]].concat()), true, u64::MAX)?;
            bench.change("device", "CREATE TABLE t (a BIGINT PRIMARY KEY)");
            for row in 0..openings + 2 {
                bench.change("device", &format!("INSERT INTO t VALUES ({row})"));
                assert_eq!(bench.rows()?, row + 1, "after {openings} openings");
            }
        }
        Ok(())
    }

    #[test]
    fn nobody_writes_to_what_is_being_erased() -> Result<()> {
        let bench = Bench::new();
        let newer = std::fs::read(bench.path("db")).expect("read");
        let device = bench.device(&[newer, vec![0; DEVICE_BYTES]].concat());
        let writer = Database::open(bench.options("device").lock_timeout(std::time::Duration::ZERO))?;
        writer.connect()?.run("INSERT INTO t VALUES (0)", &[])?;
        let before = std::fs::read(bench.path("device")).expect("read");
        let options = bench.options("device").danger_erase(true).lock_timeout(std::time::Duration::ZERO);
        let source = Volume::open(Options { place: crate::Place::File(bench.path("backup")), ..options.clone() })?;
        let refused = restore_onto(&source, source.recover()?, device, options, &mut |_, _| true).err();
        assert_eq!(refused.map(|error| error.kind()), Some(Kind::Locked));
        assert!(std::fs::read(bench.path("device")).expect("read") == before, "it was written to");
        Ok(())
    }

    #[test]
    fn what_is_cut_leaves_no_database_and_is_repeated() -> Result<()> {
        let bench = Bench::new();
        for calls in [0, 1, 10, 20, 30] {
            let newer = std::fs::read(bench.path("db")).expect("read");
            let device = bench.device(&[newer, vec![0; DEVICE_BYTES]].concat());
            let cut = bench.restore(device, true, calls).err();
            assert_eq!(cut.map(|error| error.kind()), Some(Kind::Interrupted), "{calls}");
            let opened = Database::open(bench.options("device")).err();
            assert_eq!(opened.map(|error| error.kind()), Some(Kind::NotADatabase), "{calls}");
        }
        let again = BlockDevice::stand_in(bench.path("device"), 4096, 64)?;
        bench.restore(again, false, u64::MAX)?;
        assert_eq!(bench.rows()?, 2);
        Ok(())
    }
}
