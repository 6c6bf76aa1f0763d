//! Reading runs: by key, and merged in order.

use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use counterfoil_log::View;

use super::Run;
use super::block::{Block, Walk};
use crate::Error;
use crate::bloom;

/// The upper levels and the filter of a run: in memory, or read piece by piece.
#[derive(Clone)]
pub(crate) struct Head {
    kept: Option<Arc<Vec<u8>>>,
}

impl Head {
    /// Reads them.
    pub(crate) fn read(view: &dyn View, run: &Run) -> Result<Self, Error> {
        let (start, bytes) = (run.head_offset(), run.head_bytes());
        run.check_length(view)?;
        let mut kept = vec![0; bytes as usize];
        view.read(run.container(), start, &mut kept).map_err(Error::log(""))?;
        Ok(Head { kept: Some(Arc::new(kept)) })
    }

    /// A head that keeps nothing.
    pub(crate) fn bare() -> Self {
        Head { kept: None }
    }

    /// Whether it is in memory.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept.is_some()
    }

    /// Bytes it keeps in memory.
    pub(crate) fn bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |kept| kept.len())
    }

    /// A piece of what it keeps; `None` if it keeps nothing.
    fn kept(&self, run: &Run, offset: u64, bytes: usize) -> Result<Option<&[u8]>, Error> {
        let Some(kept) = &self.kept else { return Ok(None) };
        let start = offset.checked_sub(run.head_offset()).and_then(|start| usize::try_from(start).ok());
        let piece = start.and_then(|start| kept.get(start..start.checked_add(bytes)?));
        piece.map(Some).ok_or_else(|| Error::corrupt("", "shape of an index run"))
    }

    /// Whether the run may hold a key (as entries store it).
    pub(crate) fn may_hold(&self, view: &dyn View, run: &Run, key: &[u8]) -> Result<bool, Error> {
        if run.lines == 0 {
            return Ok(true);
        }
        let hash = bloom::hash(key);
        let line = u64::from(bloom::line(hash, run.lines));
        let offset = run.filter_offset() + line * bloom::LINE_BYTES as u64;
        if let Some(line) = self.kept(run, offset, bloom::LINE_BYTES)? {
            return Ok(bloom::may_hold(line, hash));
        }
        let mut line = [0; bloom::LINE_BYTES];
        view.read(run.container(), offset, &mut line).map_err(Error::log(""))?;
        Ok(bloom::may_hold(&line, hash))
    }

    /// A cursor on the first entry that is not less than `low`.
    pub(crate) fn seek(&self, view: &dyn View, run: &Run, low: &[u8]) -> Result<Cursor, Error> {
        let mut cursor = Cursor::at(run, self.data_block(view, run, low)?);
        cursor.seek(view, low)?;
        Ok(cursor)
    }

    /// A cursor on the first entry of the block that lies so many before the one in which `high` would lie, and whether it is the
    /// first of all.
    pub(crate) fn seek_before(
        &self,
        view: &dyn View,
        run: &Run,
        high: &[u8],
        blocks: u32,
    ) -> Result<(Cursor, bool), Error> {
        let block = self.data_block(view, run, high)?.saturating_sub(blocks);
        let mut cursor = Cursor::at(run, block);
        cursor.advance(view)?;
        Ok((cursor, block == 0))
    }

    /// The data block in which an entry would lie.
    pub(super) fn data_block(&self, view: &dyn View, run: &Run, entry: &[u8]) -> Result<u32, Error> {
        (1..run.levels.len()).rev().try_fold(0, |block, level| self.child(view, run, level, block, entry))
    }

    /// The child of an upper block in which `low` would lie: the last that begins at or before it.
    fn child(&self, view: &dyn View, run: &Run, level: usize, block: u32, low: &[u8]) -> Result<u32, Error> {
        let offset = run.block_offset(level, block);
        match self.kept(run, offset, run.block_bytes())? {
            Some(bytes) => child_in(run, Block::new(bytes, level as u8)?, level, low),
            None => {
                let mut bytes = vec![0; run.block_bytes()];
                view.read(run.container(), offset, &mut bytes).map_err(Error::log(""))?;
                child_in(run, Block::new(&bytes, level as u8)?, level, low)
            }
        }
    }
}

fn child_in(run: &Run, block: Block<'_>, level: usize, low: &[u8]) -> Result<u32, Error> {
    let (walk, found) = block.seek(low)?;
    // Entries up to and with the one that begins at or before it; the first block if none does.
    let begun = if found && walk.entry != low { walk.passed - 1 } else { walk.passed };
    let before = begun.saturating_sub(1);
    let child = block.first_child().checked_add(before as u64);
    child
        .and_then(|child| u32::try_from(child).ok())
        .filter(|child| run.levels.get(level - 1).is_some_and(|blocks| child < blocks))
        .ok_or_else(|| Error::corrupt("", "shape of an index run"))
}

/// Walks the entries of a run in order.
pub(crate) struct Cursor {
    run: Run,
    /// The next block to read.
    next: u32,
    /// The block in work, once it was read.
    bytes: Vec<u8>,
    /// How far it is walked.
    walk: Walk,
    /// Whether the walk stands on an entry.
    stands: bool,
}

impl Cursor {
    /// Before the first entry, reading block by block, so that one that cannot be read is passed over alone.
    pub(crate) fn careful(run: &Run) -> Self {
        Cursor::at(run, 0)
    }

    /// Before the first entry of a block.
    fn at(run: &Run, block: u32) -> Self {
        let run = Run { first: Vec::new(), last: Vec::new(), ..run.clone() };
        Cursor { run, next: block, bytes: Vec::new(), walk: Walk::default(), stands: false }
    }

    /// Moves from before a block to its first entry that is not less than `low`, or the first of the next block.
    fn seek(&mut self, view: &dyn View, low: &[u8]) -> Result<(), Error> {
        if self.next_block(view)? {
            (self.walk, self.stands) = self.block()?.seek(low)?;
            if !self.stands {
                self.advance(view)?;
            }
        }
        Ok(())
    }

    /// Goes on to the first entry that is not less than `low`, if the block in work has it. `ascends`: every entry that was passed is
    /// less.
    pub(crate) fn goes_on_to(&mut self, low: &[u8], ascends: bool) -> Result<bool, Error> {
        let Some(entry) = self.current() else { return Ok(false) };
        if entry >= low {
            return Ok(ascends);
        }
        let (walk, is_there) = self.block()?.seek(low)?;
        if is_there {
            self.walk = walk;
        }
        Ok(is_there)
    }

    /// The entry the cursor stands on.
    pub(crate) fn current(&self) -> Option<&[u8]> {
        self.stands.then_some(self.walk.entry.as_slice())
    }

    /// The block in work.
    fn block(&self) -> Result<Block<'_>, Error> {
        Block::new(&self.bytes, 0)
    }

    /// Steps to the next entry; whether there is one.
    pub(crate) fn advance(&mut self, view: &dyn View) -> Result<bool, Error> {
        loop {
            self.stands = false;
            if !self.bytes.is_empty() {
                self.stands = Block::new(&self.bytes, 0)?.step(&mut self.walk)?;
            }
            if self.stands || !self.next_block(view)? {
                return Ok(self.stands);
            }
        }
    }

    fn next_block(&mut self, view: &dyn View) -> Result<bool, Error> {
        self.stands = false;
        self.walk = Walk::default();
        self.bytes.clear();
        if self.next >= self.run.data_blocks() {
            return Ok(false);
        }
        let offset = self.run.block_offset(0, self.next);
        self.next += 1;
        self.bytes.resize(self.run.block_bytes(), 0);
        let read = view.read(self.run.container(), offset, &mut self.bytes).map_err(Error::log(""));
        if read.is_err() {
            self.bytes.clear();
        }
        read.map(|()| true)
    }

    /// Goes on after a block that could not be read; whether there may be one left.
    pub(crate) fn skip_block(&mut self) -> bool {
        self.bytes.clear();
        self.next < self.run.data_blocks()
    }
}
