//! Heads of index runs that are kept in memory, up to a bound.
//!
//! A lookup reads some pages of a head, or none where it is kept. So a head is read whole when lookups have read as much of it in
//! pieces: the first query after an open reads what it needs, and thousands of lookups read it once.

use counterfoil_log::{ContainerId, View};

use crate::Error;
use crate::run::{Head, Run};
use counterfoil_log::Lock;
use counterfoil_log::Map;

/// Bytes of heads kept for one database, unless [`crate::Relations::with_head_bytes`] says otherwise.
const KEPT_BYTES: usize = 64 << 20;
/// Blocks that a lookup reads of a head that is not kept.
const LOOKUP_BLOCKS: u64 = 2;

/// Heads by container.
pub(crate) struct Heads {
    kept: Lock<Kept>,
    bytes_max: usize,
}

#[derive(Default)]
struct Kept {
    heads: Map<ContainerId, Head>,
    bytes: usize,
    /// About how much was read in pieces of those that are not kept and could be.
    read: Map<ContainerId, u64>,
}

impl Default for Heads {
    fn default() -> Self {
        Heads::with_bytes(KEPT_BYTES)
    }
}

impl Heads {
    /// None yet, and never more than so many bytes.
    pub(crate) fn with_bytes(bytes_max: usize) -> Self {
        Heads { kept: Lock::default(), bytes_max }
    }

    /// The head of a run, for so many lookups.
    pub(crate) fn of(&self, view: &dyn View, run: &Run, lookups: usize) -> Result<Head, Error> {
        if let Some(head) = self.kept.read(|kept| kept.heads.get(&run.container()).cloned()) {
            return Ok(head);
        }
        if self.bytes_max == 0 || run.head_bytes() > self.bytes_max as u64 {
            return Ok(Head::bare());
        }
        let bytes = (run.block_bytes() as u64 * LOOKUP_BLOCKS).saturating_mul(lookups as u64);
        let pays = self.kept.write(|kept| {
            let read = kept.read.entry(run.container()).or_default();
            *read = read.saturating_add(bytes);
            *read >= run.head_bytes()
        });
        if !pays {
            return Ok(Head::bare());
        }
        let head = Head::read(view, run)?;
        self.kept.write(|kept| {
            if kept.bytes + head.bytes() > self.bytes_max {
                *kept = Kept::default();
            }
            kept.bytes += head.bytes();
            kept.read.remove(&run.container());
            if let Some(twin) = kept.heads.insert(run.container(), head.clone()) {
                kept.bytes -= twin.bytes();
            }
        });
        Ok(head)
    }

    /// Drops the heads of runs that a view does not have.
    pub(crate) fn prune(&self, view: &dyn View) {
        let is_there = |container: &ContainerId| view.length(*container).is_ok();
        self.kept.write(|kept| {
            kept.heads.retain(|container, _| is_there(container));
            kept.read.retain(|container, _| is_there(container));
            kept.bytes = kept.heads.values().map(Head::bytes).sum();
        });
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_log::{Memory, Storage as _};

    use super::*;
    use crate::RowId;
    use crate::key::entry;
    use crate::run::{Blocks, RunWriter};

    #[test]
    fn of_a_head_that_is_never_kept_nothing_is_noted() {
        let mut storage = Memory::default();
        let blocks = Blocks::in_pages(storage.page_bytes());
        let mut writer = RunWriter::new(blocks, None, (0, 0), 3000);
        (0..3000_u64).for_each(|row| writer.push(&mut storage, &entry(&row.to_be_bytes(), RowId(row))).unwrap());
        let run = writer.finish(&mut storage).unwrap().unwrap();
        let bytes = run.head_bytes() as usize;
        assert!(bytes > 0);
        for bytes_max in [0, bytes - 1, bytes] {
            let heads = Heads::with_bytes(bytes_max);
            let few = heads.of(&storage, &run, 0).unwrap();
            assert!(!few.is_kept());
            assert_eq!(heads.kept.read(|kept| kept.read.len()), usize::from(bytes_max == bytes));
            assert_eq!(heads.of(&storage, &run, 100_000).unwrap().is_kept(), bytes_max == bytes);
            assert_eq!(heads.kept.read(|kept| kept.read.len()), 0);
        }
    }
}
