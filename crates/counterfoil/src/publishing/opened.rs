//! Going on with a publication whose state a ledger holds.

use counterfoil_proof::SecretKey;
use counterfoil_publish::{NewKey, Publication, Restored};
use zeroize::Zeroizing;

use super::ledger::TableLedger;
use super::{now, told};
use crate::database::Database;
use crate::error::Result;
use crate::key::random;

const DAY: u64 = 24 * 3600 * 1000;

/// Milliseconds for which a signing key is certified: five years.
pub const KEY_LIFE: u64 = 5 * 365 * DAY;

/// Milliseconds before its signing key expires from which on a table gets another one: a year.
const KEY_AHEAD: u64 = 365 * DAY;

/// A publication that is gone on with.
pub struct Opened {
    /// It.
    pub publication: Publication<TableLedger>,
    /// Whether its database was put back, so that a new key signs from now on.
    pub was_put_back: bool,
}

/// What is published from a ledger of `database`; nothing if it holds none, or making it was cut short.
///
/// A state that was put back from a backup, or bound to its counter anew, may not know what was signed last: with the same
/// key, one number and version would be signed for two rows, and both would count. So a new key signs from there on.
///
/// # Errors
/// Those of the ledger; [`crate::Kind::Input`]: the root key is kept elsewhere and was not handed in.
pub fn open(database: &Database, mut ledger: TableLedger, roots: &[SecretKey]) -> Result<Option<Opened>> {
    let incidents = database.incidents()?.len() as u64;
    if ledger.is_new() {
        return Ok(None);
    }
    if ledger.incidents().map_err(told)? == incidents {
        let publication = Publication::open(ledger).map_err(told)?;
        return Ok(Some(Opened { publication, was_put_back: false }));
    }
    let restored = Restored { now: now()?, seen_serial: 0, key: new_key()?, salts: random::<32>()? };
    let publication = Publication::open_restored(ledger, restored, roots).map_err(told)?;
    // A cut before this makes another new key the next time, and nothing worse.
    let mut ledger = publication.into_ledger();
    ledger.set_incidents(incidents).map_err(told)?;
    let publication = Publication::open(ledger).map_err(told)?;
    Ok(Some(Opened { publication, was_put_back: true }))
}

/// What is published from a ledger, to be looked at and not gone on with.
///
/// # Errors
/// Those of the ledger.
pub fn look(database: &Database, mut ledger: TableLedger) -> Result<Option<Opened>> {
    if ledger.is_new() {
        return Ok(None);
    }
    let was_put_back = ledger.incidents().map_err(told)? != database.incidents()?.len() as u64;
    let publication = Publication::open(ledger).map_err(told)?;
    Ok(Some(Opened { publication, was_put_back }))
}

/// A signing key that never signed.
///
/// # Errors
/// [`crate::Kind::Device`]: the system gives no entropy.
pub fn new_key() -> Result<NewKey> {
    let entropy = Zeroizing::new(random::<32>()?);
    NewKey::from_entropy(&entropy, now()?.saturating_add(KEY_LIFE)).map_err(told)
}

/// Whether the key that signs, or the one that is to come, expires so soon that another one should come; and when it does,
/// in milliseconds since 1970.
#[must_use]
pub fn is_expiring(publication: &Publication<TableLedger>, now: u64) -> Option<u64> {
    let expires = publication.status().keys.last().map_or(0, |(key, _)| key.expires);
    (expires <= now.saturating_add(KEY_AHEAD)).then_some(expires)
}
