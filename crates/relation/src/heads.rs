//! Heads of index runs that are kept in memory, up to a bound.

use alloc::collections::BTreeMap;

use counterfoil_log::{ContainerId, View};

use crate::Error;
use crate::run::{Head, Run};
use counterfoil_log::Lock;

/// Bytes of heads kept for one database, unless [`crate::Relations::with_head_bytes`] says otherwise.
const KEPT_BYTES: usize = 64 << 20;

/// Heads by container.
pub(crate) struct Heads {
    kept: Lock<BTreeMap<ContainerId, Head>>,
    bytes_max: usize,
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

    /// The head of a run.
    pub(crate) fn of(&self, view: &dyn View, run: &Run) -> Result<Head, Error> {
        if let Some(head) = self.kept.read(|kept| kept.get(&run.container()).cloned()) {
            return Ok(head);
        }
        let head = Head::read(view, run, self.bytes_max as u64)?;
        self.kept.write(|kept| {
            let bytes: usize = kept.values().map(Head::bytes).sum();
            if bytes + head.bytes() > self.bytes_max {
                kept.clear();
            }
            kept.insert(run.container(), head.clone());
        });
        Ok(head)
    }

    /// Drops the heads of runs that a view does not have.
    pub(crate) fn prune(&self, view: &dyn View) {
        self.kept.write(|kept| kept.retain(|container, _| view.length(*container).is_ok()));
    }
}
