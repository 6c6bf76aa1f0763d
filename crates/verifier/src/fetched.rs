//! What was fetched for a question: a mirror's files as far as they are here, and the names of those that lack.
//!
//! A page fetches while nobody waits, so that a walk over files cannot stop and go on. It is made again instead, each time
//! with more files, until it lacks none. So that it is not made once for each file, what it says of its way
//! ([`Fetch::soon`]) is asked for in advance: as many files as the walk has used so far, so that at most half of all that is
//! fetched is not needed.

use std::collections::{BTreeSet, HashMap};
use std::fmt;

use counterfoil_mirror::site::Fetch;

/// Bytes that a page takes for a question at most.
pub const BYTES_MAX: usize = 256 << 20;

/// Files that a page takes for a question at most.
pub const FILES_MAX: usize = 1 << 14;

/// Files asked for at once.
const BATCH_MAX: usize = 64;

/// Something to fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its path below the mirror's address.
    pub path: String,
    /// What is to be sent there; none: it is only fetched.
    pub question: Option<Vec<u8>>,
    /// Bytes of it at most.
    pub most: usize,
}

/// What came of it.
#[derive(Clone, PartialEq, Eq)]
pub enum Brought {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// There is no such thing.
    Nothing,
    /// It could not be fetched, in words for people.
    Failed(String),
}

/// Values of rows never reach a log.
impl fmt::Debug for Brought {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "{} bytes", bytes.len()),
            Self::Nothing => f.write_str("nothing"),
            Self::Failed(what) => write!(f, "failed: {what}"),
        }
    }
}

/// Files as far as they are here.
#[derive(Default)]
pub(crate) struct Fetched {
    here: HashMap<String, Brought>,
    /// What was asked, with the answer under its path.
    question: Option<Vec<u8>>,
    wanted: Vec<Wanted>,
    /// What may be wanted next, for each level of a walk.
    ahead: Vec<Vec<String>>,
    /// Files that the walk has used.
    walked: usize,
    used: BTreeSet<String>,
    bytes: usize,
    files: usize,
}

impl Fetched {
    /// Begins a walk from the start.
    pub fn begin(&mut self) {
        self.wanted.clear();
        self.ahead.clear();
        self.used.clear();
        self.walked = 0;
    }

    /// Forgets what is here, but not how much it was.
    pub fn forget(&mut self) {
        self.begin();
        self.here.clear();
        self.question = None;
    }

    /// What the walk lacks; empty: nothing.
    pub fn wanted(&self) -> &[Wanted] {
        &self.wanted
    }

    /// Takes what came of something wanted; anything else is left.
    ///
    /// # Errors
    /// A text for people: more than a page takes.
    pub fn bring(&mut self, path: &str, brought: Brought) -> Result<(), String> {
        let Some(at) = self.wanted.iter().position(|wanted| wanted.path == path) else { return Ok(()) };
        let wanted = self.wanted.swap_remove(at);
        let brought = match brought {
            Brought::Bytes(bytes) if bytes.len() > wanted.most => {
                Brought::Failed(format!("{path}: more than {} bytes", wanted.most))
            }
            other => other,
        };
        let bytes = if let Brought::Bytes(bytes) = &brought { bytes.len() } else { 0 };
        if self.files >= FILES_MAX || bytes > BYTES_MAX - self.bytes {
            return Err(format!(
                "{path}: more than {} MB or {FILES_MAX} files, which is too much for a page",
                BYTES_MAX >> 20
            ));
        }
        self.files += 1;
        self.bytes += bytes;
        if wanted.question.is_some() {
            self.question = wanted.question;
        }
        self.here.insert(wanted.path, brought);
        Ok(())
    }

    /// The files that the walk has used, in order of their paths.
    pub fn used(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.used.iter().filter_map(|path| match self.here.get(path) {
            Some(Brought::Bytes(bytes)) => Some((&path[..], &bytes[..])),
            _ => None,
        })
    }

    /// How many bytes and files came.
    pub fn counts(&self) -> (usize, usize) {
        (self.bytes, self.files)
    }

    fn lacks(&self, path: &str) -> bool {
        !self.here.contains_key(path)
    }

    /// Asks for a file, and for some of those that follow it.
    fn want(&mut self, path: &str, most: usize) -> String {
        self.wanted = vec![Wanted { path: path.into(), question: None, most }];
        let next = self.ahead.iter().rev().flatten().filter(|next| *next != path && self.lacks(next));
        let next: Vec<String> = next.take(self.walked.min(BATCH_MAX)).cloned().collect();
        self.wanted.extend(next.into_iter().map(|path| Wanted { path, question: None, most }));
        format!("{path} is not fetched yet")
    }

    fn here(&self, path: &str, most: usize) -> Option<Result<Option<Vec<u8>>, String>> {
        Some(match self.here.get(path)? {
            Brought::Bytes(bytes) if bytes.len() > most => Err(format!("{path}: more than {most} bytes")),
            Brought::Bytes(bytes) => Ok(Some(bytes.clone())),
            Brought::Nothing => Ok(None),
            Brought::Failed(what) => Err(what.clone()),
        })
    }
}

impl Fetch for Fetched {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        let Some(here) = self.here(path, most) else { return Err(self.want(path, most)) };
        self.walked += 1;
        self.used.insert(path.into());
        here
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        if self.question.as_deref() == Some(question)
            && let Some(here) = self.here(path, most)
        {
            self.used.insert(path.into());
            return here;
        }
        self.wanted = vec![Wanted { path: path.into(), question: Some(question.into()), most }];
        Err(format!("{path} is not asked yet"))
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        if level == 0 {
            self.walked = 0;
        }
        self.ahead.truncate(level);
        let here = &self.here;
        self.ahead.push(paths.filter(|path| !here.contains_key(path)).take(BATCH_MAX).collect());
    }
}

/// A mirror made of what was fetched, with some of it changed. It fetches nothing: what is not there is not there.
pub(crate) struct Altered<'a> {
    pub fetched: &'a Fetched,
    pub changed: HashMap<String, Vec<u8>>,
}

impl Altered<'_> {
    fn of(&self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        if let Some(bytes) = self.changed.get(path) {
            return Ok(Some(bytes.clone()));
        }
        self.fetched.here(path, most).unwrap_or(Ok(None))
    }
}

impl Fetch for Altered<'_> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        self.of(path, most)
    }

    /// The answer to the question that was asked, whatever is asked: this mirror does not behave.
    fn ask(&mut self, path: &str, _question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        self.of(path, most)
    }
}
