//! A counter in a file of the user's state directory, away from the database it counts for.
//!
//! ```text
//! <database id in hex>.counter: two slots of 512 bytes
//! slot:  0 magic [8]: "CFCOUNT1" | 8 database id [32] | 40 value u64 | 48 tag [16] | 64 time u64, seconds since 1970
//!       72 path bytes u16 | 74 path (its end, if it is longer) [402] | 476 rollbacks u32 | 480 MAC [32]
//! MAC = HMAC-SHA-256(counter key, bytes 0..480)
//! ```
//! 1. Of the slots whose MAC holds, the higher value counts; a step overwrites the other one.
//! 2. A step counts once the slot was synced and read back. A cut during it leaves the slot before.
//! 3. A file of any other length, or without a slot that authenticates, is damaged (or another database's), never
//!    absent and never repaired.
//! 4. Whoever steps it holds `<database id in hex>.counter.lock`, an exclusive lock that the kernel drops with the
//!    process: two copies of one database, each with a lock of its own file, do not step one counter by turns.
//! 5. The file comes into being whole: written under another name, synced, renamed, directory synced. Whoever is going to
//!    adopt it has a file of that name, and of that size, before the image moves: a full disk is found out then.

use std::boxed::Box;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::string::String;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::vec::Vec;
use std::{format, vec};

use counterfoil_flash as flash;
use flash::lock::{LockError, LockFile};
use hmac::Mac;
use zeroize::Zeroizing;

use crate::counter::may_step;
use crate::counter::{Counter, CounterError, CounterKind, CounterValue};
use crate::keys::{Purpose, mac_under};
use crate::{DatabaseId, HostCounter, Tag, Vault};

mod succession;

pub use succession::Succession;

const SLOT_BYTES: usize = 512;
const FILE_BYTES: usize = 2 * SLOT_BYTES;
const MAGIC: &[u8; 8] = b"CFCOUNT1";
const PATH_AT: usize = 74;
const ROLLBACKS_AT: usize = 476;
const MAC_AT: usize = 480;

/// The environment variables that say where counters are kept.
#[derive(Clone, Copy, Debug, Default)]
pub struct StateEnvironment<'a> {
    /// `COUNTERFOIL_STATE_DIR`: the directory itself.
    pub counterfoil_state_dir: Option<&'a OsStr>,
    /// `XDG_STATE_HOME`: the directory above `counterfoil`; ignored unless absolute, as its specification says.
    pub xdg_state_home: Option<&'a OsStr>,
    /// `HOME`.
    pub home: Option<&'a OsStr>,
}

impl StateEnvironment<'_> {
    /// The directory of the counters; `None` where nothing names one. Empty variables count as unset.
    pub fn directory(&self) -> Option<PathBuf> {
        let named = |value: Option<&OsStr>| value.filter(|value| !value.is_empty()).map(PathBuf::from);
        named(self.counterfoil_state_dir)
            .or_else(|| {
                named(self.xdg_state_home).filter(|path| path.is_absolute()).map(|path| path.join("counterfoil"))
            })
            .or_else(|| named(self.home).map(|path| path.join(".local/state/counterfoil")))
    }
}

/// All that a slot holds, for messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CounterRecord {
    /// The number.
    pub value: u64,
    /// The tag of the commit that took the counter there.
    pub tag: Tag,
    /// When that was, in seconds since 1970.
    pub time: u64,
    /// Where the database was then; the end of the path if it is longer than a slot has room for.
    pub path: String,
    /// How many older images were gone on from by themselves since a person last bound the counter.
    pub rollbacks: u32,
}

/// The counter of one database in one directory. Nothing is read or written before it is asked something.
pub struct FileCounter {
    medium: Box<dyn Medium>,
    key: Zeroizing<[u8; 32]>,
    id: DatabaseId,
    database: String,
    /// The highest value this handle has seen.
    seen: Option<u64>,
    /// What the next slot written says of rollbacks, if it is not what the newest one says.
    rollbacks: Option<u32>,
}

impl FileCounter {
    /// The counter of the database that `vault` holds the keys of, in `directory`. `database` is where the database is
    /// now, told to people when counter and image disagree.
    pub fn new(directory: &Path, database: &Path, vault: &Vault) -> FileCounter {
        let medium = Box::new(Directory {
            path: directory.join(file_name(vault.id())),
            directory: directory.into(),
            lock: None,
            is_reserved: false,
        });
        FileCounter::on(medium, database, vault)
    }

    fn on(medium: Box<dyn Medium>, database: &Path, vault: &Vault) -> FileCounter {
        let key = vault.root.derive_fixed(Purpose::Counter);
        FileCounter {
            medium,
            key,
            id: vault.id(),
            database: database.to_string_lossy().into_owned(),
            seen: None,
            rollbacks: None,
        }
    }

    /// Where the counter of database `id` is in `directory`.
    pub fn path_in(directory: &Path, id: DatabaseId) -> PathBuf {
        directory.join(file_name(id))
    }

    /// Takes the counter for this handle alone until it is dropped, waiting up to `patience` for another to let go of
    /// it. [`Counter::step`] and [`Counter::adopt`] do so themselves, without waiting; whoever is going to write does it
    /// before he reads the counter, so that nobody moves it in between. A counter that cannot be written is found out
    /// here, before an opening root is written: an image that ran ahead of a counter that cannot follow is not believed
    /// later. Reading takes no lock.
    ///
    /// # Errors
    /// [`CounterError::Held`], [`CounterError::Device`].
    pub fn hold(&mut self, patience: Duration) -> Result<(), CounterError> {
        self.medium.hold(patience)
    }

    /// All that the counter holds.
    ///
    /// # Errors
    /// As [`Counter::value`].
    pub fn record(&mut self) -> Result<CounterRecord, CounterError> {
        let (_, record) = self.newest()?;
        if let Some(seen) = self.seen.filter(|seen| *seen > record.value) {
            return Err(CounterError::WentBack { seen, found: record.value });
        }
        self.seen = Some(record.value);
        Ok(record)
    }

    /// How many older images were gone on from by themselves, as the counter holds it from its next step or adoption on.
    pub fn set_rollbacks(&mut self, rollbacks: u32) {
        self.rollbacks = Some(rollbacks);
    }

    /// Deletes the counter. What it vouched for can then be put back unnoticed.
    ///
    /// # Errors
    /// [`CounterError::Absent`], [`CounterError::Held`], [`CounterError::Device`].
    pub fn forget(&mut self) -> Result<(), CounterError> {
        self.medium.read()?.ok_or(CounterError::Absent)?;
        self.hold(Duration::ZERO)?;
        self.seen = None;
        if self.medium.remove()? { Ok(()) } else { Err(CounterError::Absent) }
    }

    /// The newest slot that authenticates, with its index.
    fn newest(&mut self) -> Result<(usize, CounterRecord), CounterError> {
        let bytes = self.medium.read()?.ok_or(CounterError::Absent)?;
        if bytes.len() != FILE_BYTES {
            return Err(CounterError::Damaged);
        }
        let slots = bytes.as_chunks::<SLOT_BYTES>().0;
        let whole = slots.iter().enumerate().filter_map(|(index, slot)| Some((index, self.decode(slot)?)));
        // `max_by_key` takes the last of equals: after an adoption both slots hold the same.
        match whole.max_by_key(|(_, record)| record.value) {
            Some(newest) => Ok(newest),
            None if slots.iter().any(|slot| self.is_foreign(slot)) => Err(CounterError::Foreign),
            None => Err(CounterError::Damaged),
        }
    }

    fn is_foreign(&self, slot: &[u8; SLOT_BYTES]) -> bool {
        slot[..8] == MAGIC[..] && slot[8..40] != self.id.0
    }

    /// A slot. What it says of rollbacks is carried on from `newest`, unless this handle was told otherwise.
    fn encode(&self, value: u64, tag: &Tag, newest: Option<&CounterRecord>) -> [u8; SLOT_BYTES] {
        let rollbacks = self.rollbacks.unwrap_or(newest.map_or(0, |newest| newest.rollbacks));
        let mut slot = [0; SLOT_BYTES];
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let path = tail_of(&self.database, ROLLBACKS_AT - PATH_AT);
        slot[..8].copy_from_slice(MAGIC);
        slot[8..40].copy_from_slice(&self.id.0);
        slot[40..48].copy_from_slice(&value.to_le_bytes());
        slot[48..64].copy_from_slice(tag);
        slot[64..72].copy_from_slice(&time.to_le_bytes());
        slot[72..74].copy_from_slice(&(path.len() as u16).to_le_bytes());
        slot[PATH_AT..PATH_AT + path.len()].copy_from_slice(path.as_bytes());
        slot[ROLLBACKS_AT..MAC_AT].copy_from_slice(&rollbacks.to_le_bytes());
        let mut mac = mac_under(&self.key);
        mac.update(&slot[..MAC_AT]);
        slot[MAC_AT..].copy_from_slice(&mac.finalize().into_bytes());
        slot
    }

    fn decode(&self, slot: &[u8; SLOT_BYTES]) -> Option<CounterRecord> {
        let mut mac = mac_under(&self.key);
        mac.update(&slot[..MAC_AT]);
        mac.verify_slice(&slot[MAC_AT..]).ok()?;
        if slot[..8] != MAGIC[..] || slot[8..40] != self.id.0 {
            return None;
        }
        let number = |at: usize| slot[at..].first_chunk().copied().map(u64::from_le_bytes);
        let path_bytes = usize::from(u16::from_le_bytes([slot[72], slot[73]]));
        let path = slot.get(PATH_AT..PATH_AT + path_bytes).filter(|_| PATH_AT + path_bytes <= ROLLBACKS_AT)?;
        Some(CounterRecord {
            value: number(40)?,
            tag: slot[48..].first_chunk().copied()?,
            time: number(64)?,
            path: String::from_utf8_lossy(path).into_owned(),
            rollbacks: slot[ROLLBACKS_AT..].first_chunk().copied().map(u32::from_le_bytes)?,
        })
    }
}

impl Counter for FileCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::File
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.record().map(|record| CounterValue { value: record.value, tag: Some(record.tag) })
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        // A counter that is not there is not worth a directory for its lock.
        self.value()?;
        self.hold(Duration::ZERO)?;
        let present = self.value()?;
        if !may_step(&present, to, tag)? {
            return Ok(());
        }
        let (index, newest) = self.newest()?;
        // A cut during this write tears the older slot; the newer one still says where the counter was.
        self.medium.write(1 - index, &self.encode(to, tag, Some(&newest)))?;
        let found = self.record()?;
        if found.value != to || found.tag != *tag {
            return Err(CounterError::Stuck { asked: to, found: found.value });
        }
        Ok(())
    }

    fn reserve(&mut self) -> Result<(), CounterError> {
        self.hold(Duration::ZERO)?;
        self.medium.reserve()
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        self.hold(Duration::ZERO)?;
        let newest = match self.newest() {
            Ok((_, held)) if held.value > value => {
                return Err(CounterError::Lower { present: held.value, asked: value });
            }
            Err(error @ CounterError::Device { .. }) => return Err(error),
            newest => newest.ok().map(|(_, held)| held),
        };
        let slot = self.encode(value, tag, newest.as_ref());
        let mut file = [0; FILE_BYTES];
        file.as_chunks_mut::<SLOT_BYTES>().0.fill(slot);
        self.medium.create(&file)?;
        self.seen = None;
        let found = self.record()?;
        if found.value != value || found.tag != *tag {
            return Err(CounterError::Stuck { asked: value, found: found.value });
        }
        Ok(())
    }
}

impl HostCounter for FileCounter {
    fn record(&mut self) -> Result<CounterRecord, CounterError> {
        FileCounter::record(self)
    }

    fn hold(&mut self, patience: Duration) -> Result<(), CounterError> {
        FileCounter::hold(self, patience)
    }

    fn set_rollbacks(&mut self, rollbacks: u32) {
        FileCounter::set_rollbacks(self, rollbacks);
    }

    fn forget(&mut self) -> Result<(), CounterError> {
        FileCounter::forget(self)
    }

    fn place(&self) -> PathBuf {
        self.medium.path()
    }

    fn into_file(self: Box<Self>) -> Option<FileCounter> {
        Some(*self)
    }
}

fn file_name(id: DatabaseId) -> String {
    format!("{id}.counter")
}

/// The end of a text that is at most this long, cut between characters.
fn tail_of(text: &str, bytes_max: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes_max);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

/// What the counter needs of a file system, so that tests can stand in for a bad one.
trait Medium: Send {
    /// Keeps other handles out until this one is dropped. Once is enough.
    fn hold(&mut self, patience: Duration) -> Result<(), CounterError>;
    /// The whole file, or the first bytes of one that is too long; `None` if there is none.
    fn read(&mut self) -> Result<Option<Vec<u8>>, CounterError>;
    /// Overwrites one slot and syncs it.
    fn write(&mut self, slot: usize, bytes: &[u8; SLOT_BYTES]) -> Result<(), CounterError>;
    /// Has the room that [`Medium::create`] needs, until this handle is dropped or a file was put in place.
    fn reserve(&mut self) -> Result<(), CounterError>;
    /// Puts a whole file in the place of the old one, or of none.
    fn create(&mut self, bytes: &[u8; FILE_BYTES]) -> Result<(), CounterError>;
    /// Deletes the file; whether there was one.
    fn remove(&mut self) -> Result<bool, CounterError>;
    /// Where the file is.
    fn path(&self) -> PathBuf;
}

struct Directory {
    path: PathBuf,
    directory: PathBuf,
    lock: Option<LockFile>,
    /// Whether the file that is to take the counter's place is there, empty as yet.
    is_reserved: bool,
}

impl Directory {
    /// The file under its other name.
    fn fresh(&self) -> PathBuf {
        self.path.with_extension("counter.new")
    }

    /// Writes the file under its other name. One that is there is overwritten and not emptied first: it may have the last
    /// room of a full disk.
    fn write_fresh(&self, bytes: &[u8; FILE_BYTES]) -> io::Result<()> {
        self.create_directory()?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(self.fresh())?;
        file.write_all(bytes)?;
        file.set_len(FILE_BYTES as u64)?;
        file.sync_all()
    }

    /// Takes the file under its other name away, if it is there: whoever is killed before leaves one that the next adoption
    /// overwrites.
    fn remove_fresh(&mut self) {
        self.is_reserved = false;
        let _ = fs::remove_file(self.fresh());
    }

    fn sync_directory(&self) -> io::Result<()> {
        File::open(&self.directory)?.sync_all()
    }

    fn create_directory(&self) -> io::Result<()> {
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(&self.directory)
    }

    /// Whether the file could be overwritten, or made where there is none. Writes nothing that stays.
    fn probe(&self) -> Result<(), CounterError> {
        match OpenOptions::new().write(true).open(&self.path) {
            Ok(_) => return Ok(()),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(failed("written", &error)),
        }
        let trial = self.path.with_extension("counter.trial");
        let make = || {
            self.create_directory()?;
            File::create(&trial)?;
            fs::remove_file(&trial)
        };
        make().map_err(|error| failed("created", &error))
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        // A child that inherited it by `fork` leaves its parent's alone.
        if self.is_reserved && self.lock.as_ref().is_some_and(|lock| !lock.is_inherited()) {
            self.remove_fresh();
        }
    }
}

impl Medium for Directory {
    fn hold(&mut self, patience: Duration) -> Result<(), CounterError> {
        // A child that inherited the lock by `fork` asks for one of its own, and is refused as its parent has it.
        if self.lock.as_ref().is_none_or(LockFile::is_inherited) {
            self.probe()?;
            let lock = LockFile::acquire(&self.path.with_extension("counter.lock"), patience);
            self.lock = Some(lock.map_err(not_locked)?);
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Option<Vec<u8>>, CounterError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
            Err(error) => return Err(failed("read", &error)),
        };
        let mut bytes = vec![];
        file.take(FILE_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(|error| failed("read", &error))?;
        Ok(Some(bytes))
    }

    fn write(&mut self, slot: usize, bytes: &[u8; SLOT_BYTES]) -> Result<(), CounterError> {
        let write = || {
            // Not `create`: a file deleted since it was read stays deleted.
            let mut file = OpenOptions::new().write(true).open(&self.path)?;
            file.seek(SeekFrom::Start((slot * SLOT_BYTES) as u64))?;
            file.write_all(bytes)?;
            file.sync_data()
        };
        match write() {
            Err(error) if error.kind() == ErrorKind::NotFound => Err(CounterError::Absent),
            written => written.map_err(|error| failed("written", &error)),
        }
    }

    fn reserve(&mut self) -> Result<(), CounterError> {
        let reserved = self.write_fresh(&[0; FILE_BYTES]).inspect_err(|_| self.remove_fresh());
        reserved.map_err(|error| failed("created", &error))?;
        self.is_reserved = true;
        Ok(())
    }

    fn create(&mut self, bytes: &[u8; FILE_BYTES]) -> Result<(), CounterError> {
        let created = self.write_fresh(bytes).and_then(|()| fs::rename(self.fresh(), &self.path));
        let created = created.inspect_err(|_| self.remove_fresh());
        self.is_reserved = false;
        created.and_then(|()| self.sync_directory()).map_err(|error| failed("created", &error))
    }

    fn remove(&mut self) -> Result<bool, CounterError> {
        match fs::remove_file(&self.path) {
            Ok(()) => self.sync_directory().map(|()| true).map_err(|error| failed("deleted", &error)),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(failed("deleted", &error)),
        }
    }

    fn path(&self) -> PathBuf {
        self.path.clone()
    }
}

fn failed(operation: &'static str, error: &io::Error) -> CounterError {
    CounterError::Device { operation, code: error.raw_os_error().unwrap_or(0) }
}

pub(crate) fn not_locked(error: LockError) -> CounterError {
    let code = match error {
        LockError::Held(holder) => return CounterError::Held { process: holder.process },
        LockError::Device(flash::Error::Device { code, .. }) => code,
        _ => 0,
    };
    CounterError::Device { operation: "locked", code }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::{Suite, VolumeKey};

    /// A file system that can lie.
    #[derive(Clone, Default)]
    pub(super) struct Liar {
        file: Arc<Mutex<Option<Vec<u8>>>>,
        frozen: Arc<Mutex<bool>>,
        /// Bytes of the next slot write that reach the medium before the cut.
        cut: Arc<Mutex<Option<usize>>>,
    }

    impl Medium for Liar {
        /// As a state directory on a server that keeps no locks: what is behind the lock must hold without it.
        fn hold(&mut self, _: Duration) -> Result<(), CounterError> {
            Ok(())
        }

        fn read(&mut self) -> Result<Option<Vec<u8>>, CounterError> {
            Ok(self.file.lock().unwrap().clone())
        }

        fn write(&mut self, slot: usize, bytes: &[u8; SLOT_BYTES]) -> Result<(), CounterError> {
            if *self.frozen.lock().unwrap() {
                return Ok(());
            }
            let cut = self.cut.lock().unwrap().take();
            let reach = cut.unwrap_or(SLOT_BYTES);
            let mut file = self.file.lock().unwrap();
            let start = slot * SLOT_BYTES;
            file.as_mut().unwrap()[start..start + reach].copy_from_slice(&bytes[..reach]);
            match cut {
                Some(_) => Err(CounterError::Device { operation: "written", code: 5 }),
                None => Ok(()),
            }
        }

        fn reserve(&mut self) -> Result<(), CounterError> {
            Ok(())
        }

        fn create(&mut self, bytes: &[u8; FILE_BYTES]) -> Result<(), CounterError> {
            *self.file.lock().unwrap() = Some(bytes.to_vec());
            Ok(())
        }

        fn remove(&mut self) -> Result<bool, CounterError> {
            Ok(self.file.lock().unwrap().take().is_some())
        }

        fn path(&self) -> PathBuf {
            PathBuf::new()
        }
    }

    impl Liar {
        pub(super) fn cut_next(&self, reach: usize) {
            *self.cut.lock().unwrap() = Some(reach);
        }
    }

    pub(super) fn vault(id: u8) -> Vault {
        Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([id; 32]), Suite::Aes256GcmSiv)
    }

    fn counter(medium: &Liar) -> FileCounter {
        FileCounter::on(Box::new(medium.clone()), Path::new("/data/plant.db"), &vault(2))
    }

    #[test]
    fn a_frozen_counter_is_noticed_at_the_step() {
        let medium = Liar::default();
        let mut counter = counter(&medium);
        counter.adopt(5, &[5; 16]).unwrap();
        *medium.frozen.lock().unwrap() = true;
        assert_eq!(counter.step(6, &[6; 16]), Err(CounterError::Stuck { asked: 6, found: 5 }));
    }

    #[test]
    fn a_step_cut_at_any_byte_leaves_the_old_value_or_the_new() {
        for steps in 0..3 {
            for reach in 0..=SLOT_BYTES {
                let medium = Liar::default();
                let mut handle = counter(&medium);
                handle.adopt(5, &[5; 16]).unwrap();
                for step in 0..steps {
                    handle.step(6 + step, &[6; 16]).unwrap();
                }
                let to = 6 + steps;
                medium.cut_next(reach);
                assert!(handle.step(to, &[7; 16]).is_err());
                let value = counter(&medium).value().unwrap().value;
                assert!(value == to || (value == to - 1 && reach < SLOT_BYTES), "reach {reach}: {value}");
                counter(&medium).step(to, &[7; 16]).unwrap();
                assert_eq!(counter(&medium).value().unwrap().value, to);
            }
        }
    }

    #[test]
    fn an_older_file_put_back_while_it_is_open_is_noticed() {
        let medium = Liar::default();
        let mut handle = counter(&medium);
        handle.adopt(5, &[5; 16]).unwrap();
        let kept = medium.file.lock().unwrap().clone();
        handle.step(6, &[6; 16]).unwrap();
        handle.step(7, &[7; 16]).unwrap();
        *medium.file.lock().unwrap() = kept;
        assert_eq!(handle.value(), Err(CounterError::WentBack { seen: 7, found: 5 }));
        assert_eq!(handle.step(8, &[8; 16]), Err(CounterError::WentBack { seen: 7, found: 5 }));
    }

    #[test]
    fn a_clone_that_went_on_is_noticed() {
        let medium = Liar::default();
        let (mut one, mut two) = (counter(&medium), counter(&medium));
        one.adopt(5, &[5; 16]).unwrap();
        two.value().unwrap();
        one.step(6, &[1; 16]).unwrap();
        assert_eq!(two.step(6, &[2; 16]), Err(CounterError::OtherCommit { value: 6 }));
        one.step(7, &[1; 16]).unwrap();
        assert_eq!(two.step(6, &[2; 16]), Err(CounterError::Lower { present: 7, asked: 6 }));
    }

    #[test]
    fn every_flipped_bit_leaves_the_other_slot_or_is_damage() {
        let medium = Liar::default();
        let mut handle = counter(&medium);
        handle.adopt(5, &[5; 16]).unwrap();
        handle.step(6, &[6; 16]).unwrap();
        let whole = medium.file.lock().unwrap().clone().unwrap();
        for bit in 0..FILE_BYTES * 8 {
            medium.file.lock().unwrap().as_mut().unwrap()[bit / 8] ^= 1 << (bit % 8);
            let value = counter(&medium).value().unwrap().value;
            assert!(value == 6 || value == 5);
            *medium.file.lock().unwrap() = Some(whole.clone());
        }
    }

    #[test]
    fn a_long_path_keeps_its_end() {
        let medium = Liar::default();
        let long = format!("/{}/plant.db", "ü".repeat(400));
        let mut handle = FileCounter::on(Box::new(medium), Path::new(&long), &vault(2));
        handle.adopt(1, &[1; 16]).unwrap();
        let record = handle.record().unwrap();
        assert!(record.path.ends_with("ü/plant.db") && record.path.len() <= 406);
    }
}
