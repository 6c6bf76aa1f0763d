//! A mirror that is brought up to date while it is asked.
//!
//! A question takes several fetches, and an update may come between any two of them: a manifest of before beside rows that
//! the owner's new key signed looks like a forgery, a head of before beside rows of two periods later like noise. So where an
//! answer is refused, head and manifest are fetched once more, and if they are others by now, all of it is asked anew. An
//! honest mirror stands still in the end, unless its owner publishes faster than it is read; of one that never does both are
//! said, why it was refused the last time and that it moved. One that is out of reach by then is told
//! to be that: it may have been brought up to date.

use std::collections::BTreeMap;

use counterfoil_mirror::site::Fetch;

use crate::error::Error;

/// Times that a question is asked at most.
pub(crate) const ATTEMPTS_MAX: usize = 4;

/// Whether a mirror that has moved is asked once more.
///
/// # Errors
/// [`Error::Moving`]: it has moved as often as it was asked.
pub(crate) fn again(last: Error, tried: &mut usize) -> Result<(), Error> {
    *tried += 1;
    if *tried < ATTEMPTS_MAX { Ok(()) } else { Err(Error::Moving(Box::new(last))) }
}

/// What is fetched, with the files noted that say where a mirror stands.
pub(crate) struct Moving<'a> {
    fetch: &'a mut dyn Fetch,
    standing: BTreeMap<String, (usize, Option<Vec<u8>>)>,
}

impl<'a> Moving<'a> {
    pub(crate) fn new(fetch: &'a mut dyn Fetch) -> Self {
        Self { fetch, standing: BTreeMap::new() }
    }

    /// Whether the mirror stands elsewhere by now than when it was asked.
    ///
    /// # Errors
    /// [`Error::Unreachable`]: nobody says. Then nobody knows either whether what was refused was forged.
    pub(crate) fn has_moved(&mut self) -> Result<bool, Error> {
        for (path, (most, before)) in std::mem::take(&mut self.standing) {
            if self.fetch.fetch(&path, most).map_err(Error::Unreachable)? != before {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Fetch for Moving<'_> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let found = self.fetch.fetch(path, most)?;
        if matches!(path.rsplit('/').next(), Some("manifest" | "head")) {
            self.standing.insert(path.into(), (most, found.clone()));
        }
        Ok(found)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        self.fetch.ask(path, question, most)
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        self.fetch.soon(level, paths);
    }
}
