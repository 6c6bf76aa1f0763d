//! Making an image for a device that has none yet.

use counterfoil_flash::Geometry;
use counterfoil_record::alone::{self, Shape, Standalone, Superblock, Surroundings, Word};
use counterfoil_vault::{Counter as _, DatabaseId, SystemEntropy, Tag, Vault};

use super::counting::{Remembering, file_counter};
use super::medium::GRAIN;
use super::memory::Buffers;
use super::search::Site;
use super::{DeviceImage, path_of};
use crate::convert::no_entropy;
use crate::create::{Temporary, refuse_existing};
use crate::error::{Error, Kind, Result};
use crate::options::Options;

/// Bytes of a record with its entry, for which a page has room for as many entries as it has for these: as the face for C
/// reckons (`crates/c-api`), whose stores and ours are cut up alike.
const RECORD_BYTES: u32 = 30;
/// Entries of a page at most.
const PAGE_ENTRIES_MAX: u32 = 32;

/// How a device's flash, or the part of it that is the store's, is cut up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceShape {
    /// Bytes in a page: a power of two from 256 to 65536.
    pub page_bytes: u32,
    /// Pages in a block: 2 to 1024.
    pub block_pages: u32,
    /// Blocks: 4 at least.
    pub block_count: u32,
    /// How many of them are the index ring: 2 at least; without it, a fifth.
    pub index_blocks: Option<u32>,
    /// Ids that belong to names.
    pub names: u32,
    /// Whether the device has a generator: then every opening has random bytes of its own in its keys.
    pub is_salted: bool,
}

impl DeviceShape {
    fn geometry(&self) -> Geometry {
        Geometry {
            page_bytes: self.page_bytes,
            block_pages: self.block_pages,
            block_count: u64::from(self.block_count),
            erase_before_program: true,
            grows: false,
        }
    }

    /// The shape of the store, and how wide its words are: 2 bytes where all entries can be numbered in them.
    fn shape(&self) -> (Shape, usize) {
        let index_blocks = self.index_blocks.unwrap_or((self.block_count / 5).max(2));
        let data_blocks = self.block_count.saturating_sub(index_blocks);
        let data_pages = u64::from(data_blocks) * u64::from(self.block_pages);
        let entries = (self.page_bytes / RECORD_BYTES).min(PAGE_ENTRIES_MAX);
        let narrow = (u64::from(u16::MAX - 1) / data_pages.max(1)) as u32;
        let (page_entries, word_bytes) = if narrow > 0 { (entries.min(narrow), 2) } else { (entries, 4) };
        let shape = Shape {
            first_block: 0,
            block_count: self.block_count,
            index_blocks,
            page_entries,
            names: self.names,
            is_salted: self.is_salted,
        };
        (shape, word_bytes)
    }
}

impl DeviceImage {
    /// Makes the image of an empty store: what a device finds that was made with the same key, identity, cipher and shape
    /// and whose counter stands at the number that comes with it. With a file counter the host goes on with it.
    ///
    /// # Errors
    /// [`Kind::Misuse`] for shapes that cannot be, ciphers that need a counter or a generator, and names that are taken;
    /// [`Kind::Device`], [`Kind::Full`].
    pub fn create(options: Options, shape: &DeviceShape) -> Result<(Self, u64)> {
        let place = options.place.clone();
        Self::create_file(options, shape).map_err(|error| error.at(&place))
    }

    fn create_file(options: Options, asked: &DeviceShape) -> Result<(Self, u64)> {
        let path = path_of(&options)?.to_owned();
        let key = options.key.as_ref().ok_or_else(|| Error::new(Kind::Misuse, "no key was given"))?.volume_key()?;
        refuse_existing(&path)?;
        let (geometry, (shape, word_bytes)) = (asked.geometry(), asked.shape());
        require_possible(&geometry, &shape, word_bytes)?;
        let database = DatabaseId::generate(&mut SystemEntropy).map_err(|_| no_entropy())?;
        let suite = options.cipher;
        let superblock = Superblock { geometry, shape, suite, database, word_bytes, block: 0 };
        let image = DeviceImage {
            vault: Vault::new(&key, database, suite),
            site: Site { start: 0, superblock },
            superblocks: (0, 0),
            options,
        };
        let temporary = Temporary::create(&path, GRAIN)?;
        let _lock = temporary.lock()?;
        let mut counter = file_counter(&image.options, &image.vault)?;
        if let Some(counter) = &mut counter {
            counter.adopt(0, &Tag::default())?;
        }
        let counted = image.format(&temporary, counter.map(Remembering::new))?;
        temporary.publish(&path)?;
        Ok((image, counted))
    }

    fn format(&self, temporary: &Temporary, counter: Option<Remembering>) -> Result<u64> {
        match self.site.superblock.word_bytes {
            2 => self.format_with::<u16>(temporary, counter),
            _ => self.format_with::<u32>(temporary, counter),
        }
    }

    fn format_with<W: Word>(&self, temporary: &Temporary, mut counter: Option<Remembering>) -> Result<u64> {
        let (mut part, shape) = (self.site.part(temporary.device()), self.site.superblock.shape);
        let made = Buffers::<W>::to_make(&part.geometry, &shape).and_then(|mut buffers| {
            let around = Surroundings {
                device: &mut part,
                vault: &self.vault,
                counter: counter.as_mut().map(|counter| counter as &mut dyn counterfoil_vault::Counter),
                entropy: Some(&mut SystemEntropy),
            };
            Standalone::format(around, shape, buffers.memory()).map(|store| store.counted())
        });
        made.map_err(|error| self.explain(error, counter.and_then(|counter| counter.failure())))
    }
}

/// Refuses what no store can be, before anything is made.
fn require_possible(geometry: &Geometry, shape: &Shape, word_bytes: usize) -> Result<()> {
    let sizes = match word_bytes {
        2 => shape.sizes::<u16>(geometry),
        _ => shape.sizes::<u32>(geometry),
    };
    let sizes = geometry.validate().map_err(|_| alone::Error::Geometry).and(sizes);
    let refused = |what: &'static str| Error::new(Kind::Misuse, what);
    match sizes {
        Err(_) => Err(refused("no store is cut up like this").advise(
            "use pages of 256 to 65536 bytes (a power of two), blocks of 2 to 1024 pages, at least 4 blocks, and at least \
             2 of them for the index",
        )),
        Ok(sizes) if u64::from(shape.names) > u64::from(sizes.leaf_ids) * u64::from(sizes.leaves_max) => {
            Err(refused("there are more names than the index has room for").advise("give it more blocks"))
        }
        Ok(_) => Ok(()),
    }
}
