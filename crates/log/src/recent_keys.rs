//! Keys of the extents that containers were written to last.
//!
//! A key with its rounds takes up to two kilobytes, and deriving one as long as sealing a page or two. Containers of a group share
//! their extents, so a few keys serve many containers, on flash too, where each container gets one page at a time.

use alloc::vec::Vec;

use counterfoil_vault::{Epoch, Kind, PageKey, Vault};

/// Keys that are kept; with little memory they are derived again.
const KEPT: usize = if cfg!(feature = "small") { 2 } else { 8 };

/// Keys, the one used last at the end.
#[derive(Default)]
pub(crate) struct RecentKeys {
    keys: Vec<Recent>,
}

struct Recent {
    allocation: u64,
    /// The number of the epoch.
    epoch: u64,
    key: PageKey,
}

impl RecentKeys {
    /// The key of the pages of containers in this allocation and epoch.
    pub(crate) fn of(&mut self, vault: &Vault, allocation: u64, epoch: &Epoch) -> &PageKey {
        let is_it = |recent: &Recent| (recent.allocation, recent.epoch) == (allocation, epoch.number);
        let recent = match self.keys.iter().position(is_it) {
            Some(place) => self.keys.remove(place),
            None => {
                if self.keys.len() == KEPT {
                    self.keys.remove(0);
                }
                let key = vault.page_key(Kind::Container, allocation, epoch);
                Recent { allocation, epoch: epoch.number, key }
            }
        };
        let last = self.keys.len();
        self.keys.push(recent);
        &self.keys[last].key
    }
}
