//! All entries of a run from some block on, for whoever reads several runs side by side: of each there is no more in memory than a
//! piece that was read and has not been passed.
//!
//! ```text
//! data blocks | head, entry, entry, entry, ... | head, entry, ...
//!                      passed  ^ bytes .......... ^ read so far
//! ```

use alloc::vec::Vec;

use counterfoil_log::View;

use super::Run;
use super::block::{HEAD_BYTES, Walk, count_of};
use crate::Error;

/// Walks the entries of a run in order.
pub(super) struct Stream {
    /// Without what it begins and ends with.
    run: Run,
    /// Bytes that are read at a time.
    piece_bytes: usize,
    /// Where in the data blocks it has been read up to.
    read: u64,
    /// What was read, and where in it the next entry begins.
    bytes: Vec<u8>,
    at: usize,
    /// Bytes that the block in work has from there on, and entries it has in all.
    left: usize,
    count: usize,
    walk: Walk,
    /// Whether the walk stands on an entry.
    stands: bool,
}

impl Stream {
    /// Before the first entry of a data block.
    pub(super) fn at(run: &Run, block: u32, piece_bytes: usize) -> Self {
        let run = Run { first: Vec::new(), last: Vec::new(), ..run.clone() };
        let (read, walk) = (run.block_offset(0, block), Walk::default());
        Stream { run, piece_bytes, read, bytes: Vec::new(), at: 0, left: 0, count: 0, walk, stands: false }
    }

    /// The entry that it stands on.
    pub(super) fn current(&self) -> Option<&[u8]> {
        self.stands.then_some(self.walk.entry.as_slice())
    }

    /// Steps to the next entry; whether there is one.
    pub(super) fn advance(&mut self, view: &dyn View) -> Result<bool, Error> {
        loop {
            if self.walk.passed == self.count {
                self.stands = self.begin_block(view)?;
                if !self.stands {
                    return Ok(false);
                }
            }
            let (there, left) = (self.bytes.len() - self.at, self.left);
            match self.walk.step_in(&self.bytes[self.at..self.at + left.min(there)]) {
                Ok(taken) => {
                    (self.at, self.left, self.stands) = (self.at + taken, left - taken, true);
                    return Ok(true);
                }
                Err(error) if left <= there => return Err(error),
                // It ends in what is not read yet.
                Err(_) => self.read_on(view)?,
            }
        }
    }

    /// Goes on to the block behind the one in work, if there is one.
    fn begin_block(&mut self, view: &dyn View) -> Result<bool, Error> {
        let there = self.bytes.len() - self.at;
        match self.left.checked_sub(there) {
            // The rest of it is not read at all.
            Some(unread) => (self.read, self.at) = (self.read + unread as u64, self.bytes.len()),
            None => self.at += self.left,
        }
        if self.bytes.len() == self.at && self.read >= self.run.head_offset() {
            self.bytes = Vec::new();
            (self.at, self.left) = (0, 0);
            return Ok(false);
        }
        while self.bytes.len() - self.at < HEAD_BYTES {
            self.read_on(view)?;
        }
        let block_bytes = self.run.block_bytes();
        self.count = count_of(&self.bytes[self.at..], block_bytes, 0)?;
        self.at += HEAD_BYTES;
        self.left = block_bytes.saturating_sub(HEAD_BYTES);
        self.walk = Walk::default();
        Ok(true)
    }

    /// Reads a piece more, and lets go of what was passed.
    fn read_on(&mut self, view: &dyn View) -> Result<(), Error> {
        let left = self.run.head_offset().saturating_sub(self.read);
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(self.piece_bytes);
        if count == 0 {
            return Err(Error::corrupt("", "block of an index run"));
        }
        self.bytes.drain(..self.at);
        self.at = 0;
        let kept = self.bytes.len();
        if self.bytes.capacity() < kept + count {
            // Room for most entries that a piece cuts in two.
            self.bytes.reserve_exact(count + CUT_BYTES);
        }
        self.bytes.resize(kept + count, 0);
        view.read(self.run.container(), self.read, &mut self.bytes[kept..]).map_err(Error::log(""))?;
        self.read += count as u64;
        Ok(())
    }
}

/// Bytes of an entry that a piece cuts in two, mostly at most.
const CUT_BYTES: usize = 32;
