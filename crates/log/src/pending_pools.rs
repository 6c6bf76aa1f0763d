//! What a commit in the making changes in nameless pools.

use alloc::vec::Vec;

use counterfoil_vault::Tag;

use crate::Error;
use crate::frame::{Each, Element};
use crate::maps::{Map, Set};
use crate::pending::Granted;
use crate::pool::{NamelessPage, PoolId};
use crate::pool_element::PoolElement;
use crate::space::Owner;
use crate::unflushed::Unflushed;

/// What a commit changes in one pool.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedPages {
    /// Pages by the numbers of their writes: those that are still live.
    written: Map<u64, u64>,
    freed: Vec<NamelessPage>,
    /// Pages that this commit wrote and freed: no frame tells of them.
    untold: Vec<u64>,
}

impl ChangedPages {
    /// Pages that were written and are live.
    pub(crate) fn written(&self) -> impl Iterator<Item = u64> + '_ {
        self.written.values().copied()
    }

    /// Pages that nobody will point to after this commit.
    pub(crate) fn freed(&self) -> impl Iterator<Item = u64> + '_ {
        self.freed.iter().map(|page| page.page).chain(self.untold.iter().copied())
    }

    fn tell(&self, id: PoolId, each: &mut Each<'_>) -> Result<(), Error> {
        let mut put = |page: NamelessPage, pages| each(Element::Pool(PoolElement::Written { id, page, pages }));
        let mut run: Option<(NamelessPage, u32)> = None;
        for (write, page) in &self.written {
            let (page, write) = (*page, *write);
            match &mut run {
                Some((first, pages)) if continues(*first, *pages, page, write) => *pages += 1,
                _ => {
                    if let Some((first, pages)) = run.replace((NamelessPage { page, write }, 1)) {
                        put(first, pages)?;
                    }
                }
            }
        }
        if let Some((first, pages)) = run {
            put(first, pages)?;
        }
        self.freed.iter().try_for_each(|page| each(Element::Pool(PoolElement::Freed { id, page: *page })))
    }
}

/// Whether a write goes on where a run of writes ends.
fn continues(first: NamelessPage, pages: u32, page: u64, write: u64) -> bool {
    pages < u32::MAX
        && first.page.checked_add(u64::from(pages)) == Some(page)
        && first.write.checked_add(u64::from(pages)) == Some(write)
}

/// What a commit changes in pools.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingPools {
    created: Map<PoolId, u8>,
    dropped: Set<PoolId>,
    pages: Map<PoolId, ChangedPages>,
    /// Pages programmed for this commit and not flushed since, by pool and write.
    unflushed: Unflushed<(PoolId, u64), (u64, Tag)>,
}

impl PendingPools {
    pub(crate) fn is_empty(&self) -> bool {
        self.created.is_empty() && self.dropped.is_empty() && self.pages.is_empty()
    }

    pub(crate) fn created(&mut self, id: PoolId, free_percent: u8) {
        self.created.insert(id, free_percent);
    }

    pub(crate) fn dropped(&mut self, id: PoolId) {
        self.pages.remove(&id);
        self.unflushed.retain(|(pool, _)| *pool != id);
        if self.created.remove(&id).is_none() {
            self.dropped.insert(id);
        }
    }

    pub(crate) fn wrote(&mut self, id: PoolId, page: NamelessPage, tag: Tag) {
        self.pages.entry(id).or_default().written.insert(page.write, page.page);
        self.unflushed.insert((id, page.write), (page.page, tag));
    }

    pub(crate) fn freed(&mut self, id: PoolId, page: NamelessPage) {
        let pages = self.pages.entry(id).or_default();
        if pages.written.remove(&page.write).is_some() {
            self.unflushed.remove(&(id, page.write));
            pages.untold.push(page.page);
        } else {
            pages.freed.push(page);
        }
    }

    pub(crate) fn unflushed_count(&self) -> usize {
        self.unflushed.count()
    }

    pub(crate) fn flushed(&mut self) {
        self.unflushed = Unflushed::default();
    }

    /// Pools with pages that were written or freed.
    pub(crate) fn changed(&self) -> impl Iterator<Item = (PoolId, &ChangedPages)> + '_ {
        self.pages.iter().map(|(id, pages)| (*id, pages))
    }

    pub(crate) fn pools_created(&self) -> impl Iterator<Item = PoolId> + '_ {
        self.created.keys().copied()
    }

    /// Pools of the commit before that are gone.
    pub(crate) fn pools_dropped(&self) -> impl Iterator<Item = PoolId> + '_ {
        self.dropped.iter().copied()
    }

    pub(crate) fn is_dropped(&self, id: PoolId) -> bool {
        self.dropped.contains(&id)
    }

    /// The changes as elements of a frame: `granted` are the extents that it tells of, `shrunk` the slots whose extents
    /// it gives back.
    pub(crate) fn tell<'a>(
        &self,
        granted: impl Iterator<Item = &'a Granted>,
        shrunk: &[(PoolId, u32)],
        each: &mut Each<'_>,
    ) -> Result<(), Error> {
        for (id, free_percent) in &self.created {
            each(Element::Pool(PoolElement::Created { id: *id, free_percent: *free_percent }))?;
        }
        for Granted { extent, owner, slot, first_write } in granted {
            if let Owner::Pool(id) = *owner {
                let (slot, extent, first_write) = (*slot, *extent, *first_write);
                each(Element::Pool(PoolElement::Grown { id, slot, extent, first_write }))?;
            }
        }
        self.pages.iter().try_for_each(|(id, pages)| pages.tell(*id, each))?;
        for (id, slot) in shrunk {
            each(Element::Pool(PoolElement::Shrunk { id: *id, slot: *slot }))?;
        }
        self.dropped.iter().try_for_each(|id| each(Element::Pool(PoolElement::Dropped(*id))))?;
        for ((id, write), (page, tag)) in self.unflushed.iter() {
            let page = NamelessPage { page: *page, write: *write };
            each(Element::Pool(PoolElement::Unflushed { id: *id, page, tag: *tag }))?;
        }
        Ok(())
    }
}
