//! Looking for superblocks: wherever a page may begin, each bears witness to where its store begins.

use counterfoil_flash::{Error as FlashError, FileDevice, Geometry, PageNumber, Read};
use counterfoil_record::alone::Superblock;
use counterfoil_vault::{Vault, VolumeKey};

use super::medium::{GRAIN_BYTES, PartInFile};
use crate::error::{Error, Kind, Result};

/// Bytes that are looked through at once.
const CHUNK_BYTES: usize = 1 << 20;
/// Claims that are tried: what an image is filled with from outside costs no more than these.
const CLAIMS_MAX: u32 = 4096;
/// Stores that are told apart.
const SITES_MAX: usize = 16;

/// Where a store stands in a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Site {
    /// The byte at which its first block begins; less than none where the image lacks its beginning.
    pub(super) start: i128,
    /// What its superblocks say, all but which of them it is.
    pub(super) superblock: Superblock,
}

/// What the superblocks of a file say.
pub(super) struct Found {
    /// Stores of which the key opened a superblock.
    pub(super) sites: Vec<Site>,
    /// Superblocks that it opened, and others.
    pub(super) good: u32,
    pub(super) bad: u32,
}

impl Site {
    /// Where the store is whose superblock stands at this byte.
    fn of(superblock: Superblock, at: u64) -> Self {
        let before = i128::from(superblock.block) * i128::from(block_bytes(&superblock.geometry));
        Site { start: i128::from(at) - before, superblock: Superblock { block: 0, ..superblock } }
    }

    /// Refuses a store that does not lie in a file of this length.
    pub(super) fn require_whole(&self, length: u64) -> Result<()> {
        let bytes = i128::from(self.superblock.shape.block_count) * i128::from(block_bytes(&self.superblock.geometry));
        if self.start >= 0 && self.start + bytes <= i128::from(length) {
            return Ok(());
        }
        let text = format!(
            "the image is not whole: its store has {bytes} bytes from byte {} on, and the file has {length}",
            self.start
        );
        Err(Error::new(Kind::Corrupt, text).advise("read it out again"))
    }

    /// The part that the store is on.
    pub(super) fn part(&self, file: FileDevice) -> PartInFile {
        let shape = self.superblock.shape;
        let block_count = shape.first_block.saturating_add(u64::from(shape.block_count));
        let geometry = Geometry { block_count, ..self.superblock.geometry };
        let start = u64::try_from(self.start).unwrap_or(u64::MAX);
        PartInFile { file, geometry, first_block: shape.first_block, start }
    }
}

fn block_bytes(geometry: &Geometry) -> u64 {
    u64::from(geometry.page_bytes) * u64::from(geometry.block_pages)
}

/// Whether anything in a file claims to be a superblock.
pub(super) fn is_claimed(file: &FileDevice) -> Result<bool> {
    let mut is_claimed = false;
    each_claim(file, |_, _| {
        is_claimed = true;
        Ok(false)
    })?;
    Ok(is_claimed)
}

/// The stores of which the key opens a superblock.
pub(super) fn find(file: &FileDevice, key: &VolumeKey) -> Result<Found> {
    let mut found = Found { sites: Vec::new(), good: 0, bad: 0 };
    each_claim(file, |at, superblock| {
        if opens(file, key, at, &superblock)? {
            found.good += 1;
            let site = Site::of(superblock, at);
            if found.sites.len() < SITES_MAX && !found.sites.contains(&site) {
                found.sites.push(site);
            }
        } else {
            found.bad += 1;
        }
        Ok(found.good + found.bad < CLAIMS_MAX)
    })?;
    Ok(found)
}

/// Whether the superblock at this byte of the file is what the key sealed.
fn opens(file: &FileDevice, key: &VolumeKey, at: u64, superblock: &Superblock) -> Result<bool> {
    let page_bytes = superblock.geometry.page_bytes as usize;
    if file.length()? < at + page_bytes as u64 {
        return Ok(false);
    }
    let mut page = vec![0; page_bytes];
    file.read(PageNumber(at / GRAIN_BYTES), 0, &mut page)?;
    let vault = Vault::new(key, superblock.database, superblock.suite);
    let page = OnePage { bytes: page, geometry: superblock.geometry };
    Ok(superblock.check(&page, PageNumber(0), &vault, &mut vec![0; page_bytes]).is_ok())
}

/// Hands over every superblock that is claimed, with the byte at which it stands, until it is told to stop.
fn each_claim(file: &FileDevice, mut each: impl FnMut(u64, Superblock) -> Result<bool>) -> Result<()> {
    let length = file.length()?;
    let mut chunk = vec![0; CHUNK_BYTES];
    let mut begin = 0;
    while begin < length {
        let bytes = usize::try_from(length - begin).map_or(CHUNK_BYTES, |left| left.min(CHUNK_BYTES));
        file.read(PageNumber(begin / GRAIN_BYTES), 0, &mut chunk[..bytes])?;
        for (number, grain) in chunk[..bytes].chunks(GRAIN_BYTES as usize).enumerate() {
            if let Some(superblock) = Superblock::decode(grain)
                && !each(begin + number as u64 * GRAIN_BYTES, superblock)?
            {
                return Ok(());
            }
        }
        begin += CHUNK_BYTES as u64;
    }
    Ok(())
}

/// The page of a superblock by itself: where its store begins and ends is not believed yet.
struct OnePage {
    bytes: Vec<u8>,
    geometry: Geometry,
}

impl Read for OnePage {
    fn geometry(&self) -> Geometry {
        self.geometry
    }

    fn read(&self, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), FlashError> {
        let begin = offset as usize;
        let bytes = self.bytes.get(begin..begin.saturating_add(buffer.len())).filter(|_| page.0 == 0);
        buffer.copy_from_slice(bytes.ok_or(FlashError::OutOfRange { page, page_count: 1 })?);
        Ok(())
    }
}
