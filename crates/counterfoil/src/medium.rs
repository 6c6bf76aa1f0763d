//! The medium of a database: a file, a block device or memory, in the shape its header gives.

use std::path::Path;
use std::sync::Arc;

use counterfoil_flash::{
    self as flash, BlockDevice, BlockNumber, Device, FileDevice, Geometry, Handle, MemoryDevice, PageNumber, Read,
};
use counterfoil_log::Media;

use crate::error::{Error, Kind, Result};
use crate::options::{Options, Place};

/// Bytes in an extent of a database that may grow large.
const EXTENT_BYTES: u32 = 256 << 10;
/// Bytes in an extent of a database with a small limit, so that there are enough of them.
const SMALL_EXTENT_BYTES: u32 = 64 << 10;
/// Up to this limit a database counts as small.
const SMALL_BYTES: u64 = 64 << 20;
/// Extents in the record store's window, and in its second copy, where it has to be enough for ever.
const WINDOW_EXTENTS: u32 = 16;
/// The same, where the window can move to a larger one: so a small database is a small file.
const WINDOW_EXTENTS_AT_FIRST: u32 = 8;
/// The least that a database needs: headers, window, its copy, and some extents to work with.
const EXTENTS_MIN: u64 = 2 * WINDOW_EXTENTS as u64 + 12;

/// A medium, open.
#[derive(Clone)]
pub(crate) enum Medium {
    File(FileDevice),
    Block(BlockDevice),
    Memory(MemoryDevice),
}

/// What a header is read through before the shape is known.
const GUESS: Geometry =
    Geometry { page_bytes: 4096, block_pages: 1, block_count: 1 << 40, erase_before_program: false, grows: true };

/// The shape of a new database.
pub(crate) fn new_geometry(options: &Options) -> Result<Geometry> {
    let page_bytes = options.page_bytes;
    if !page_bytes.is_power_of_two() || !(512..=65536).contains(&page_bytes) {
        return Err(Error::new(Kind::Misuse, format!("a page of {page_bytes} bytes is not possible"))
            .advise("use a power of two from 512 to 65536"));
    }
    let small = options.size_limit.is_some_and(|limit| limit < SMALL_BYTES);
    let extent_bytes = if small { SMALL_EXTENT_BYTES } else { EXTENT_BYTES }.max(2 * page_bytes);
    let least = EXTENTS_MIN * u64::from(extent_bytes);
    let extents = match options.size_limit {
        None => u64::from(u32::MAX) - 1,
        Some(limit) if limit >= least => (limit / u64::from(extent_bytes)).min(u64::from(u32::MAX) - 1),
        Some(limit) => {
            return Err(Error::new(Kind::Misuse, format!("a database of {limit} bytes is too small"))
                .advise(format!("it needs {least} at least")));
        }
    };
    let block_pages = extent_bytes / page_bytes;
    // The kernel's offsets end before the largest pages times the most extents would.
    let block_count = extents.min(flash::MEDIUM_BYTES_MAX / u64::from(extent_bytes));
    Ok(Geometry { page_bytes, block_pages, block_count, erase_before_program: false, grows: true })
}

/// Extents in the record store's window of a new database. Its rings need pages to turn in: large ones make few.
pub(crate) fn window_extents(options: &Options, extent_pages: u32) -> u32 {
    let may_grow = matches!(options.place, Place::File(_) | Place::Memory) && options.size_limit.is_none();
    if may_grow && extent_pages >= 32 { WINDOW_EXTENTS_AT_FIRST } else { WINDOW_EXTENTS }
}

impl Medium {
    /// Opens what is there. A file that may only be read is opened for reading, and writing is refused later.
    pub(crate) fn open(place: &Place, read_only: bool) -> Result<Self> {
        let opened = match place {
            Place::File(path) => open_file(path, read_only).map(Medium::File),
            Place::Block(path) => open_block(path, read_only).map(Medium::Block),
            Place::Memory => {
                return Err(Error::new(Kind::NotFound, "a database in memory cannot be opened").advise("create it"));
            }
        };
        opened.map_err(|error| match error {
            flash::Error::WrongSort { wanted } => {
                Error::new(Kind::NotADatabase, format!("not a Counterfoil database: this is not {wanted}"))
                    .advise("check the name")
            }
            flash::Error::Device { code, .. } if code == nix::libc::EISDIR => {
                Error::new(Kind::NotADatabase, "not a Counterfoil database: this is a folder").advise("check the name")
            }
            flash::Error::Device { code, .. } if code == nix::libc::ENOENT => {
                Error::new(Kind::NotFound, "there is no such database").advise("make it with `counterfoil init`")
            }
            other => other.into(),
        })
    }

    /// The same medium in another shape.
    pub(crate) fn with_geometry(&self, geometry: Geometry) -> Result<Self> {
        Ok(match self {
            Medium::File(device) => Medium::File(device.with_geometry(geometry)?),
            Medium::Block(device) => Medium::Block(device.with_pages(geometry.page_bytes, geometry.block_pages)?),
            Medium::Memory(device) => Medium::Memory(device.clone()),
        })
    }

    /// For the log: a reader for everyone and the one writer's device.
    pub(crate) fn media(&self) -> Media {
        Media { reader: self.reader(), writer: self.writer() }
    }

    pub(crate) fn reader(&self) -> Arc<dyn Read + Send + Sync> {
        match self {
            Medium::File(device) => Arc::new(device.clone()),
            Medium::Block(device) => Arc::new(device.clone()),
            Medium::Memory(device) => Arc::new(device.clone()),
        }
    }

    pub(crate) fn writer(&self) -> Box<dyn Device + Send> {
        match self {
            Medium::File(device) => Box::new(device.clone()),
            Medium::Block(device) => Box::new(device.clone()),
            Medium::Memory(device) => Box::new(device.clone()),
        }
    }

    /// The open file, for locks; none in memory.
    pub(crate) fn handle(&self) -> Option<&Handle> {
        match self {
            Medium::File(device) => Some(device.handle()),
            Medium::Block(device) => Some(device.handle()),
            Medium::Memory(_) => None,
        }
    }

    /// Bytes that the medium takes now.
    pub(crate) fn bytes(&self) -> Result<u64> {
        Ok(match self {
            Medium::File(device) => device.length()?,
            Medium::Block(device) => device.geometry().page_count() * u64::from(device.geometry().page_bytes),
            Medium::Memory(_) => 0,
        })
    }
}

impl Read for Medium {
    fn geometry(&self) -> Geometry {
        match self {
            Medium::File(device) => device.geometry(),
            Medium::Block(device) => device.geometry(),
            Medium::Memory(device) => device.geometry(),
        }
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), flash::Error> {
        match self {
            Medium::File(device) => device.read(page, offset, buffer),
            Medium::Block(device) => device.read(page, offset, buffer),
            Medium::Memory(device) => device.read(page, offset, buffer),
        }
    }
}

impl Device for Medium {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), flash::Error> {
        match self {
            Medium::File(device) => device.program(page, data),
            Medium::Block(device) => device.program(page, data),
            Medium::Memory(device) => device.program(page, data),
        }
    }

    fn erase(&mut self, block: BlockNumber) -> Result<(), flash::Error> {
        match self {
            Medium::File(device) => device.erase(block),
            Medium::Block(device) => device.erase(block),
            Medium::Memory(device) => device.erase(block),
        }
    }

    fn flush(&mut self) -> Result<(), flash::Error> {
        match self {
            Medium::File(device) => device.flush(),
            Medium::Block(device) => device.flush(),
            Medium::Memory(device) => device.flush(),
        }
    }

    fn reserve(&mut self, page: PageNumber, pages: u64) -> Result<(), flash::Error> {
        match self {
            Medium::File(device) => device.reserve(page, pages),
            Medium::Block(device) => device.reserve(page, pages),
            Medium::Memory(device) => device.reserve(page, pages),
        }
    }
}

fn open_file(path: &Path, read_only: bool) -> Result<FileDevice, flash::Error> {
    if read_only {
        return FileDevice::open_read_only(path, GUESS);
    }
    match FileDevice::open(path, GUESS) {
        Err(error) if may_only_be_read(&error) => FileDevice::open_read_only(path, GUESS),
        other => other,
    }
}

fn open_block(path: &Path, read_only: bool) -> Result<BlockDevice, flash::Error> {
    let (page_bytes, block_pages) = (GUESS.page_bytes, GUESS.block_pages);
    if read_only {
        return BlockDevice::open_read_only(path, page_bytes, block_pages);
    }
    match BlockDevice::open(path, page_bytes, block_pages) {
        Err(error) if may_only_be_read(&error) => BlockDevice::open_read_only(path, page_bytes, block_pages),
        other => other,
    }
}

fn may_only_be_read(error: &flash::Error) -> bool {
    use nix::libc::{EACCES, EPERM, EROFS, ETXTBSY};
    match error {
        flash::Error::ReadOnly => true,
        flash::Error::Device { code, .. } => [EACCES, EPERM, EROFS, ETXTBSY].contains(code),
        _ => false,
    }
}
