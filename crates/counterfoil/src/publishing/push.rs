//! Bringing a mirror up to date: it says what it has, and gets the rest, part by part.
//!
//! A cut leaves the mirror with some of the parts; the next time it says so, and the rest is sent.

use std::collections::HashSet;

use counterfoil_mirror::site::Fetch as _;
use counterfoil_mirror::wire::State as Standing;
use counterfoil_publish::{Ledger, Publication};

use super::{Authorities, Http, told};
use crate::error::{Error, Kind, Result};

/// Bytes of a part: sent and stored within a few seconds.
const PART_BYTES: usize = 4 << 20;
/// Bytes of what a mirror says of itself, or to a part, at most.
const REPLY_BYTES_MAX: usize = 64 << 10;

/// Sends a mirror what it lacks, if `authorities` vouch for it where it has TLS; gives the number of parts and bytes.
///
/// # Errors
/// [`Kind::Network`]; those of the owner's state.
pub(super) fn push<L: Ledger>(
    publication: &mut Publication<L>,
    mirror: &str,
    authorities: &Authorities,
) -> Result<(u64, u64)> {
    let wrong = |what: String| Error::new(Kind::Network, what).at(mirror).advise("publish again to send the rest");
    let mut http = Http::vouched_for(mirror, authorities)?;
    let folder = counterfoil_reader::place_of(&publication.owner(), &publication.definition().name);
    let (mut parts, mut bytes) = (0, 0);
    // A mirror that says the same twice would be sent the same for ever.
    let mut said = HashSet::new();
    loop {
        let state = http.fetch(&format!("{folder}state"), REPLY_BYTES_MAX).map_err(wrong)?;
        let state = match state {
            None => Standing::default(),
            Some(state) => Standing::from_bytes(&state).map_err(|what| wrong(what.to_string()))?,
        };
        if !said.insert(state.to_bytes()) {
            return Err(wrong("the mirror does not keep what it is sent".into()));
        }
        let Some(update) = publication.update_for(&state, PART_BYTES).map_err(told)? else {
            return Ok((parts, bytes));
        };
        let taken = http.ask(&format!("{folder}update"), &update, REPLY_BYTES_MAX).map_err(wrong)?;
        if taken.is_none() {
            return Err(wrong("no mirror is here, or it takes no tables".into()));
        }
        parts += 1;
        bytes += update.len() as u64;
    }
}
