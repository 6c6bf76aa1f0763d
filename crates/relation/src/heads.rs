//! Heads of index runs that are kept in memory, up to a bound.

use alloc::collections::BTreeMap;

use counterfoil_log::{ContainerId, View};

use crate::Error;
use crate::run::{Head, Run};
use counterfoil_log::Lock;

/// Bytes of heads kept for one database.
const KEPT_BYTES_MAX: usize = 64 << 20;

/// Heads by container.
#[derive(Default)]
pub(crate) struct Heads {
    kept: Lock<BTreeMap<ContainerId, Head>>,
}

impl Heads {
    /// The head of a run.
    pub(crate) fn of(&self, view: &dyn View, run: &Run) -> Result<Head, Error> {
        if let Some(head) = self.kept.read(|kept| kept.get(&run.container()).cloned()) {
            return Ok(head);
        }
        let head = Head::read(view, run)?;
        self.kept.write(|kept| {
            let bytes: usize = kept.values().map(Head::bytes).sum();
            if bytes + head.bytes() > KEPT_BYTES_MAX {
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
