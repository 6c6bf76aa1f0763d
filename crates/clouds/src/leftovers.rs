//! What a cut leaves: a file that was being written under another name.
//!
//! Where writing is not whole or not at all, a file is written beside its place and put there by another name. A cut before that leaves
//! the one beside, which no table has. What a listing shows of them is let go of after the next file that is written, or that a server
//! refuses, which may be full of them: one database at a time writes, and one file at a time, so whatever was there before that is of a
//! cut. So is what was refused itself. Of a server that is out of reach it is let go of with the next file. A table that is dropped takes
//! all with it.

use std::collections::{BTreeSet, HashMap};

use counterfoil_disperse::Failure;
use parking_lot::Mutex;

const ENDING: &str = ".part";
/// Names that are remembered of a folder: what is beyond that is shown by the next listing.
const NAMES_MAX: usize = 64;

/// Files of cuts that listings have shown, by their folders.
#[derive(Default)]
pub(crate) struct Leftovers(Mutex<HashMap<String, BTreeSet<String>>>);

impl Leftovers {
    /// What a file is called until it is whole.
    pub fn beside(name: &str) -> String {
        format!("{name}{ENDING}")
    }

    pub fn is_one(name: &str) -> bool {
        name.ends_with(ENDING)
    }

    /// Takes note of what a listing shows.
    pub fn note(&self, folder: &str, names: &[String]) {
        let found: BTreeSet<String> = names.iter().filter(|name| Self::is_one(name)).take(NAMES_MAX).cloned().collect();
        let mut noted = self.0.lock();
        if found.is_empty() {
            noted.remove(folder)
        } else {
            noted.insert(folder.to_owned(), found)
        };
    }

    /// Those of a folder that nobody writes any more, once a file was written or was not; of a server that is out of reach none.
    pub fn take(&self, (folder, name): (&str, &str), done: &Result<(), Failure>) -> BTreeSet<String> {
        let mut noted = self.0.lock();
        if done.is_err() {
            noted.entry(folder.to_owned()).or_default().insert(Self::beside(name));
        }
        match done {
            Err(Failure::Unreachable(_)) => BTreeSet::new(),
            _ => noted.remove(folder).unwrap_or_default(),
        }
    }
}
