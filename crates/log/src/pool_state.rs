//! How a frame changes nameless pools. Recovery and the writer go through the same door.

use crate::maps::Set;
use crate::pool::{NamelessPage, Pool, PoolId, PoolOptions};
use crate::pool_element::PoolElement;
use crate::space::Owner;
use crate::state::{Context, State};
use crate::{Error, Layout};

/// What changed in pools since the last checkpoint.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedPools {
    pub(crate) pools: Set<PoolId>,
    /// Chunks of slots.
    pub(crate) chunks: Set<(PoolId, u32)>,
}

impl ChangedPools {
    pub(crate) fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.chunks.is_empty()
    }

    /// A page was written or freed, or a slot's extent came or went.
    pub(crate) fn note(&mut self, id: PoolId, chunk: u32) {
        self.pools.insert(id);
        self.chunks.insert((id, chunk));
    }

    /// All of a pool changed, or went away.
    pub(crate) fn note_all(&mut self, id: PoolId, pool: &Pool) {
        self.pools.insert(id);
        self.chunks.extend((0..pool.chunks.len() as u32).map(|chunk| (id, chunk)));
    }
}

impl State {
    /// Applies one change of a pool.
    pub(crate) fn apply_to_pool(&mut self, element: &PoolElement, context: &Context) -> Result<(), Error> {
        let id = element.pool();
        match element {
            PoolElement::Created { free_percent, .. } => {
                let options = PoolOptions { free_percent: *free_percent };
                self.root.add_pool(id, Pool::new(options, context.layout.extent_pages))?;
                self.changed.pools.pools.insert(id);
            }
            PoolElement::Dropped(_) => {
                self.changed.pools.note_all(id, self.root.pool(id)?);
                self.root.drop_pool(id)?;
                self.space.release_all(Owner::Pool(id), context.commit, context.version)?;
            }
            PoolElement::Grown { slot, extent, first_write, .. } => {
                self.root.pool_mut(id)?.add_slot(*slot, *extent, *first_write)?;
                self.space.take(*extent, Owner::Pool(id))?;
                self.changed.pools.note(id, slot / crate::pool::CHUNK_SLOTS as u32);
            }
            PoolElement::Shrunk { slot, .. } => {
                let extent = self.root.pool_mut(id)?.remove_slot(*slot)?;
                self.space.release(extent.number, context.commit, context.version)?;
                self.changed.pools.note(id, slot / crate::pool::CHUNK_SLOTS as u32);
            }
            PoolElement::Written { page, pages, .. } => self.apply_written(id, *page, *pages, context)?,
            PoolElement::Freed { page, .. } => {
                let pool = self.root.pool_mut(id)?;
                pool.free(*page)?;
                let chunk = pool.chunk_of(page.page);
                self.changed.pools.note(id, chunk);
            }
            PoolElement::Unflushed { .. } => {}
        }
        Ok(())
    }

    fn apply_written(&mut self, id: PoolId, first: NamelessPage, pages: u32, context: &Context) -> Result<(), Error> {
        let pool = self.root.pool_mut(id)?;
        for index in 0..u64::from(pages) {
            let (page, write) = (first.page.saturating_add(index), first.write.saturating_add(index));
            pool.write(NamelessPage { page, write }, context.epoch)?;
            self.changed.pools.note(id, pool.chunk_of(page));
        }
        Ok(())
    }

    /// Every extent of a pool is the pool's in the map of extents, and the other way round; every epoch is known.
    pub(crate) fn validate_pools(&self, layout: &Layout) -> Result<(), Error> {
        let corrupt = || Error::corrupt("map of a pool");
        for (id, pool) in self.root.pools.iter() {
            let owner = Owner::Pool(*id);
            let is_owned = |extent: &crate::space::Extent| {
                self.space.owner(extent.number) == owner
                    && self.space.allocation(extent.number) == Some(extent.allocation)
            };
            let mut numbers = Set::new();
            let distinct = pool.slots().all(|(_, slot)| is_owned(&slot.extent) && numbers.insert(slot.extent.number));
            let all = self.space.owned_by(owner).count() == numbers.len();
            let known = pool.openings.iter().all(|opening| self.root.epochs.contains_key(&opening.epoch));
            if !distinct || !all || !known || pool.extent_pages() != layout.extent_pages {
                return Err(corrupt());
            }
        }
        Ok(())
    }
}
