//! Finding the newest whole commit, and reading what it says.
//!
//! The clear heads say where to look first and are believed in nothing:
//!
//! 1. The highest sequence claimed is tried first, then the ones below it in order. On an untouched image this reads
//!    the heads once and a page or two.
//! 2. After [`MISSES_MAX`] claims that do not authenticate, the window is gone through once, every page on its own.
//!    So a forged head costs one pass at most, whatever it claims, and hides nothing.
//! 3. A commit is *whole* if every page of it authenticates under its own epoch and names the same first page:
//!    writes between two flushes may have reached the medium in any order. Commits of one epoch do not overlap, so
//!    all these trials together visit a copy of a page once or twice, and fail once for each candidate.
//! 4. A whole commit whose older pages or index copy do not authenticate is passed over for the one before it, at
//!    most [`LOADS_MAX`] times. How new is new enough is the caller's to say, who has a counter.

use counterfoil_flash::{Error as FlashError, Read};
use counterfoil_vault::Vault;

use crate::data_page::DataPage;
use crate::error::Error;
use crate::head::Head;
use crate::index::{NO_SLOT, copy_pages};
use crate::ring_io;
use crate::root::Root;
use crate::run;
use crate::state::{Buffers, Floor, Floors, Name, State};
use crate::window::{Layout, Ring};

const MISSES_MAX: u32 = 4;
const LOADS_MAX: u32 = 8;

/// Which commit to open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The newest that is whole and authenticates.
    Newest,
    /// The newest before this version.
    Before(u64),
    /// This one or none.
    Exactly(Name),
}

/// A whole commit.
struct Found {
    name: Name,
    root: Root,
}

/// Opens the commit asked for: fills index and runs.
///
/// On a small stack what is searched and what is loaded are not there together, and a commit is found in the place where it stays.
#[inline(never)]
pub(crate) fn open<R: Read + ?Sized>(
    device: &R,
    vault: &Vault,
    layout: Layout,
    which: Which,
    buffers: &mut Buffers<'_>,
) -> Result<State, Error> {
    let search = Search { device, vault, layout };
    let mut below = match which {
        Which::Newest => u64::MAX,
        Which::Before(version) => version,
        Which::Exactly(name) => return search.exactly(name, buffers),
    };
    let mut first_failure = None;
    for _ in 0..LOADS_MAX {
        let mut found = None;
        let claims = search.newest(below, buffers.page, &mut found)?;
        let Some(found) = found else {
            return Err(first_failure.unwrap_or(Error::NoCommit { claims }));
        };
        match search.load(&found, buffers) {
            Err(failure @ (Error::Tampered { .. } | Error::Corrupt { .. })) => {
                first_failure.get_or_insert(failure);
                below = found.name.version;
            }
            outcome => return outcome,
        }
    }
    Err(first_failure.unwrap_or(Error::NoCommit { claims: 0 }))
}

/// Keeps what cannot be told from a page that was never whole apart from what stops the search.
fn passed_over<T>(outcome: Result<T, Error>) -> Result<Option<T>, Error> {
    match outcome {
        Ok(found) => Ok(Some(found)),
        Err(Error::Device(FlashError::Latched)) => Err(Error::Latched),
        // Torn words of some media read as errors for ever: no reason not to open the commit before.
        Err(Error::Tampered { .. } | Error::Corrupt { .. } | Error::Device(_)) => Ok(None),
        Err(other) => Err(other),
    }
}

struct Search<'a, R: Read + ?Sized> {
    device: &'a R,
    vault: &'a Vault,
    layout: Layout,
}

impl<R: Read + ?Sized> Search<'_, R> {
    fn ring(&self) -> &Ring {
        &self.layout.data
    }

    /// Finds the newest whole commit before `below`, into a place where none is yet; how many pages claim to belong to the store.
    #[inline(never)]
    fn newest(&self, below: u64, page: &mut [u8], found: &mut Option<Found>) -> Result<u64, Error> {
        let ring = self.ring();
        let (mut highest, mut claims) = (None, 0);
        for slot in 0..ring.pages {
            for head in ring_io::claims(self.device, ring, slot)? {
                claims += 1;
                if head.sequence < below {
                    highest = highest.max(Some(head.sequence));
                }
            }
        }
        if let Some(highest) = highest {
            self.descend(highest, page, found)?;
            if found.is_none() {
                self.sweep(below, page, found)?;
            }
        }
        Ok(claims)
    }

    /// Tries the claims from `highest` down, for one lap, until too many do not authenticate.
    fn descend(&self, highest: u64, page: &mut [u8], found: &mut Option<Found>) -> Result<(), Error> {
        let ring = self.ring();
        let lowest = (highest - (ring.pages - 1)).max(ring.pages);
        let mut misses = 0;
        for sequence in (lowest..=highest).rev() {
            let claims = ring_io::claims(self.device, ring, sequence % ring.pages)?;
            for head in claims.filter(|head| head.sequence == sequence) {
                match passed_over(self.commit_at(&head, page, found))? {
                    Some(()) if found.is_some() => return Ok(()),
                    Some(()) => {}
                    None => misses += 1,
                }
            }
            if misses > MISSES_MAX {
                break;
            }
        }
        Ok(())
    }

    /// Tries every claim, in the order of the medium.
    fn sweep(&self, below: u64, page: &mut [u8], newest: &mut Option<Found>) -> Result<(), Error> {
        for slot in 0..self.ring().pages {
            for head in ring_io::claims(self.device, self.ring(), slot)? {
                let beaten = newest.as_ref().is_some_and(|newest| head.sequence <= newest.name.version);
                if head.sequence < below && !beaten {
                    passed_over(self.commit_at(&head, page, newest))?;
                }
            }
        }
        Ok(())
    }

    /// Finds the commit whose commit page is the one claimed; leaves what was found before if the page is an inner one of a commit.
    fn commit_at(&self, head: &Head, buffer: &mut [u8], found: &mut Option<Found>) -> Result<(), Error> {
        let ring = self.ring();
        let at = ring.page(head.sequence);
        let page = ring_io::open(self.device, self.vault, ring, head, buffer)?;
        let tag = page.tag;
        let parsed = DataPage::parse(page.body).map_err(|what| Error::Corrupt { page: at, what })?;
        if !parsed.commit {
            return Ok(());
        }
        let first = parsed.first;
        if first > head.sequence || parsed.previous >= first {
            return Err(Error::Corrupt { page: at, what: "first page of a commit" });
        }
        let root = Root::decode(parsed.root_bytes(), &self.layout, head, first)
            .map_err(|what| Error::Corrupt { page: at, what })?;
        self.whole(head, first, buffer)?;
        *found = Some(Found { name: Name { version: head.sequence, tag }, root });
        Ok(())
    }

    /// Whether all pages of a commit before its commit page are there. Heads are looked at first: they cost nothing.
    fn whole(&self, commit: &Head, first: u64, buffer: &mut [u8]) -> Result<(), Error> {
        let ring = self.ring();
        for sequence in (first..commit.sequence).rev() {
            let head = Head { sequence, epoch: commit.epoch };
            let at = ring.page(sequence);
            if !ring_io::claims(self.device, ring, sequence % ring.pages)?.any(|claim| claim == head) {
                return Err(Error::Tampered { page: at });
            }
            let page = ring_io::open(self.device, self.vault, ring, &head, buffer)?;
            let parsed = DataPage::parse(page.body).map_err(|what| Error::Corrupt { page: at, what })?;
            if parsed.commit || parsed.first != first {
                return Err(Error::Corrupt { page: at, what: "page inside a commit" });
            }
        }
        Ok(())
    }

    /// The commit of this name, and no other.
    fn exactly(&self, name: Name, buffers: &mut Buffers<'_>) -> Result<State, Error> {
        let ring = self.ring();
        let slot = name.version % ring.pages;
        let tampered = Error::Tampered { page: ring.slot_page(slot) };
        let mut failure = tampered;
        for head in ring_io::claims(self.device, ring, slot)?.filter(|head| head.sequence == name.version) {
            let mut found = None;
            match (self.commit_at(&head, buffers.page, &mut found), &found) {
                (Ok(()), Some(found)) if found.name == name => return self.load(found, buffers),
                (Ok(()), _) => {}
                (Err(error), _) => failure = error,
            }
        }
        Err(failure)
    }

    /// Reads index copy and later directories of a whole commit.
    #[inline(never)]
    fn load(&self, found: &Found, buffers: &mut Buffers<'_>) -> Result<State, Error> {
        let (layout, root) = (&self.layout, &found.root);
        let corrupt = |what| Error::Corrupt { page: layout.data.page(found.name.version), what };
        let (copy_ids, copy_runs) = (root.copy.ids as usize, usize::from(root.copy.runs));
        if copy_ids > layout.ids_max() as usize || copy_runs > layout.runs_max() {
            return Err(corrupt("index copy of a root"));
        }
        enough_ids(copy_ids, buffers.index)?;
        let (slots, rest) = buffers.index.split_at_mut(copy_ids);
        rest.fill(NO_SLOT);
        let runs = buffers.runs.get_mut(..copy_runs).unwrap_or_default();
        root.copy.read(self.device, self.vault, layout, runs, slots, buffers.page)?;
        // The copy was written by the commit at `fold`, whose epoch is the copy's own.
        if runs.last().is_none_or(|last| last.end != root.fold + 1 || last.epoch != root.copy.epoch) {
            return Err(corrupt("runs of an index copy"));
        }
        let mut run_count = copy_runs;
        for run in root.runs() {
            run_count = run::push(buffers.runs, run_count, *run).ok_or(corrupt("runs of a root"))?;
        }
        let ids = self.replay(found, copy_ids, buffers)?;
        let live = buffers.index.iter().take(ids).filter(|slot| **slot != NO_SLOT).count();
        let floor = Floor { version: found.name.version, tail: root.tail, index_first: root.copy.first };
        let kept = run::drop_before(buffers.runs.get_mut(..run_count).unwrap_or_default(), root.tail);
        if copy_pages(layout, kept, ids) > layout.index_copy_pages_max() {
            return Err(corrupt("index of a commit"));
        }
        Ok(State {
            layout: *layout,
            epoch: None,
            version: found.name.version,
            tag: found.name.tag,
            tail: root.tail,
            fold: root.fold,
            copy: root.copy,
            head: found.name.version + 1,
            index_head: root.copy.first + root.copy.pages(layout),
            ids,
            live: live as u32,
            run_count: kept,
            cursor: 0,
            floors: Floors::new(floor),
            lap: None,
            latched: false,
        })
    }

    /// Applies the directories of the pages after the index copy, in their order; how many ids there are then.
    fn replay(&self, found: &Found, copy_ids: usize, buffers: &mut Buffers<'_>) -> Result<usize, Error> {
        let ring = self.ring();
        let mut ids = copy_ids;
        for run in found.root.runs() {
            for sequence in run.first..run.end {
                let page = ring.page(sequence);
                let head = Head { sequence, epoch: run.epoch };
                let opened = ring_io::open(self.device, self.vault, ring, &head, buffers.page)?;
                let parsed = DataPage::parse(opened.body).map_err(|what| Error::Corrupt { page, what })?;
                for entry in parsed.entries() {
                    if entry.id >= self.layout.ids_max() {
                        return Err(Error::Corrupt { page, what: "record number" });
                    }
                    let id = entry.id as usize;
                    enough_ids(id + 1, buffers.index)?;
                    ids = ids.max(id + 1);
                    let slot = if entry.record.is_some() { (sequence % ring.pages) as u32 } else { NO_SLOT };
                    if let Some(place) = buffers.index.get_mut(id) {
                        *place = slot;
                    }
                }
            }
        }
        Ok(ids)
    }
}

fn enough_ids(needed: usize, index: &[u32]) -> Result<(), Error> {
    if index.len() >= needed {
        return Ok(());
    }
    Err(Error::BufferTooSmall { what: "the index", needed, given: index.len() })
}
