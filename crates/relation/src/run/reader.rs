//! Reading runs: by key, and merged in order.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::Run;
use super::block::{BLOCK_BYTES, BlockReader};
use crate::Error;
use crate::bloom;

/// Bytes of upper levels and filter that are worth keeping in memory for one run.
pub(crate) const HEAD_BYTES_MAX: u64 = 16 << 20;

/// The upper levels and the filter of a run: in memory if they are not too large, else read piece by piece.
#[derive(Clone)]
pub(crate) struct Head {
    kept: Option<Arc<Vec<u8>>>,
}

impl Head {
    /// Reads them.
    pub(crate) fn read(view: &dyn View, run: &Run) -> Result<Self, Error> {
        let start = run.head_offset();
        let bytes = run.bytes().saturating_sub(start);
        let there = view.length(run.container()).map_err(Error::log(""))?;
        if run.bytes() != there {
            return Err(Error::corrupt("", "length of an index run"));
        }
        if bytes > HEAD_BYTES_MAX {
            return Ok(Head { kept: None });
        }
        let mut kept = vec![0; bytes as usize];
        view.read(run.container(), start, &mut kept).map_err(Error::log(""))?;
        Ok(Head { kept: Some(Arc::new(kept)) })
    }

    /// A head that keeps nothing.
    #[cfg(test)]
    pub(crate) fn bare() -> Self {
        Head { kept: None }
    }

    /// Bytes it keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.len())
    }

    fn piece(&self, view: &dyn View, run: &Run, offset: u64, bytes: usize) -> Result<Vec<u8>, Error> {
        let Some(kept) = &self.kept else {
            let mut piece = vec![0; bytes];
            view.read(run.container(), offset, &mut piece).map_err(Error::log(""))?;
            return Ok(piece);
        };
        let start = offset.checked_sub(run.head_offset()).and_then(|start| usize::try_from(start).ok());
        let piece = start.and_then(|start| kept.get(start..start.checked_add(bytes)?));
        piece.map(<[u8]>::to_vec).ok_or_else(|| Error::corrupt("", "shape of an index run"))
    }

    /// Whether the run may hold a key (as entries store it).
    pub(crate) fn may_hold(&self, view: &dyn View, run: &Run, key: &[u8]) -> Result<bool, Error> {
        let hash = bloom::hash(key);
        let line = u64::from(bloom::line(hash, run.lines));
        let offset = run.filter_offset() + line * bloom::LINE_BYTES as u64;
        if let Some(kept) = &self.kept {
            let start = (offset - run.head_offset()) as usize;
            return Ok(kept.get(start..start + bloom::LINE_BYTES).is_none_or(|line| bloom::may_hold(line, hash)));
        }
        let line = self.piece(view, run, offset, bloom::LINE_BYTES)?;
        Ok(bloom::may_hold(&line, hash))
    }

    /// A cursor that stands before the first entry that is not less than `low`.
    pub(crate) fn seek(&self, view: &dyn View, run: &Run, low: &[u8]) -> Result<Cursor, Error> {
        let mut block = 0;
        for level in (1..run.levels.len()).rev() {
            block = self.child(view, run, level, block, low)?;
        }
        let mut cursor = Cursor::at(run, block, 1);
        cursor.skip_to(view, low)?;
        Ok(cursor)
    }

    /// The child of an upper block in which `low` would lie: the last that begins at or before it.
    fn child(&self, view: &dyn View, run: &Run, level: usize, block: u32, low: &[u8]) -> Result<u32, Error> {
        let bytes = self.piece(view, run, run.block_offset(level, block), BLOCK_BYTES)?;
        let mut entries = BlockReader::new(bytes, level as u8)?;
        let mut before = 0_u64;
        while let Some(entry) = entries.next()? {
            if entry > low {
                break;
            }
            before += 1;
        }
        let child = entries.first_child().checked_add(before.saturating_sub(1));
        child
            .and_then(|child| u32::try_from(child).ok())
            .filter(|child| run.levels.get(level - 1).is_some_and(|blocks| child < blocks))
            .ok_or_else(|| Error::corrupt("", "shape of an index run"))
    }
}

/// Walks the entries of a run in order.
pub(crate) struct Cursor {
    run: Run,
    /// The next block to read.
    block: u32,
    /// Blocks to read at a time.
    ahead: u32,
    /// Bytes of blocks that were read and not begun, the nearest last.
    waiting: Vec<Vec<u8>>,
    entries: BlockReader,
    /// The entry the cursor stands on.
    current: Option<Vec<u8>>,
}

impl Cursor {
    /// Before the first entry, reading several blocks at a time.
    pub(crate) fn start(run: &Run) -> Self {
        Cursor::at(run, 0, 32)
    }

    /// Before the first entry, reading block by block, so that one that cannot be read is passed over alone.
    pub(crate) fn careful(run: &Run) -> Self {
        Cursor::at(run, 0, 1)
    }

    /// Before the first entry of a block.
    pub(crate) fn at(run: &Run, block: u32, ahead: u32) -> Self {
        Cursor { run: run.clone(), block, ahead, waiting: Vec::new(), entries: BlockReader::empty(), current: None }
    }

    /// Moves on so that the next entry is not less than `low`.
    fn skip_to(&mut self, view: &dyn View, low: &[u8]) -> Result<(), Error> {
        while self.advance(view)? {
            if self.current.as_deref().is_some_and(|entry| entry >= low) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The entry the cursor stands on.
    pub(crate) fn current(&self) -> Option<&[u8]> {
        self.current.as_deref()
    }

    /// Steps to the next entry; whether there is one.
    pub(crate) fn advance(&mut self, view: &dyn View) -> Result<bool, Error> {
        loop {
            if let Some(entry) = self.entries.next()? {
                let current = self.current.get_or_insert_default();
                current.clear();
                current.extend_from_slice(entry);
                return Ok(true);
            }
            if !self.next_block(view)? {
                self.current = None;
                return Ok(false);
            }
        }
    }

    fn next_block(&mut self, view: &dyn View) -> Result<bool, Error> {
        if self.waiting.is_empty() {
            let count = self.ahead.min(self.run.data_blocks().saturating_sub(self.block));
            if count == 0 {
                return Ok(false);
            }
            let mut bytes = vec![0; count as usize * BLOCK_BYTES];
            let offset = self.run.block_offset(0, self.block);
            self.block += count;
            view.read(self.run.container(), offset, &mut bytes).map_err(Error::log(""))?;
            self.waiting.extend(bytes.chunks(BLOCK_BYTES).rev().map(<[u8]>::to_vec));
        }
        let Some(bytes) = self.waiting.pop() else { return Ok(false) };
        self.entries = BlockReader::new(bytes, 0)?;
        Ok(true)
    }

    /// Goes on after a block that could not be read; whether there is one left.
    pub(crate) fn skip_block(&mut self) -> bool {
        self.entries = BlockReader::empty();
        !self.waiting.is_empty() || self.block < self.run.data_blocks()
    }
}

/// Several runs read as one, in order.
pub(crate) struct Merge {
    cursors: Vec<Cursor>,
}

impl Merge {
    /// Before the first entry of all.
    pub(crate) fn new(view: &dyn View, runs: &[&Run]) -> Result<Self, Error> {
        let mut cursors: Vec<_> = runs.iter().map(|run| Cursor::start(run)).collect();
        cursors.iter_mut().try_for_each(|cursor| cursor.advance(view).map(|_| ()))?;
        Ok(Merge { cursors })
    }

    /// The next entry; the same entry in several runs comes once.
    pub(crate) fn next(&mut self, view: &dyn View) -> Result<Option<Vec<u8>>, Error> {
        let least = self.cursors.iter().filter_map(Cursor::current).min().map(<[u8]>::to_vec);
        let Some(least) = least else { return Ok(None) };
        for cursor in &mut self.cursors {
            if cursor.current() == Some(&least) {
                cursor.advance(view)?;
            }
        }
        Ok(Some(least))
    }
}
