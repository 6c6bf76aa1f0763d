//! Finding the newest commit of a ring. The clear heads say where to look first and are believed in nothing:
//!
//! 1. The highest sequence claimed is tried first, then the ones below it in order. On an untouched image this reads
//!    the heads once and a page or two.
//! 2. After [`MISSES_MAX`] claims that do not authenticate, the ring is gone through once, every page on its own.
//!    So a forged head costs one pass at most, whatever it claims, and hides nothing.

use counterfoil_flash::Error as FlashError;

use crate::error::Error;
use crate::head::Head;
use crate::window::Ring;

const MISSES_MAX: u32 = 4;

/// What the copies of the page in a slot of the ring claim to be.
pub(crate) type Claims<'c> = dyn Fn(u64) -> Result<[Option<Head>; 2], Error> + 'c;

/// Says what commit ends with the page of this head: its version and what else is to be known of it; none if the page
/// is an inner one of a commit.
pub(crate) type CommitAt<'c, T> = dyn FnMut(&Head) -> Result<Option<(u64, T)>, Error> + 'c;

/// The newest commit before `below`, and how many pages claim to belong to the store.
pub(crate) fn newest<T>(
    ring: &Ring,
    claims_at: &Claims<'_>,
    below: u64,
    commit_at: &mut CommitAt<'_, T>,
) -> Result<(Option<T>, u64), Error> {
    let (mut highest, mut claims) = (None, 0);
    for slot in 0..ring.pages {
        for head in claims_at(slot)?.into_iter().flatten() {
            claims += 1;
            if head.sequence < below {
                highest = highest.max(Some(head.sequence));
            }
        }
    }
    let Some(highest) = highest else { return Ok((None, claims)) };
    let found = match descend(ring, claims_at, highest, commit_at)? {
        Some(found) => Some(found),
        None => sweep(ring, claims_at, below, commit_at)?,
    };
    Ok((found, claims))
}

/// Tries the claims from `highest` down, for one lap, until too many do not authenticate.
fn descend<T>(
    ring: &Ring,
    claims_at: &Claims<'_>,
    highest: u64,
    commit_at: &mut CommitAt<'_, T>,
) -> Result<Option<T>, Error> {
    let lowest = (highest - (ring.pages - 1)).max(ring.pages);
    let mut misses = 0;
    for sequence in (lowest..=highest).rev() {
        let claims = claims_at(sequence % ring.pages)?;
        for head in claims.into_iter().flatten().filter(|head| head.sequence == sequence) {
            match passed_over(commit_at(&head))? {
                Some(Some((_, found))) => return Ok(Some(found)),
                Some(None) => {}
                None => misses += 1,
            }
        }
        if misses > MISSES_MAX {
            break;
        }
    }
    Ok(None)
}

/// Tries every claim, in the order of the medium.
fn sweep<T>(
    ring: &Ring,
    claims_at: &Claims<'_>,
    below: u64,
    commit_at: &mut CommitAt<'_, T>,
) -> Result<Option<T>, Error> {
    let mut newest: Option<(u64, T)> = None;
    for slot in 0..ring.pages {
        for head in claims_at(slot)?.into_iter().flatten() {
            let beaten = newest.as_ref().is_some_and(|(newest, _)| head.sequence <= *newest);
            if head.sequence >= below || beaten {
                continue;
            }
            if let Some(Some(found)) = passed_over(commit_at(&head))? {
                newest = Some(found);
            }
        }
    }
    Ok(newest.map(|(_, found)| found))
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
