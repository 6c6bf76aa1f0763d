//! Media that want an erase before a page is programmed again: a pool gets room back by whole extents only, so what is
//! still live in extents that hold little else is written anew by whoever points to it.

use alloc::vec::Vec;

use crate::Error;
use crate::order::Order as _;
use crate::pool::{NamelessPage, Pool, PoolId, Slot};
use crate::spare::Spare;
use crate::writer::Writer;

impl Writer {
    /// Live pages, at most `count`, that stand in the way of extents worth emptying: those with the fewest live pages
    /// first, as long as more of the pool is dead than it is to keep free. The caller writes them anew and frees these;
    /// the commit that frees the last one of an extent gives it back. None on media whose pages are simply written
    /// again.
    ///
    /// # Errors
    /// [`Error::corrupt`] if there is no such pool.
    pub fn pages_to_relocate(&self, pool: PoolId, count: usize) -> Result<Vec<NamelessPage>, Error> {
        let known = self.current().pool(pool)?;
        if !self.writes_once() {
            return Ok(Vec::new());
        }
        let spare = self.spares.get(&pool);
        let is_open = |slot: &Slot| spare.is_some_and(|spare| spare.has_free(slot.extent.number));
        let mut closed: Vec<(u32, &Slot)> = known.slots().filter(|(_, slot)| !is_open(slot)).collect();
        let pages = closed.len() as u64 * u64::from(known.extent_pages());
        let live: u64 = closed.iter().map(|(_, slot)| u64::from(slot.live.count())).sum();
        if (pages - live) * 100 <= pages * u64::from(known.options.free_percent) {
            return Ok(Vec::new());
        }
        closed.retain(|(_, slot)| slot.live.count() < known.extent_pages());
        closed.order_stably_by_key(|(_, slot)| slot.live.count());
        Ok(closed.into_iter().flat_map(|(number, slot)| pages_of(known, number, slot)).take(count).collect())
    }
}

/// The live pages of an extent that was written once and in order: the number of each write follows from its position.
fn pages_of<'a>(pool: &'a Pool, number: u32, slot: &'a Slot) -> impl Iterator<Item = NamelessPage> + 'a {
    slot.live.iter().map(move |position| NamelessPage {
        page: pool.page(number, position),
        write: slot.first_write + u64::from(position),
    })
}

impl Spare {
    /// Whether a page goes where [`Writer::pages_to_relocate`] will look for it.
    pub(crate) fn is_in_order(&self, slot: &Slot, position: u32, write: u64) -> bool {
        !self.writes_once() || slot.first_write.checked_add(u64::from(position)) == Some(write)
    }
}
