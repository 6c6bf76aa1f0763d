//! Making a database so that a cut leaves either nothing or all of it.
//!
//! ```text
//! NAME.creating (locked) -> volume, headers, first commit -> flush -> rename to NAME -> sync the folder
//! ```
//! What a killed `init` leaves is `NAME.creating`; the next `init` of NAME sees that nobody holds its lock and takes it
//! away. On a block device the headers are written last: without them it is no database.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use counterfoil_flash::lock::{LockError, WriterLock};
use counterfoil_flash::{self as flash, BlockDevice, Device, FileDevice, Geometry, MemoryDevice};
use counterfoil_log::{self as log, HEADER_RECORD, NoPins, Settings, Snapshot, Writer, record_space};
use counterfoil_vault::{
    self as vault, ArgonCost, CounterKind, DatabaseId, FileCounter, Header, HeaderCopy, HostCounter, KeyFile,
    RecoveryCode, RootDigests, SystemEntropy, Tag, Vault, VolumeKey, VolumeLayout,
};
use zeroize::Zeroizing;

use crate::convert::no_entropy;
use crate::error::{Error, Kind, Result};
use crate::medium::{Medium, new_geometry, window_extents};
use crate::options::{Counter, Options, Place};
use crate::store::counting;
use crate::volume::{Volume, layout_of};

/// A database just made, and closed again.
pub(crate) struct Created {
    pub(crate) volume: Arc<Volume>,
    /// To be shown once.
    pub(crate) recovery_code: Option<Zeroizing<String>>,
}

/// Makes a database where the options say.
pub(crate) fn create(options: Options) -> Result<Created> {
    let (id, volume_key) = fresh_names()?;
    create_as(options, id, &volume_key, None, |_| Ok(()))
}

/// A database id and a volume key that nobody had before.
pub(crate) fn fresh_names() -> Result<(DatabaseId, VolumeKey)> {
    let id = DatabaseId::generate(&mut SystemEntropy).map_err(|_| no_entropy())?;
    let volume_key = VolumeKey::generate(&mut SystemEntropy).map_err(|_| no_entropy())?;
    Ok((id, volume_key))
}

/// Makes a database under a given id and key, with room for what `holds` has, and lets `fill` put something in before it
/// gets its name.
pub(crate) fn create_as(
    options: Options,
    id: DatabaseId,
    volume_key: &VolumeKey,
    holds: Option<&Snapshot>,
    fill: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<Created> {
    let place = options.place.clone();
    let geometry = new_geometry(&options)?;
    if options.require_counter && matches!(options.counter, None | Some(Counter::None)) && place != Place::Memory {
        return Err(Error::new(Kind::Misuse, "a database without a counter, where one is required")
            .advise("choose a counter, or do without requiring one"));
    }
    match &place {
        Place::Memory => build(Medium::Memory(MemoryDevice::new(geometry)?), options, id, volume_key, holds, fill),
        Place::Block(_) if options.size_limit.is_some() => {
            Err(Error::new(Kind::Misuse, "a block device is taken whole").advise("leave the size out"))
        }
        Place::Block(path) => {
            let mut device = BlockDevice::open_alone(path, geometry.page_bytes, geometry.block_pages)?;
            let _lock = take(&mut device, &options)?;
            build(Medium::Block(device), options, id, volume_key, holds, fill)
        }
        Place::File(path) => {
            refuse_existing(path)?;
            let temporary = Temporary::create(path, geometry)?;
            let _lock = temporary.lock()?;
            let created = build(Medium::File(temporary.device.clone()), options, id, volume_key, holds, fill)?;
            temporary.publish(path)?;
            Ok(created)
        }
    }
}

fn build(
    mut medium: Medium,
    options: Options,
    id: DatabaseId,
    volume_key: &VolumeKey,
    holds: Option<&Snapshot>,
    fill: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<Created> {
    let made = Secrets::make(&options)?;
    let mut header = new_header(&options, &made, &medium, id, volume_key)?;
    make_room(&mut header, holds)?;
    let vault = Arc::new(Vault::new(volume_key, id, header.suite));
    let mut counter = new_counter(&options, &vault)?;
    let mut unfinished = Unfinished::of(&options, &vault)?;
    if let Some(counter) = &mut counter {
        counter.adopt(0, &Tag::default())?;
    }
    let settings = Settings {
        counter: counter.map(|counter| counter as Box<dyn vault::Counter + Send>),
        counting: counting(header.counter),
        pins: Box::new(NoPins),
        headers: None,
    };
    let layout = layout_of(&header.layout)?;
    let media = medium.media();
    let cache = options.page_bytes_kept()?;
    let mut writer = log::create(media, vault, layout, settings, &mut SystemEntropy, 0, cache)?;
    fill(&mut writer)?;
    name_header(&mut writer, &header)?;
    writer.close()?;
    let pages = header.encode(volume_key);
    for copy in HeaderCopy::BOTH {
        medium.program(copy.first_page(&header.layout), &pages)?;
        medium.flush()?;
    }
    // The way that costs least: a passphrase would be stretched once more.
    let secrets = made.offered(&options)?;
    let unlocked = vault::read_headers(&medium)?.unlock(&secrets, &ArgonCost::HOST)?;
    let volume = Arc::new(Volume::new(medium, unlocked, options)?);
    unfinished.counter = None;
    Ok(Created { volume, recovery_code: made.recovery.map(|code| code.text()) })
}

/// Lets the newest root name a header.
pub(crate) fn name_header(writer: &mut Writer, header: &Header) -> Result<()> {
    let digests = RootDigests::settled(header.slots_digest());
    writer.begin()?;
    writer.put_record(record_space::SETTING, HEADER_RECORD, &digests.encode())?;
    writer.commit()?;
    Ok(())
}

/// Lets the record store's window of a new database be large enough for what it is going to hold.
fn make_room(header: &mut Header, holds: Option<&Snapshot>) -> Result<()> {
    let layout = layout_of(&header.layout)?;
    let extents = holds.map_or(layout.window_extents, |snapshot| layout.window_extents_to_hold(snapshot));
    header.layout.record_extents = u64::from(extents);
    Ok(())
}

/// Makes a database of the same name as `old` under a new volume key, in a file on its way. Its counter is not asked yet.
pub(crate) fn reseal(
    temporary: &Temporary,
    options: Options,
    old: &Header,
    volume_key: &VolumeKey,
    holds: &Snapshot,
    fill: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<Arc<Volume>> {
    let medium = Medium::File(temporary.device());
    let made = Secrets { generated: None, recovery: None };
    let mut header = new_header(&options, &made, &medium, old.id, volume_key)?;
    header.counter = old.counter;
    header.generation += old.generation;
    fill_volume(medium, options, header, volume_key, holds, fill)
}

/// Makes a database that is lost again, in a file on its way: `old` is its header. Its counter is not asked yet.
pub(crate) fn make_again(
    temporary: &Temporary,
    options: Options,
    old: &Header,
    volume_key: &VolumeKey,
    holds: &Snapshot,
    fill: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<Arc<Volume>> {
    let medium = Medium::File(temporary.device());
    let mut header = bare_header(&options, &medium, old.id)?;
    header.take_slots(old);
    fill_volume(medium, options, header, volume_key, holds, fill)
}

fn fill_volume(
    mut medium: Medium,
    options: Options,
    mut header: Header,
    volume_key: &VolumeKey,
    holds: &Snapshot,
    fill: impl FnOnce(&mut Writer) -> Result<()>,
) -> Result<Arc<Volume>> {
    make_room(&mut header, Some(holds))?;
    let vault = Arc::new(Vault::new(volume_key, header.id, header.suite));
    let counting = counting(header.counter);
    let settings = Settings { counter: None, counting, pins: Box::new(NoPins), headers: None };
    let layout = layout_of(&header.layout)?;
    let cache = options.page_bytes_kept()?;
    let mut writer = log::create(medium.media(), vault, layout, settings, &mut SystemEntropy, 0, cache)?;
    fill(&mut writer)?;
    name_header(&mut writer, &header)?;
    writer.close()?;
    let pages = header.encode(volume_key);
    for copy in HeaderCopy::BOTH {
        medium.program(copy.first_page(&header.layout), &pages)?;
        medium.flush()?;
    }
    Ok(Arc::new(Volume::of_device(medium, options)?))
}

/// Secrets that are made along with a database.
struct Secrets {
    /// A database in memory needs no key of its owner: this one ends with it.
    generated: Option<KeyFile>,
    recovery: Option<RecoveryCode>,
}

impl Secrets {
    fn make(options: &Options) -> Result<Self> {
        let generated = match (&options.key, &options.place) {
            (Some(_), _) => None,
            (None, Place::Memory) => Some(KeyFile::generate(&mut SystemEntropy).map_err(|_| no_entropy())?),
            (None, _) => return Err(Error::new(Kind::Misuse, "no key was given")),
        };
        let recovery = match options.recovery {
            true => Some(RecoveryCode::generate(&mut SystemEntropy).map_err(|_| no_entropy())?),
            false => None,
        };
        Ok(Self { generated, recovery })
    }

    /// All secrets that open the database, the cheapest first.
    fn offered<'a>(&'a self, options: &'a Options) -> Result<Vec<vault::Secret<'a>>> {
        let recovery = self.recovery.iter().map(vault::Secret::Recovery);
        let generated = self.generated.iter().map(vault::Secret::KeyFile);
        let mut offered: Vec<_> = recovery.chain(generated).collect();
        if let Some(key) = &options.key {
            offered.push(key.offered()?);
        }
        Ok(offered)
    }
}

fn new_header(
    options: &Options,
    made: &Secrets,
    medium: &Medium,
    id: DatabaseId,
    volume_key: &VolumeKey,
) -> Result<Header> {
    let mut header = bare_header(options, medium, id)?;
    let now = header.created;
    let mut secrets = made.offered(options)?;
    // The owner's own key first, as slot 0; then what was made along with it.
    secrets.reverse();
    for secret in &secrets {
        header.add_slot(secret, &ArgonCost::HOST, volume_key, now, &mut SystemEntropy)?;
    }
    Ok(header)
}

/// A header without a slot.
fn bare_header(options: &Options, medium: &Medium, id: DatabaseId) -> Result<Header> {
    use flash::Read;
    let geometry = medium.geometry();
    let extent_bytes = u64::from(geometry.page_bytes) * u64::from(geometry.block_pages);
    let size_limit = if geometry.grows { options.size_limit.unwrap_or(0) } else { geometry.block_count * extent_bytes };
    let layout = VolumeLayout {
        page_bytes: geometry.page_bytes,
        extent_pages: geometry.block_pages,
        record_first_extent: u64::from(log::HEADER_EXTENTS),
        record_extents: u64::from(window_extents(options, geometry.block_pages)),
        size_limit,
    };
    let counter = match options.counter {
        Some(Counter::File(_)) if options.place != Place::Memory => CounterKind::File,
        Some(Counter::Tpm(_)) if options.place != Place::Memory => CounterKind::Tpm,
        _ => CounterKind::None,
    };
    Ok(Header::new(id, options.cipher, counter, layout, crate::time::now())?)
}

fn new_counter(options: &Options, vault: &Vault) -> Result<Option<Box<dyn HostCounter>>> {
    match (&options.counter, options.place.path()) {
        (Some(Counter::File(directory)), Some(path)) => {
            let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
            Ok(Some(Box::new(FileCounter::new(directory, &path, vault))))
        }
        (Some(Counter::Tpm(directory)), Some(_)) => options.tpm.counter(Some(directory), vault).map(Some),
        _ => Ok(None),
    }
}

/// The counter of a database on its way, where it takes up room that is scarce. Dropped before the database is whole, it
/// gives that back.
struct Unfinished {
    counter: Option<Box<dyn HostCounter>>,
}

impl Unfinished {
    fn of(options: &Options, vault: &Vault) -> Result<Self> {
        let counter = new_counter(options, vault)?;
        Ok(Self { counter: counter.filter(|counter| counter.kind() == CounterKind::Tpm) })
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(counter) = &mut self.counter {
            // Why the database was not made is being told already.
            let _ = counter.forget();
        }
    }
}

/// Takes a block device for a database. Nobody writes to one that it may carry, before that is wiped or after.
pub(crate) fn take(device: &mut BlockDevice, options: &Options) -> Result<WriterLock> {
    let lock = WriterLock::acquire(device.handle(), options.lock_timeout)?;
    let occupied = if options.erase { flash::Occupied::DangerErase } else { flash::Occupied::Refuse };
    // A device with a database of ours is occupied like any other.
    device.take((&vault::MAGIC, &vault::header_places().collect::<Vec<u64>>()), occupied)?;
    Ok(lock)
}

pub(crate) fn refuse_existing(path: &Path) -> Result<()> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::host("create the database", path.display(), &error)),
        Ok(_) => Err(existing(path)),
    }
}

fn existing(path: &Path) -> Error {
    Error::new(Kind::Misuse, "there is something of this name already")
        .at(path.display())
        .advise("choose another name, or move it away")
}

/// A database on its way, under a name that says so. Dropped before it is published, it takes itself away.
pub(crate) struct Temporary {
    path: PathBuf,
    device: FileDevice,
    published: bool,
}

impl Temporary {
    pub(crate) fn create(target: &Path, geometry: Geometry) -> Result<Self> {
        let mut name = target.file_name().unwrap_or_default().to_owned();
        if name.is_empty() {
            return Err(Error::new(Kind::Misuse, "this is no name for a file").at(target.display()));
        }
        name.push(".creating");
        let path = target.with_file_name(name);
        let device = match FileDevice::create_new(&path, geometry) {
            Err(flash::Error::Device { code, .. }) if code == nix::libc::EEXIST => {
                remove_leftover(&path, geometry)?;
                FileDevice::create_new(&path, geometry)
            }
            other => other,
        };
        let device = device.map_err(Error::from)?;
        Ok(Self { path, device, published: false })
    }

    pub(crate) fn device(&self) -> FileDevice {
        self.device.clone()
    }

    pub(crate) fn lock(&self) -> Result<WriterLock> {
        Ok(WriterLock::acquire(self.device.handle(), std::time::Duration::ZERO)?)
    }

    /// Gives it its name, unless something has that name by now.
    pub(crate) fn publish(mut self, target: &Path) -> Result<()> {
        let host = |error: std::io::Error| Error::host("create the database", target.display(), &error);
        rename_new(&self.path, target).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => existing(target),
            _ => host(error),
        })?;
        self.published = true;
        sync_folder(target).map_err(host)
    }
}

impl Temporary {
    /// Gives it the name of what it replaces.
    pub(crate) fn replace(mut self, target: &Path) -> Result<()> {
        std::fs::rename(&self.path, target).map_err(|error| Error::host("replace", target.display(), &error))?;
        self.published = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.published {
            // What cannot be removed is taken away by the next attempt.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Takes away what a killed attempt left behind; refuses while another attempt is under way.
fn remove_leftover(path: &Path, geometry: Geometry) -> Result<()> {
    let device = FileDevice::open(path, geometry)?;
    match WriterLock::acquire(device.handle(), std::time::Duration::ZERO) {
        Ok(_lock) => std::fs::remove_file(path).map_err(|error| Error::host("remove", path.display(), &error)),
        Err(LockError::Held(holder)) => {
            Err(Error::new(Kind::Locked, format!("{holder} is creating this database")).at(path.display()))
        }
        Err(error) => Err(error.into()),
    }
}

/// Renames without ever replacing.
pub(crate) fn rename_new(from: &Path, to: &Path) -> std::io::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    match renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE) {
        Ok(()) => Ok(()),
        // A file system without this flag: a link is refused in the same way where the name is taken.
        Err(nix::errno::Errno::EINVAL | nix::errno::Errno::ENOSYS) => {
            std::fs::hard_link(from, to)?;
            std::fs::remove_file(from)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// Makes a name durable.
pub(crate) fn sync_folder(of: &Path) -> std::io::Result<()> {
    let folder = match of.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    File::open(folder)?.sync_all()
}
