//! Writing a run: its data as it comes, then its upper levels, then its filter.

use alloc::vec::Vec;
use core::mem;

use counterfoil_log::{ContainerId, GroupId, Sealing};

use super::Run;
use super::block::{Block, BlockWriter, Blocks, Walk};
use crate::bloom::{Bloom, LINE_BYTES};
use crate::key::split_entry;
use crate::{Error, Storage, few_or_many};

/// Bytes handed to the log at a time; where memory is little, a block.
const BUFFER_BYTES: usize = few_or_many(0, 256 << 10);

/// Entries that mostly find room in the bytes that a block has at first where memory is little.
const FEW_ENTRIES: u64 = 64;

/// Where memory is little a run of one block has no filter: its pages are whole then, and nothing of it waits in memory for the rest
/// of one. To read a line of it would cost as much as to read the block.
const NO_FILTER_OF_ONE_BLOCK: bool = cfg!(feature = "small");

/// And what is behind the filter of others is filled up to a whole page, of which nothing waits in memory either.
const WHOLE_PAGES: bool = cfg!(feature = "small");

/// A run being written. A power cut or a rollback on the way leaves nothing: no commit names the container yet.
pub(crate) struct RunWriter {
    /// The group in which it lies, if that is there already, and its container, when something was written.
    group: Option<GroupId>,
    container: Option<ContainerId>,
    sealing: Sealing,
    tier: u8,
    renewals: u64,
    block_bytes: usize,
    buffer: Vec<u8>,
    /// Bytes of it that are written together.
    buffer_bytes: usize,
    /// The data block in work.
    block: BlockWriter,
    blocks: u32,
    /// The first entry of each data block, the one in work included.
    fences: Vec<Vec<u8>>,
    /// Where memory is little none before there is a second block.
    bloom: Option<Bloom>,
    entries_max: u64,
    entries: u64,
    /// The last entry of the data blocks before it.
    last: Vec<u8>,
}

impl RunWriter {
    /// Begins a run of at most `entries_max` entries, which are those of the rows after so many renewals. It lies in the group of others
    /// that die when it does, or in one of its own.
    pub(crate) fn new(blocks: Blocks, group: Option<GroupId>, (tier, renewals): (u8, u64), entries_max: u64) -> Self {
        let block_bytes = blocks.bytes;
        let block = BlockWriter::new(0, 0, block_bytes);
        RunWriter {
            group,
            container: None,
            sealing: blocks.sealing,
            tier,
            renewals,
            block_bytes,
            buffer: Vec::new(),
            buffer_bytes: BUFFER_BYTES,
            block: if entries_max > FEW_ENTRIES { block.with_all_room() } else { block },
            blocks: 0,
            fences: Vec::new(),
            bloom: (!NO_FILTER_OF_ONE_BLOCK).then(|| Bloom::for_keys(entries_max)),
            entries_max,
            entries: 0,
            last: Vec::new(),
        }
    }

    /// The same, of which no more than this waits in memory to be written together.
    pub(crate) fn buffering(mut self, bytes: usize) -> Self {
        self.buffer_bytes = self.buffer_bytes.min(bytes);
        self
    }

    /// Adds an entry that comes after all before it.
    pub(crate) fn push(&mut self, writer: &mut dyn Storage, entry: &[u8]) -> Result<(), Error> {
        let mut pushed = self.block.push(entry);
        if pushed.is_none() {
            self.close_block();
            self.begin_filter()?;
            self.flush(writer, self.buffer_bytes)?;
            assert!(self.last.as_slice() < entry, "entries come in order");
            pushed = self.block.push(entry);
        }
        let Some(is_another_key) = pushed else {
            return Err(Error::corrupt("", "key that is longer than its columns allow"));
        };
        if self.fences.len() == self.blocks as usize {
            self.fences.push(entry.to_vec());
        }
        if let Some((key, _)) = split_entry(entry).filter(|_| is_another_key) {
            self.bloom.iter_mut().for_each(|bloom| bloom.add(key));
        }
        self.entries += 1;
        Ok(())
    }

    /// Writes what is left. A run without entries is none.
    pub(crate) fn finish(mut self, writer: &mut dyn Storage) -> Result<Option<Run>, Error> {
        if self.entries == 0 {
            return Ok(None);
        }
        let is_only = self.blocks == 0;
        if is_only {
            self.block_bytes = self.block.shorten(writer.page_bytes());
        }
        self.close_block();
        let mut levels = Vec::from([self.blocks]);
        let mut fences = mem::take(&mut self.fences);
        let first = fences[0].clone();
        // Where memory is little a block that is done is not there beside the next one.
        self.flush(writer, self.buffer_bytes)?;
        while fences.len() > 1 {
            fences = self.write_level(levels.len() as u8, &fences);
            levels.push(fences.len() as u32);
            self.flush(writer, self.buffer_bytes)?;
        }
        let lines = if is_only && NO_FILTER_OF_ONE_BLOCK { 0 } else { self.write_filter() };
        let blocks: u32 = levels.iter().sum();
        self.fill_page(writer, blocks as usize * self.block_bytes + lines as usize * LINE_BYTES);
        self.flush(writer, 0)?;
        let (GroupId(group), ContainerId(container)) = self.place(writer)?;
        let (tier, renewals) = (self.tier, self.renewals);
        let block_bytes = self.block_bytes as u32;
        let entries = self.entries;
        let (follows, last) = (false, self.last);
        Ok(Some(Run { tier, group, container, block_bytes, follows, renewals, entries, levels, lines, first, last }))
    }

    /// Makes a filter, if there is none, of the keys of the block that is done.
    fn begin_filter(&mut self) -> Result<(), Error> {
        if self.bloom.is_some() {
            return Ok(());
        }
        let mut bloom = Bloom::for_keys(self.entries_max);
        let (block, mut walk) = (Block::new(&self.buffer, 0)?, Walk::default());
        while block.step(&mut walk)? {
            split_entry(&walk.entry).into_iter().for_each(|(key, _)| bloom.add(key));
        }
        self.bloom = Some(bloom);
        Ok(())
    }

    fn close_block(&mut self) {
        let block = mem::replace(&mut self.block, BlockWriter::new(0, 0, self.block_bytes));
        self.last = block.last_entry();
        self.take(block.finish());
        self.blocks += 1;
    }

    /// Adds bytes to those that are to be written.
    fn take(&mut self, mut bytes: Vec<u8>) {
        if self.buffer.is_empty() {
            // They are not copied, which would have them in memory twice.
            self.buffer = bytes;
        } else {
            self.buffer.append(&mut bytes);
        }
    }

    /// Writes one level above blocks that begin with `fences`; returns what the new blocks begin with.
    fn write_level(&mut self, level: u8, fences: &[Vec<u8>]) -> Vec<Vec<u8>> {
        let mut firsts = Vec::new();
        let mut block = BlockWriter::new(level, 0, self.block_bytes);
        for (child, fence) in fences.iter().enumerate() {
            if block.push(fence).is_none() {
                let full = mem::replace(&mut block, BlockWriter::new(level, child as u64, self.block_bytes));
                self.take(full.finish());
                assert!(block.push(fence).is_some(), "a block has room for one entry");
                firsts.push(fence.clone());
            } else if child == 0 {
                firsts.push(fence.clone());
            }
        }
        self.take(block.finish());
        firsts
    }

    /// Writes the filter; how many lines it has.
    fn write_filter(&mut self) -> u32 {
        let bloom = self.bloom.take().unwrap_or_else(|| Bloom::for_keys(0)).folded(self.entries);
        let lines = bloom.lines();
        self.take(bloom.into_bytes());
        lines
    }

    /// Puts zeros behind so many bytes that it has, up to a whole page, where these are fewer than a block has: what a reader takes
    /// for as much. On pages of several blocks the rest of some waits in memory all the same.
    fn fill_page(&mut self, writer: &dyn Storage, bytes: usize) {
        let page_bytes = self.sealing.page_payload(writer.page_bytes());
        let behind = bytes.next_multiple_of(page_bytes) - bytes;
        if WHOLE_PAGES && behind < self.block_bytes {
            self.buffer.resize(self.buffer.len() + behind, 0);
        }
    }

    /// Where it lies, from the first time on that it is asked for.
    fn place(&mut self, writer: &mut dyn Storage) -> Result<(GroupId, ContainerId), Error> {
        let group = match self.group {
            Some(group) => group,
            None => writer.create_group().map_err(Error::log(""))?,
        };
        let container = match self.container {
            Some(container) => container,
            None => writer.create_container_sealed(group, self.sealing).map_err(Error::log(""))?,
        };
        (self.group, self.container) = (Some(group), Some(container));
        Ok((group, container))
    }

    /// Hands the buffer to the log if it holds more than `bytes_max`.
    fn flush(&mut self, writer: &mut dyn Storage, bytes_max: usize) -> Result<(), Error> {
        if self.buffer.len() > bytes_max {
            let (_, container) = self.place(writer)?;
            writer.append(container, &self.buffer).map_err(Error::log(""))?;
            match bytes_max {
                0 => self.buffer = Vec::new(),
                _ => self.buffer.clear(),
            }
        }
        Ok(())
    }
}
