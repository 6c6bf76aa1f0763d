//! A medium that is a whole block device of the system (`/dev/X`): as a file, with a fixed size.

use std::io::{Seek, SeekFrom};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use crate::raw::{Handle, Purpose, typed};
use crate::signature::{PROBED_BYTES, find_signature};
use crate::{BlockNumber, Device, Error, Geometry, Operation, PageNumber, Read};

/// What to do when a block device carries something already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupied {
    /// Refuse with [`Error::Occupied`].
    Refuse,
    /// Overwrite all magic numbers with zeros; what it carried is lost.
    DangerErase,
}

/// A medium that is a whole block device. Clones share the open device.
#[derive(Clone)]
pub struct BlockDevice {
    handle: Handle,
    geometry: Geometry,
}

impl BlockDevice {
    /// Opens a device that is to be taken for a new database. One that is mounted or otherwise in use is refused by the
    /// system (`EBUSY`).
    ///
    /// # Errors
    /// As [`BlockDevice::open`].
    pub fn open_alone(path: impl AsRef<Path>, page_bytes: u32, block_pages: u32) -> Result<Self, Error> {
        Self::with(path.as_ref(), page_bytes, block_pages, Purpose::WriteAlone)
    }

    /// **For tests:** an ordinary file in the place of a device.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Device`].
    #[cfg(feature = "stand-in")]
    pub fn stand_in(path: impl AsRef<Path>, page_bytes: u32, block_pages: u32) -> Result<Self, Error> {
        Self::from_handle(Handle::open(path.as_ref(), Purpose::Write)?, page_bytes, block_pages)
    }

    /// Opens a device that holds a database, for reading and writing.
    ///
    /// # Errors
    /// [`Error::WrongSort`], [`Error::Shape`], [`Error::Device`], [`Error::ReadOnly`].
    pub fn open(path: impl AsRef<Path>, page_bytes: u32, block_pages: u32) -> Result<Self, Error> {
        Self::with(path.as_ref(), page_bytes, block_pages, Purpose::Write)
    }

    /// Opens a device that holds a database, for reading.
    ///
    /// # Errors
    /// As [`BlockDevice::open`].
    pub fn open_read_only(path: impl AsRef<Path>, page_bytes: u32, block_pages: u32) -> Result<Self, Error> {
        Self::with(path.as_ref(), page_bytes, block_pages, Purpose::Read)
    }

    fn with(path: &Path, page_bytes: u32, block_pages: u32, purpose: Purpose) -> Result<Self, Error> {
        // Looked at first, so that no ordinary file is ever opened for writing by mistake.
        let metadata = std::fs::metadata(path).map_err(|e| typed(Operation::Open, PageNumber(0), &e))?;
        if !metadata.file_type().is_block_device() {
            return Err(Error::WrongSort { wanted: "a block device" });
        }
        Self::from_handle(Handle::open(path, purpose)?, page_bytes, block_pages)
    }

    fn from_handle(handle: Handle, page_bytes: u32, block_pages: u32) -> Result<Self, Error> {
        let geometry = shape(&handle, page_bytes, block_pages)?;
        Ok(Self { handle, geometry })
    }

    /// The same open device seen with other pages and blocks.
    ///
    /// # Errors
    /// [`Error::Shape`], [`Error::Device`].
    pub fn with_pages(&self, page_bytes: u32, block_pages: u32) -> Result<Self, Error> {
        Self::from_handle(self.handle.clone(), page_bytes, block_pages)
    }

    /// Takes the device for a new database: refuses one that carries something, or wipes it. `own` is what a header of a database of ours
    /// begins with, and where copies of one may be, in bytes; any of them counts as something, so whoever may wipe it holds its writer's lock.
    ///
    /// # Errors
    /// [`Error::Occupied`], [`Error::Device`], [`Error::ReadOnly`].
    pub fn take(&mut self, own: (&[u8], &[u64]), occupied: Occupied) -> Result<(), Error> {
        let carried = self.carries(own)?;
        match (carried, occupied) {
            (None, _) => Ok(()),
            (Some(by), Occupied::Refuse) => Err(Error::Occupied { by }),
            (Some(_), Occupied::DangerErase) => self.wipe(own.1),
        }
    }

    fn carries(&self, (own, places): (&[u8], &[u64])) -> Result<Option<&'static str>, Error> {
        let bytes = bytes_of(&self.handle)?;
        let page_bytes = u64::from(self.geometry.page_bytes);
        // The rest of the device that fills no block is probed too: the second copy of a partition table is there.
        let whole = Geometry { block_pages: 1, block_count: bytes.div_ceil(page_bytes), ..self.geometry };
        let mut read = |at: u64, buffer: &mut [u8]| {
            self.handle.read(&whole, PageNumber(at / page_bytes), (at % page_bytes) as u32, buffer)
        };
        let mut found = std::vec![0; own.len()];
        for place in places.iter().filter(|place| place.saturating_add(own.len() as u64) <= bytes) {
            read(*place, &mut found)?;
            if !own.is_empty() && found == own {
                return Ok(Some("a Counterfoil database"));
            }
        }
        find_signature(bytes, &mut read)
    }

    fn wipe(&mut self, places: &[u64]) -> Result<(), Error> {
        let bytes = bytes_of(&self.handle)?;
        // Sectors are the smallest unit that every device has.
        const SECTOR: u64 = 512;
        let sectors = Geometry {
            page_bytes: SECTOR as u32,
            block_pages: 1,
            block_count: bytes / SECTOR,
            erase_before_program: false,
            grows: false,
        };
        let zeros = std::vec![0; PROBED_BYTES.min(bytes / SECTOR * SECTOR) as usize];
        let last = (bytes / SECTOR * SECTOR - zeros.len() as u64) / SECTOR;
        self.handle.program(&sectors, PageNumber(0), &zeros)?;
        self.handle.program(&sectors, PageNumber(last), &zeros)?;
        for sector in places.iter().map(|place| place / SECTOR).filter(|sector| *sector < sectors.block_count) {
            self.handle.program(&sectors, PageNumber(sector), &zeros[..SECTOR as usize])?;
        }
        self.handle.flush()
    }

    /// The open device, for [`crate::lock`].
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

fn bytes_of(handle: &Handle) -> Result<u64, Error> {
    // A block device's metadata give no length; its end does.
    (&mut handle.file()).seek(SeekFrom::End(0)).map_err(|e| typed(Operation::Open, PageNumber(0), &e))
}

fn shape(handle: &Handle, page_bytes: u32, block_pages: u32) -> Result<Geometry, Error> {
    let block_bytes = u64::from(page_bytes) * u64::from(block_pages);
    let block_count = bytes_of(handle)?.checked_div(block_bytes).unwrap_or(0);
    let geometry = Geometry { page_bytes, block_pages, block_count, erase_before_program: false, grows: false };
    geometry.validate()?;
    Ok(geometry)
}

impl Read for BlockDevice {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        self.handle.read(&self.geometry, page, offset, buffer)
    }
}

impl Device for BlockDevice {
    fn program(&mut self, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.handle.program(&self.geometry, page, data)
    }

    /// Zeros: unlike a file that grows, a device may carry what an earlier life of the same database left there.
    fn erase(&mut self, block: BlockNumber) -> Result<(), Error> {
        let Geometry { page_bytes, block_pages, .. } = self.geometry;
        let zeros = std::vec![0; page_bytes as usize * block_pages as usize];
        self.handle.program(&self.geometry, self.geometry.first_page(block), &zeros)
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.handle.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &[u8] = b"ours";

    /// The system's block devices are not ours to write to, so below the opening an ordinary file stands for one.
    fn stand_in(bytes: &[u8]) -> (tempfile::TempDir, Result<BlockDevice, Error>) {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("device");
        std::fs::write(&path, bytes).expect("a file");
        let handle = Handle::open(&path, Purpose::Write).expect("opens");
        (directory, BlockDevice::from_handle(handle, 512, 8))
    }

    #[test]
    fn a_file_is_no_block_device() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let wrong = Some(Error::WrongSort { wanted: "a block device" });
        assert_eq!(BlockDevice::open(file.path(), 512, 8).err(), wrong);
        assert_eq!(BlockDevice::open_alone(file.path(), 512, 8).err(), wrong);
        assert_eq!(BlockDevice::open_read_only("/dev/null", 512, 8).err(), wrong);
        assert!(matches!(BlockDevice::open("/no/such", 512, 8).err(), Some(Error::Device { code: 2, .. })));
    }

    #[test]
    fn the_size_is_fixed_and_whole_blocks() -> Result<(), Error> {
        let (_directory, device) = stand_in(&[0; 3 * 4096 + 1000]);
        let mut device = device?;
        assert_eq!(device.geometry().block_count, 3);
        device.program(PageNumber(23), &[5; 512])?;
        device.program(PageNumber(15), &[6; 512])?;
        device.flush()?;
        device.erase(BlockNumber(2))?;
        let mut pages = [1; 1024];
        device.read(PageNumber(15), 0, &mut pages[..512])?;
        device.read(PageNumber(23), 0, &mut pages[512..])?;
        assert!(pages[..512] == [6; 512] && pages[512..] == [0; 512], "the block is zeros and its neighbour is not");
        let past = Error::OutOfRange { page: PageNumber(24), page_count: 24 };
        assert_eq!(device.program(PageNumber(24), &[5; 512]), Err(past));
        assert_eq!(device.read(PageNumber(24), 0, &mut [0]), Err(past));
        assert_eq!(device.erase(BlockNumber(3)), Err(past));
        assert!(matches!(stand_in(&[0; 100]).1.err(), Some(Error::Shape { .. })));
        Ok(())
    }

    #[test]
    fn what_is_occupied_is_refused_until_it_may_go() -> Result<(), Error> {
        let blank = std::vec![0; 3 << 20];
        const PLACES: &[u64] = &[0, 1 << 18, 1 << 30];
        let own = (OWN, PLACES);
        assert_eq!(stand_in(&blank).1?.take(own, Occupied::Refuse), Ok(()));
        let mut partitioned = blank.clone();
        let second_table = partitioned.len() - 512;
        partitioned[second_table..second_table + 8].copy_from_slice(b"EFI PART");
        let (mut ours, mut second_copy) = (blank.clone(), blank);
        ours[..4].copy_from_slice(OWN);
        second_copy[1 << 18..][..4].copy_from_slice(OWN);
        let database = "a Counterfoil database";
        for (image, by) in [(partitioned, "a partition table (GPT)"), (ours, database), (second_copy, database)] {
            let (_directory, device) = stand_in(&image);
            let mut device = device?;
            assert_eq!(device.take(own, Occupied::Refuse), Err(Error::Occupied { by }));
            device.take(own, Occupied::DangerErase)?;
            assert_eq!(device.take(own, Occupied::Refuse), Ok(()));
        }
        Ok(())
    }
}
