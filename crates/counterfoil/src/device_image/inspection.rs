//! What an image looks like from inside, and whether all of it is whole.

use counterfoil_record::RecordId;
use counterfoil_record::alone;

use super::{DeviceImage, entry};
use crate::error::{Error, Result};

/// Bytes of the records that [`ImageInspection::space_left`] counts in.
const RECORD_BYTES: usize = 24;

/// An image from inside.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageInspection {
    /// The identity of its store, in hex.
    pub id: String,
    /// The page cipher.
    pub cipher: &'static str,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages in a block.
    pub block_pages: u32,
    /// Blocks of the store.
    pub block_count: u32,
    /// Those of them that are the index ring.
    pub index_blocks: u32,
    /// Entries of a data page at most.
    pub page_entries: u32,
    /// Bytes of a word.
    pub word_bytes: usize,
    /// Whether every opening has random bytes of its own in its keys.
    pub is_salted: bool,
    /// Ids that belong to names.
    pub names: u32,
    /// The byte of the file at which the store begins.
    pub start: u64,
    /// Superblocks that the key opened, and others.
    pub superblocks: (u32, u32),
    /// What the newest commit takes its counter to.
    pub version: u64,
    /// What the counter here stands at, if there is one.
    pub counter_value: Option<u64>,
    /// Records, under names and under numbers.
    pub records: (usize, usize),
    /// Bytes of their values.
    pub record_bytes: u64,
    /// How many more records of 24 bytes there is room for at least.
    pub space_left: u32,
    /// How often the most used block was erased since the store was made, at most.
    pub erases: u32,
    /// Images behind their counter that were gone on from.
    pub rollbacks: u16,
}

/// What a verification of an image found.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ImageVerification {
    /// Records that were read.
    pub records: usize,
    /// Superblocks that the key opened, and others.
    pub superblocks: (u32, u32),
    /// Whether a counter here says that this is the newest image: `compared`, `not checked`.
    pub freshness: &'static str,
    /// What is wrong; empty when all is well.
    pub problems: Vec<Error>,
}

impl DeviceImage {
    /// What it looks like from inside, as of the newest commit.
    ///
    /// # Errors
    /// Those of [`DeviceImage::get`].
    pub fn inspect(&self) -> Result<ImageInspection> {
        let counter_value = self.counter_value();
        let superblock = self.site.superblock;
        let (geometry, shape) = (superblock.geometry, superblock.shape);
        let inspected = self.read(&mut |chip| {
            let mut inspection = ImageInspection {
                id: superblock.database.to_string(),
                cipher: superblock.suite.name(),
                page_bytes: geometry.page_bytes,
                block_pages: geometry.block_pages,
                block_count: shape.block_count,
                index_blocks: shape.index_blocks,
                page_entries: shape.page_entries,
                word_bytes: superblock.word_bytes,
                is_salted: shape.is_salted,
                names: shape.names,
                start: u64::try_from(self.site.start).unwrap_or_default(),
                superblocks: self.superblocks,
                version: chip.counted(),
                counter_value,
                records: (0, 0),
                record_bytes: 0,
                space_left: chip.space_left(RECORD_BYTES.min(chip.record_bytes_max()))?,
                erases: chip.erases(),
                rollbacks: chip.rollbacks(),
            };
            let mut page = vec![0; chip.record_bytes_max()];
            for id in 0..chip.ids_max() {
                let Some((_, bytes)) = entry(chip, id, &mut page)? else { continue };
                let is_named = id < chip.names();
                inspection.records.0 += usize::from(is_named);
                inspection.records.1 += usize::from(!is_named);
                inspection.record_bytes += bytes as u64;
            }
            Ok(inspection)
        });
        inspected.map_err(|error| error.at(&self.options.place))
    }

    fn counter_value(&self) -> Option<u64> {
        let counter = super::counting::file_counter(&self.options, &self.vault);
        counter.ok().flatten().and_then(|mut counter| counter.record().ok()).map(|record| record.value)
    }

    /// Opens every page that the newest commit needs, and reads every record. What is wrong with a record is in the answer;
    /// the check goes on past it.
    ///
    /// # Errors
    /// What kept the check from being made, and what speaks against all of the image.
    pub fn verify(&self) -> Result<ImageVerification> {
        let mut verification = ImageVerification {
            records: 0,
            superblocks: self.superblocks,
            freshness: if self.counter_value().is_some() { "compared" } else { "not checked" },
            problems: Vec::new(),
        };
        let problems = self.read(&mut |chip| {
            let mut problems = Vec::new();
            verification.records = 0;
            let mut page = vec![0; chip.record_bytes_max()];
            for id in 0..chip.ids_max() {
                match chip.read(RecordId(id), &mut page) {
                    Err(alone::Error::NoRecord) => {}
                    Err(error) => problems.push((id, error)),
                    // A mark of a name that was deleted is no record.
                    Ok(0) if id < chip.names() => {}
                    Ok(_) => verification.records += 1,
                }
            }
            Ok(problems)
        });
        let problems = problems.map_err(|error| error.at(&self.options.place))?;
        let problem = |(id, error)| self.explain(error, None).at(format!("record #{id}"));
        verification.problems = problems.into_iter().map(problem).collect();
        Ok(verification)
    }
}
