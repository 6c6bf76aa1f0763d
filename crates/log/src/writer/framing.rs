//! Frames: written page by page behind the last one, each naming the one before and the extent in which the spine
//! goes on.
//!
//! A cut leaves a frame whose last page is missing or torn: recovery ends before it. Room for the whole frame is granted
//! before its first page, so a frame that was begun is not given up for want of it.

use alloc::vec::Vec;

use counterfoil_vault::{Kind, Plain, Tag};

use super::Writer;
use crate::Error;
use crate::frame::{HEAD_BYTES, Head, Told};
use crate::space::{Extent, Owner};

/// A frame in the making, of which one page is in memory.
struct Frame {
    version: u64,
    closed: Tag,
    checkpoint: u64,
    /// The extents that it will need, the first one last.
    reserves: Vec<Extent>,
    /// The page in work.
    index: u32,
    /// Bytes of elements in it.
    used: usize,
    page: Vec<u8>,
}

/// Tells the elements as the bytes that they have in a frame.
fn in_bytes(
    elements: &Told<'_>,
    encoded: &mut Vec<u8>,
    each: &mut dyn FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    elements(&mut |element| {
        encoded.clear();
        element.encode(encoded);
        each(encoded)
    })
}

impl Writer {
    /// Writes a frame behind the last one and, if asked, makes it durable together with those before it.
    pub(crate) fn write_frame(&mut self, elements: &Told<'_>, checkpoint: u64, durable: bool) -> Result<(), Error> {
        self.require_sound()?;
        let layout = self.pages.layout;
        let (mut encoded, mut bytes) = (Vec::new(), 0);
        in_bytes(elements, &mut encoded, &mut |part| {
            bytes += part.len();
            Ok(())
        })?;
        let pages = bytes.div_ceil(layout.payload() - HEAD_BYTES).max(1);
        let reserves = self.reserve_spine(pages)?;
        let version = self.counted + 1;
        let closed = self.end.closed_for(version);
        let mut frame = Frame { version, closed, checkpoint, reserves, index: 0, used: 0, page: Vec::new() };
        frame.page.resize(layout.page_bytes as usize, 0);
        in_bytes(elements, &mut encoded, &mut |part| self.add_to_frame(&mut frame, part))?;
        self.write_page_of(&mut frame, true)?;
        self.unflushed = true;
        if durable {
            self.flush_frames()?;
        }
        self.frames_since_checkpoint += 1;
        (self.end.commit, self.end.version, self.end.closed) = (self.state.root.commit + 1, version, closed);
        (self.end.checkpoint, self.end.opening) = (checkpoint, false);
        self.state.root.commit = self.end.commit;
        self.state.root.version = version;
        Ok(())
    }

    /// Makes the frames durable that are not yet.
    pub(crate) fn flush_frames(&mut self) -> Result<(), Error> {
        if self.unflushed {
            let flushed = self.device.flush();
            self.latch_on_error(flushed)?;
            self.unflushed = false;
        }
        Ok(())
    }

    /// The extents that a frame of so many pages will need, the first one last.
    fn reserve_spine(&mut self, pages: usize) -> Result<Vec<Extent>, Error> {
        let extent_pages = self.pages.layout.extent_pages;
        let left = (extent_pages - self.end.position) as usize;
        let mut reserves = Vec::new();
        for _ in 0..pages.saturating_sub(left).div_ceil(extent_pages as usize) {
            match self.grant_extent(Owner::Spine) {
                Ok(extent) => reserves.push(extent),
                Err(error) => {
                    reserves.iter().for_each(|extent| self.state.space.cancel(extent.number, 0));
                    return Err(error);
                }
            }
        }
        reserves.reverse();
        Ok(reserves)
    }

    fn move_spine(&mut self, reserve: Extent) {
        let extent = self.end.next;
        self.end.extent = Some(extent);
        self.end.position = 0;
        self.end.next = reserve;
        self.spine_key = self.pages.vault.page_key(Kind::Frame, extent.allocation, &self.end.epoch);
    }

    /// Adds an element to the page in work, which is written when there is more.
    fn add_to_frame(&mut self, frame: &mut Frame, mut element: &[u8]) -> Result<(), Error> {
        let capacity = self.pages.layout.payload() - HEAD_BYTES;
        while !element.is_empty() {
            if frame.used == capacity {
                self.write_page_of(frame, false)?;
            }
            let (part, rest) = element.split_at(element.len().min(capacity - frame.used));
            let start = HEAD_BYTES + frame.used;
            frame.page[start..start + part.len()].copy_from_slice(part);
            frame.used += part.len();
            element = rest;
        }
        Ok(())
    }

    /// Writes the page in work, and makes it ready for what comes behind it.
    fn write_page_of(&mut self, frame: &mut Frame, last: bool) -> Result<(), Error> {
        if self.end.position >= self.pages.layout.extent_pages {
            let reserve = frame.reserves.pop().ok_or_else(|| Error::misuse("the spine has no next extent"))?;
            self.move_spine(reserve);
        }
        let head = Head {
            commit: self.state.root.commit + 1,
            version: frame.version,
            previous: self.end.tag,
            closed: frame.closed,
            checkpoint: frame.checkpoint,
            next: self.end.next,
            last,
            opening: false,
            used: frame.used as u32,
            index: frame.index,
        };
        frame.page[..HEAD_BYTES].copy_from_slice(&head.encode());
        self.write_spine_page(&mut frame.page)?;
        frame.page.fill(0);
        (frame.index, frame.used) = (frame.index + 1, 0);
        Ok(())
    }

    fn write_spine_page(&mut self, page: &mut [u8]) -> Result<(), Error> {
        let extent = self.end.extent.ok_or_else(|| Error::misuse("the spine has no extent"))?;
        let position = self.end.position;
        let sealed = self.spine_key.seal(position, Plain::new(page));
        let tag = sealed.tag();
        let written = self.device.program(self.pages.layout.page(extent.number, position), sealed.bytes());
        self.latch_on_error(written)?;
        self.end.position += 1;
        self.end.tag = tag;
        Ok(())
    }
}
