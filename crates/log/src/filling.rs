//! Filling a new volume with what another one holds, sealed anew under another key.
//!
//! Containers and records are copied by what the log knows of them. Nameless pages are found through their parents only,
//! so whoever owns them walks over them; each goes to the same page of a pool of the same number, under the same number
//! of its write, so what the parents keep stays true.

use alloc::vec;
use alloc::vec::Vec;

use crate::order::Order as _;
use counterfoil_vault::{Kind, Plain};

use crate::copy::Progress;
use crate::pending::Granted;
use crate::pool::{NamelessPage, PoolId, Slot};
use crate::root::Container;
use crate::space::Owner;
use crate::writer::Writer;
use crate::{Error, Snapshot, View};

/// What is told of each page, by a walk over them.
pub type Visit<'a> = &'a mut dyn FnMut(NamelessPage) -> Result<(), Error>;

/// Who knows the pages of nameless pools.
pub trait PoolOwner {
    /// Visits every live page of a pool, each once, in any order.
    ///
    /// # Errors
    /// Those of reading, and of `visit`.
    fn visit_pages(&self, source: &Snapshot, pool: PoolId, visit: Visit<'_>) -> Result<(), Error>;
}

/// For volumes without nameless pages: a live page that nobody visits is noticed.
pub struct NoPools;

impl PoolOwner for NoPools {
    fn visit_pages(&self, _: &Snapshot, _: PoolId, _: Visit<'_>) -> Result<(), Error> {
        Ok(())
    }
}

impl Writer {
    /// Fills a new, empty volume with everything that a snapshot of another one holds, sealed under this volume's
    /// key. Containers, groups and records keep their names. One commit.
    ///
    /// # Errors
    /// [`Error::misuse`] if the volume is not empty, and whatever reading there and writing here can answer.
    /// False if `progress` stopped it.
    pub fn fill_from(&mut self, source: &Snapshot, progress: Progress<'_>) -> Result<bool, Error> {
        self.fill_from_with(source, &NoPools, progress)
    }

    /// As [`Writer::fill_from`], with the nameless pages that `owner` knows of.
    ///
    /// # Errors
    /// As [`Writer::fill_from`]; [`Error::tampered`] if a live page of a pool was not visited, [`Error::misuse`] for pools
    /// on a medium that wants an erase before a page is programmed.
    pub fn fill_from_with(
        &mut self,
        source: &Snapshot,
        owner: &dyn PoolOwner,
        progress: Progress<'_>,
    ) -> Result<bool, Error> {
        self.begin()?;
        let filled = self.copy_contents(source, owner, progress);
        if !matches!(filled, Ok(true)) {
            self.rollback();
            return filled;
        }
        self.commit()?;
        Ok(true)
    }

    fn copy_contents(
        &mut self,
        source: &Snapshot,
        owner: &dyn PoolOwner,
        progress: Progress<'_>,
    ) -> Result<bool, Error> {
        let in_containers: u64 = source.root.containers.values().map(|container| container.pages() + 1).sum();
        let in_pools: u64 = source.pools().iter().map(|(_, live)| live).sum();
        let total = in_containers + in_pools;
        self.adopt_names(source)?;
        let mut done = 0;
        let mut bytes = vec![0; source.payload_bytes() * 64];
        for id in source.containers() {
            let length = source.length(id)?;
            let mut offset = 0;
            while offset < length {
                let count = (length - offset).min(bytes.len() as u64) as usize;
                source.read(id, offset, &mut bytes[..count])?;
                self.append(id, &bytes[..count])?;
                offset += count as u64;
                done += (count / source.payload_bytes()) as u64;
                if !progress(done.min(total), total) {
                    return Ok(false);
                }
            }
        }
        for (pool, live) in source.pools() {
            self.copy_pool(source, owner, pool)?;
            done += live;
            if !progress(done.min(total), total) {
                return Ok(false);
            }
        }
        for (key, value) in source.root.records.iter() {
            let (space, name) = key.split_first().ok_or_else(|| Error::corrupt("name of a record"))?;
            if !crate::feed::is_follower(*space, name) {
                self.put_record(*space, name, value)?;
            }
        }
        Ok(progress(total, total))
    }

    /// Makes the groups and containers of another volume, empty.
    fn adopt_names(&mut self, source: &Snapshot) -> Result<(), Error> {
        let pending = self.pending_mut()?;
        if !pending.root.groups.is_empty() || !pending.root.records.is_empty() {
            return Err(Error::misuse("only an empty volume can be filled from another one"));
        }
        for group in source.root.groups.keys() {
            pending.adopt_group(*group)?;
        }
        for (id, container) in source.root.containers.iter() {
            pending.adopt_container(*id, Container::new(container.group, container.sealing))?;
        }
        let extent_pages = self.pages.layout.extent_pages;
        for (id, pool) in source.root.pools.iter() {
            let same_shape = pool.extent_pages() == extent_pages && source.payload_bytes() == self.payload_bytes();
            if self.writes_once() || !same_shape {
                return Err(Error::misuse(
                    "nameless pages keep their places only in extents like theirs, written in any order",
                ));
            }
            self.pending_mut()?.adopt_pool(*id, pool.options, extent_pages)?;
        }
        Ok(())
    }

    /// Copies the pages of a pool to the same pages of the pool of the same number here. Frames tell of writes in the
    /// order of their numbers, so that is the order here.
    fn copy_pool(&mut self, source: &Snapshot, owner: &dyn PoolOwner, pool: PoolId) -> Result<(), Error> {
        self.adopt_slots(source, pool)?;
        let mut pages = Vec::new();
        owner.visit_pages(source, pool, &mut |page| {
            pages.push(page);
            Ok(())
        })?;
        pages.order_by_key(|page| page.write);
        if pages.len() as u64 != source.root.pool(pool)?.live() {
            return Err(Error::tampered("nameless pages of a pool", 0));
        }
        let mut bytes = vec![0; self.pages.layout.page_bytes as usize];
        for page in pages {
            source.read_nameless(pool, page, &mut bytes[..source.payload_bytes()])?;
            self.program_at(pool, page, &mut bytes)?;
        }
        Ok(())
    }

    /// Gives the slots of a pool extents that those of the source have.
    fn adopt_slots(&mut self, source: &Snapshot, pool: PoolId) -> Result<(), Error> {
        let theirs = source.root.pool(pool)?.clone();
        for (slot, Slot { first_write, .. }) in theirs.slots() {
            let (owner, first_write) = (Owner::Pool(pool), *first_write);
            let extent = self.grant_extent(owner)?;
            self.granted.push(Granted { extent, owner, slot, first_write });
            self.pending_mut()?.root.pool_mut(pool)?.add_slot(slot, extent, first_write)?;
        }
        Ok(())
    }

    /// Programs a page in its very place, under its very number.
    fn program_at(&mut self, pool: PoolId, page: NamelessPage, bytes: &mut [u8]) -> Result<(), Error> {
        self.require_sound()?;
        let epoch = self.end.epoch;
        let corrupt = || Error::corrupt("page of a pool");
        let known = self.pending_mut()?.root.pool(pool)?;
        let (slot, position) = known.split(page.page).ok_or_else(corrupt)?;
        let extent = known.slot(slot).ok_or_else(corrupt)?.extent;
        let key = self.pages.vault.page_key(Kind::Nameless, extent.allocation, &epoch);
        let sealed = key.seal_nameless(position, page.write, Plain::new(bytes));
        let tag = sealed.tag();
        let written = self.device.program(self.pages.layout.page(extent.number, position), sealed.bytes());
        self.latch_on_error(written)?;
        self.pending_mut()?.wrote(pool, page, epoch.number, tag)
    }
}
