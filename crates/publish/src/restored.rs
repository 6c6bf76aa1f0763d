//! A ledger that was put back from a copy.
//!
//! The copy does not know what was signed after it was made: with the same key, the same numbers of records, versions and
//! periods would be signed for other rows, and each period would have two summaries. So nothing that is signed from here
//! on may be mistaken for it: another key signs from the period on that was open in the copy, and that of before does not
//! count there any more.

use counterfoil_proof::SecretKey;

use crate::error::Error;
use crate::keys::NewKey;
use crate::ledger::Ledger;
use crate::publication::Publication;

/// What an owner brings whose ledger was put back.
pub struct Restored {
    /// Milliseconds since 1970 (UTC) by the owner's clock.
    pub now: u64,
    /// The highest serial that any mirror serves, as far as known; 0 if none can be asked.
    pub seen_serial: u64,
    /// A key that never signed.
    pub key: NewKey,
    /// Entropy for the salts of rows to come: with those of before, two rows of one number would have one salt.
    pub salts: [u8; 32],
}

impl<L: Ledger> Publication<L> {
    /// Goes on with a table whose ledger was put back from a copy, or may have been. What the copy does not hold is lost:
    /// readers who have seen it find that the new manifest names another key for those periods.
    ///
    /// The serial becomes higher than `seen_serial` and than any before it, and at least `now`: readers who have seen
    /// a manifest that the copy does not know take this one all the same. `roots` are the root keys that are not in the ledger.
    ///
    /// # Errors
    /// Those of [`Publication::open`]; [`Error::RootNeeded`]; [`Error::Misuse`]: the key is none that never signed. The
    /// ledger is as it was then, or put back already if it failed after its commit: either way, begin anew.
    pub fn open_restored(ledger: L, restored: Restored, roots: &[SecretKey]) -> Result<Self, Error> {
        let mut publication = Self::open(ledger)?;
        let Restored { now, seen_serial, key, salts } = restored;
        let mut turn = publication.turn();
        turn.succeed(publication.period.number, key, now)?;
        turn.secrets.salt_anew(&salts);
        publication.enact(now, turn, seen_serial.saturating_add(1).max(now), roots)?;
        Ok(publication)
    }
}
