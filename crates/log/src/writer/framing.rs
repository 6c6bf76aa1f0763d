//! Frames: written page by page behind the last one, each naming the one before and the extent in which the spine
//! goes on.
//!
//! A cut leaves a frame whose last page is missing or torn: recovery ends before it. Room for the whole frame is granted
//! before its first page, so a frame that was begun is not given up for want of it.

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_vault::{Kind, Plain};

use super::Writer;
use crate::Error;
use crate::frame::{HEAD_BYTES, Head};
use crate::space::{Extent, Owner};

impl Writer {
    /// Writes a frame behind the last one and, if asked, makes it durable together with those before it.
    pub(crate) fn write_frame(&mut self, elements: &[u8], checkpoint: u64, durable: bool) -> Result<(), Error> {
        self.require_sound()?;
        let layout = self.pages.layout;
        let capacity = layout.payload() - HEAD_BYTES;
        let pages = elements.len().div_ceil(capacity).max(1);
        let mut reserves = self.reserve_spine(pages)?;
        let version = self.counted + 1;
        let closed = self.end.closed_for(version);
        let mut page = vec![0; layout.page_bytes as usize];
        for index in 0..pages {
            if self.end.position >= layout.extent_pages {
                let Some(reserve) = reserves.pop() else { return Err(Error::misuse("the spine has no next extent")) };
                self.move_spine(reserve);
            }
            let part = &elements[index * capacity..elements.len().min((index + 1) * capacity)];
            let head = Head {
                commit: self.state.root.commit + 1,
                version,
                previous: self.end.tag,
                closed,
                checkpoint,
                next: self.end.next,
                last: index + 1 == pages,
                opening: false,
                used: part.len() as u32,
                index: index as u32,
            };
            self.write_spine_page(&head, part, &mut page)?;
        }
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

    fn write_spine_page(&mut self, head: &Head, elements: &[u8], page: &mut [u8]) -> Result<(), Error> {
        let extent = self.end.extent.ok_or_else(|| Error::misuse("the spine has no extent"))?;
        page.fill(0);
        page[..HEAD_BYTES].copy_from_slice(&head.encode());
        page[HEAD_BYTES..HEAD_BYTES + elements.len()].copy_from_slice(elements);
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
