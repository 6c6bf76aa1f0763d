//! A published table, opened from its owner's state.

use counterfoil::Database;
use counterfoil_proof::SecretKey;
use counterfoil_publish::{NewKey, Publication, Restored};
use zeroize::Zeroizing;

use super::state::State;
use super::{now, told};
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::terminal;

/// Milliseconds for which a signing key is certified: five years.
pub const KEY_LIFE: u64 = 5 * 365 * 24 * 3600 * 1000;

/// Does something with what is published from a state, and closes it.
pub fn with<T>(
    context: &Context,
    place: &str,
    roots: &[SecretKey],
    work: impl FnOnce(&mut Publication<State>) -> Result<T>,
) -> Result<T> {
    let database = context.open(place)?;
    let done = known(&database, place, roots).and_then(|known| {
        let nothing =
            || misuse("nothing is published from here").at(place).advise("name the state of a published table");
        work(&mut known.ok_or_else(nothing)?)
    });
    let closed = database.close();
    let done = done?;
    closed?;
    Ok(done)
}

/// What is published from a state already; nothing if making it was cut short.
///
/// A state that was put back from a backup, or bound to its counter anew, may not know what was signed last: with the same
/// key, one number and version would be signed for two rows, and both would count. So a new key signs from there on.
pub fn known(database: &Database, place: &str, roots: &[SecretKey]) -> Result<Option<Publication<State>>> {
    let mut state = State::new(database.connect()?)?;
    let told = |error| told(error, place);
    let incidents = database.incidents()?.len() as u64;
    let looked_at = state.incidents().map_err(told)?;
    if state.is_new() {
        return Ok(None);
    }
    if incidents == looked_at {
        return Ok(Some(Publication::open(state).map_err(told)?));
    }
    terminal::note(
        "this state was put back: a new key signs from now on, and what was published since the copy is withdrawn",
    );
    let now = now()?;
    let restored = Restored { now, seen_serial: 0, key: new_key(place)?, salts: counterfoil::random::<32>()? };
    let publication = Publication::open_restored(state, restored, roots).map_err(told)?;
    // A cut before this makes another new key the next time, and nothing worse.
    State::new(database.connect()?)?.set_incidents(incidents).map_err(told)?;
    Ok(Some(publication))
}

/// A signing key that never signed.
pub fn new_key(place: &str) -> Result<NewKey> {
    let entropy = Zeroizing::new(counterfoil::random::<32>()?);
    NewKey::from_entropy(&entropy, now()?.saturating_add(KEY_LIFE)).map_err(|error| told(error, place))
}
