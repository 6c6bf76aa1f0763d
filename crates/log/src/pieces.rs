//! Reading several pieces of a container at once: those of a page that lie near each other cost one read of the medium.
//!
//! ```text
//! page     | cell | cell | cell | cell | cell | cell | cell | cell | ...
//! pieces      |-----|     |--|                    |-----|
//! read     |<------------------->|             |<---------->|           a gap of more than a sector parts them
//! opened   |<--------->| |<-->|                |<---------->|           each cell once
//! ```

use alloc::vec;
use alloc::vec::Vec;

use counterfoil_flash::Read;
use counterfoil_vault::CELL_BYTES;

use crate::pages::Pages;
use crate::root::{Container, Root, Run};
use crate::{ContainerId, Error, Order as _};

/// What a medium hands over at a time, about.
const SECTOR_BYTES: usize = 512;
/// Sectors between two pieces that are read along: one costs as much as a read more.
const SECTORS_BETWEEN: usize = 1;

/// A piece of a container, and where in the buffer its bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Where it begins in the container.
    pub offset: u64,
    /// How many bytes it has.
    pub bytes: usize,
    /// Where it goes.
    pub at: usize,
}

impl Piece {
    /// The part of a buffer that is this piece's.
    ///
    /// # Errors
    /// [`Error::misuse`] if it has none.
    pub fn of<'b>(&self, buffer: &'b mut [u8]) -> Result<&'b mut [u8], Error> {
        let end = self.at.checked_add(self.bytes);
        let part = end.and_then(|end| buffer.get_mut(self.at..end));
        part.ok_or_else(|| Error::misuse("a piece outside of its buffer"))
    }

    /// The cells that hold it, where it is a piece of a page.
    fn cells(&self, payload: usize) -> (usize, usize) {
        let skip = self.offset as usize;
        (skip / payload, (skip + self.bytes).div_ceil(payload))
    }
}

impl Pages {
    /// Reads pieces of a container as `root` has it.
    pub(crate) fn read_pieces(
        &self,
        root: &Root,
        id: ContainerId,
        pieces: &[Piece],
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let container = root.container(id)?;
        let payload = container.payload(&self.layout);
        let (mut page, mut of_page) = (0, Vec::new());
        for piece in pieces {
            let mut rest = *piece;
            while rest.bytes > 0 {
                let number = rest.offset / payload as u64;
                if number >= container.pages() {
                    self.read(root, id, rest.offset, rest.of(buffer)?)?;
                    break;
                }
                if number != page {
                    self.read_of_page(root, (container, page), &mut of_page, buffer)?;
                    page = number;
                }
                let skip = (rest.offset % payload as u64) as usize;
                let take = rest.bytes.min(payload - skip);
                of_page.push(Piece { offset: skip as u64, bytes: take, at: rest.at });
                rest = Piece { offset: rest.offset + take as u64, bytes: rest.bytes - take, at: rest.at + take };
            }
        }
        self.read_of_page(root, (container, page), &mut of_page, buffer)
    }

    /// Reads pieces of one page, and forgets them.
    fn read_of_page(
        &self,
        root: &Root,
        (container, page): (&Container, u64),
        pieces: &mut Vec<Piece>,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        if pieces.is_empty() {
            return Ok(());
        }
        let (run, within) = self.locate(container, page)?;
        let bytes = pieces.iter().map(|piece| piece.bytes).sum();
        let cell_payload = container.sealing.cell_payload().filter(|_| self.reads_pieces(container.sealing, bytes));
        let Some(cell_payload) = cell_payload.filter(|_| !self.is_kept(&run, within)) else {
            for piece in pieces.drain(..) {
                self.read_cached(root, container, page, piece.offset as usize, piece.of(buffer)?)?;
            }
            return Ok(());
        };
        pieces.order_by_key(|piece| piece.offset);
        let sector = |cells: usize| cells * CELL_BYTES / SECTOR_BYTES;
        let mut rest = pieces.as_slice();
        while let Some(first) = rest.first() {
            let mut end = first.cells(cell_payload).1;
            let is_near = |next: &&Piece| {
                let (from, until) = next.cells(cell_payload);
                let is_near = sector(from) <= sector(end - 1) + 1 + SECTORS_BETWEEN;
                end = end.max(until);
                is_near
            };
            let (near, others) = rest.split_at(1 + rest[1..].iter().take_while(is_near).count());
            self.read_cells(root, (&run, within), cell_payload, near, buffer)?;
            rest = others;
        }
        pieces.clear();
        Ok(())
    }

    /// Reads pieces of a page of cells with one read of the medium. They ascend.
    pub(crate) fn read_cells(
        &self,
        root: &Root,
        (run, within): (&Run, u32),
        cell_payload: usize,
        pieces: &[Piece],
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let position = run.position + within;
        let address = self.layout.page(run.extent, position);
        let first = pieces.first().map_or(0, |piece| piece.cells(cell_payload).0);
        let end = pieces.iter().map(|piece| piece.cells(cell_payload).1).max().unwrap_or(first);
        let mut cells = vec![0; (end - first) * CELL_BYTES];
        self.media.read(address, (first * CELL_BYTES) as u32, &mut cells)?;
        let key = self.cells.key(&self.vault, root.epoch(run.epoch)?);
        let page = key.page(run.allocation, position);
        let mut rest = pieces;
        while let Some(piece) = rest.first() {
            let (from, mut until) = piece.cells(cell_payload);
            let shares = |next: &&Piece| {
                let (next_from, next_until) = next.cells(cell_payload);
                let shares = next_from <= until;
                until = if shares { until.max(next_until) } else { until };
                shares
            };
            let (together, others) = rest.split_at(1 + rest[1..].iter().take_while(shares).count());
            let opened = &mut cells[(from - first) * CELL_BYTES..(until - first) * CELL_BYTES];
            self.cells.open(&page, from, opened, cell_payload, address.0)?;
            for piece in together {
                let start = piece.offset as usize - from * cell_payload;
                piece.of(buffer)?.copy_from_slice(&opened[start..start + piece.bytes]);
            }
            rest = others;
        }
        Ok(())
    }
}
