//! Reading records: what the store and the reader have in common.

use counterfoil_flash::Read;
use counterfoil_vault::Vault;

use crate::data_page::DataPage;
use crate::error::Error;
use crate::head::Head;
use crate::index::NO_SLOT;
use crate::live::LivePages;
use crate::ring_io;
use crate::run::{self, Run};
use crate::state::{RecordId, State};

pub(crate) struct View<'v, R: Read + ?Sized> {
    pub(crate) device: &'v R,
    pub(crate) vault: &'v Vault,
    pub(crate) state: &'v State,
    pub(crate) index: &'v [u32],
    pub(crate) runs: &'v [Run],
    pub(crate) scratch: &'v mut [u8],
}

impl<R: Read + ?Sized> View<'_, R> {
    /// Copies a record to the start of `buffer`; how long it is.
    pub(crate) fn read(&mut self, id: RecordId, buffer: &mut [u8]) -> Result<usize, Error> {
        let slot = self.index.get(id.0 as usize).copied().filter(|slot| *slot != NO_SLOT).ok_or(Error::NoRecord(id))?;
        let sequence = self.state.layout.data.sequence_at(u64::from(slot), self.state.version);
        let at = self.state.page_of(slot);
        let record = self.page(sequence)?.record(id.0);
        let record = record.ok_or(Error::Corrupt { page: at, what: "record missing from its page" })?;
        let (needed, given) = (record.len(), buffer.len());
        let too_small = Error::BufferTooSmall { what: "a record", needed, given };
        buffer.get_mut(..needed).ok_or(too_small)?.copy_from_slice(record);
        Ok(needed)
    }

    /// Hands over every record, in the order of the medium, every page read once.
    pub(crate) fn visit<E: From<Error>>(
        &mut self,
        mut each: impl FnMut(RecordId, &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let data = self.state.layout.data;
        let (index, mut seen) = (self.index, 0);
        for block in data.block(self.state.tail)..=data.block(self.state.version) {
            let live = LivePages::of(&self.state.layout, index, block);
            for position in (0..data.block_pages).filter(|position| live.holds(*position)) {
                let sequence = data.block_start(block) + position;
                let slot = (sequence % data.pages) as u32;
                for entry in self.page(sequence)?.entries() {
                    let current = index.get(entry.id as usize) == Some(&slot);
                    if let (true, Some(record)) = (current, entry.record) {
                        each(RecordId(entry.id), record)?;
                        seen += 1;
                    }
                }
            }
        }
        if seen == self.state.live {
            return Ok(());
        }
        let page = data.page(self.state.version);
        Err(Error::Corrupt { page, what: "records missing from their pages" }.into())
    }

    /// The page with this sequence, which the runs must know.
    fn page(&mut self, sequence: u64) -> Result<DataPage<'_>, Error> {
        let ring = &self.state.layout.data;
        let page = ring.page(sequence);
        let epoch = run::epoch_of(self.runs, sequence).ok_or(Error::Corrupt { page, what: "page outside all runs" })?;
        let head = Head { sequence, epoch };
        let opened = ring_io::open(self.device, self.vault, ring, &head, self.scratch)?;
        DataPage::parse(opened.body).map_err(|what| Error::Corrupt { page, what })
    }
}
