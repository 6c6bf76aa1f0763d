//! Reading a site: whoever asks finds the rows itself, and checks them afterwards like any other answer.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;

use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{Definition, Malformed, Position};

use super::layout::{HEIGHT_MAX, Head, Name, Page, SUMMARIES_PER_FILE, name_of, path_of, summaries_path};
use crate::entry::Entry;
use crate::shelf::Shelf;

/// Bytes of a file of a site at most.
const FILE_BYTES_MAX: usize = 64 << 20;

/// Where files come from.
pub trait Fetch {
    /// The bytes of a file, at most `most` of them; none if there is no such file.
    ///
    /// # Errors
    /// A text that says what went wrong and where.
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String>;
}

/// A folder of this machine.
#[derive(Clone, Debug)]
pub struct Folder(pub PathBuf);

impl Fetch for Folder {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        use std::io::Read as _;
        let path = self.0.join(path);
        let told = |error: std::io::Error| format!("{}: {error}", path.display());
        let file = match std::fs::File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(told(error)),
        };
        let mut bytes = Vec::new();
        file.take(most as u64 + 1).read_to_end(&mut bytes).map_err(told)?;
        if bytes.len() > most { Err(format!("{}: more than {most} bytes", path.display())) } else { Ok(Some(bytes)) }
    }
}

/// Why a site could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SiteError {
    /// A file could not be fetched: what, where.
    Fetch(String),
    /// A file is not there.
    Missing(String),
    /// A file holds something else than it should: half transferred, damaged, or tampered with.
    Damaged(String, Malformed),
}

impl fmt::Display for SiteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fetch(what) => f.write_str(what),
            Self::Missing(path) => write!(f, "{path} is not there"),
            Self::Damaged(path, what) => write!(f, "{path} is damaged ({what})"),
        }
    }
}

impl std::error::Error for SiteError {}

/// A site, as its head was when it was opened.
pub struct Site<F> {
    fetch: F,
    definition: Option<Definition>,
    head: Head,
    pages: HashMap<Name, Page>,
}

impl<F: Fetch> Site<F> {
    /// Opens a site and gives its manifest, which the caller checks before it goes on.
    ///
    /// # Errors
    /// [`SiteError`].
    pub fn open(mut fetch: F) -> Result<(Self, Vec<u8>), SiteError> {
        let manifest = need(&mut fetch, "manifest")?;
        let head =
            Head::from_bytes(&need(&mut fetch, "head")?).map_err(|what| SiteError::Damaged("head".into(), what))?;
        Ok((Self { fetch, definition: None, head, pages: HashMap::new() }, manifest))
    }

    /// Says what table this is, once the manifest has been checked.
    pub fn define(&mut self, definition: Definition) {
        self.definition = Some(definition);
    }

    /// The last period whose summary is here, as the site says.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.head.last
    }

    /// The summaries of the periods from `first` on to the last one, as they are served.
    ///
    /// # Errors
    /// [`SiteError`].
    pub fn summaries(&mut self, first: u64) -> Result<Vec<Vec<u8>>, SiteError> {
        let mut found = Vec::new();
        let mut file = first / SUMMARIES_PER_FILE;
        while file <= self.head.last / SUMMARIES_PER_FILE {
            let path = summaries_path(file * SUMMARIES_PER_FILE);
            let bytes = need(&mut self.fetch, &path)?;
            let damaged = |what| SiteError::Damaged(path.clone(), what);
            let mut reader = Reader::new(&bytes, "summaries of changes");
            let mut period = file * SUMMARIES_PER_FILE;
            while reader.left() > 0 && period <= self.head.last {
                let summary = reader.string().map_err(damaged)?;
                if period >= first {
                    found.push(summary.to_vec());
                }
                period += 1;
            }
            file += 1;
        }
        Ok(found)
    }

    fn page(&mut self, name: Name) -> Result<&Page, SiteError> {
        if !self.pages.contains_key(&name) {
            let path = path_of(&name);
            let bytes = need(&mut self.fetch, &path)?;
            if name_of(&bytes) != name {
                return Err(SiteError::Damaged(path, Malformed("its bytes are not those of its name")));
            }
            let page = Page::from_bytes(&bytes).map_err(|what| SiteError::Damaged(path, what))?;
            self.pages.insert(name, page);
        }
        Ok(&self.pages[&name])
    }

    /// Walks the leaves of an order from the one that holds `at` on, until `visit` says false.
    fn walk(
        &mut self,
        order: u8,
        at: &[u8],
        upward: bool,
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), SiteError> {
        let Some(root) = self.head.roots.get(usize::from(order)).copied() else {
            return Err(SiteError::Damaged("head".into(), Malformed("an order without pages")));
        };
        self.descend(root, at, upward, HEIGHT_MAX, visit).map(drop)
    }

    fn descend(
        &mut self,
        name: Name,
        at: &[u8],
        upward: bool,
        height: usize,
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<bool, SiteError> {
        let page = self.page(name)?.clone();
        let damaged = |what| SiteError::Damaged(path_of(&name), what);
        if height == 0 {
            return Err(damaged(Malformed("pages below pages without end")));
        }
        // Parts that begin at `at` or behind it, and before them the one that may hold it.
        let split = page.parts.partition_point(|(first, _)| &first[..] < at);
        let first = if page.is_leaf { split } else { split.saturating_sub(1) };
        let chosen: Box<dyn Iterator<Item = &(Vec<u8>, Vec<u8>)>> =
            if upward { Box::new(page.parts[first..].iter()) } else { Box::new(page.parts[..split].iter().rev()) };
        for (position, part) in chosen {
            let goes_on = if page.is_leaf {
                let definition =
                    self.definition.as_ref().ok_or_else(|| damaged(Malformed("a table that is not defined")))?;
                let entry = Entry::from_bytes(part, definition).map_err(damaged)?;
                visit(Position::from_bytes(position).map_err(damaged)?, entry)
            } else {
                let below = part[..].try_into().map_err(|_| damaged(Malformed("the name of a page")))?;
                self.descend(below, at, upward, height - 1, visit)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn need(fetch: &mut impl Fetch, path: &str) -> Result<Vec<u8>, SiteError> {
    fetch.fetch(path, FILE_BYTES_MAX).map_err(SiteError::Fetch)?.ok_or_else(|| SiteError::Missing(path.into()))
}

impl<F: Fetch> Shelf for Site<F> {
    type Error = SiteError;

    fn definition(&self) -> &Definition {
        self.definition.as_ref().expect("a site is defined before it is asked")
    }

    fn upward(
        &mut self,
        order: u8,
        from: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), SiteError> {
        self.walk(order, from, true, visit)
    }

    fn downward(
        &mut self,
        order: u8,
        before: &[u8],
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), SiteError> {
        self.walk(order, before, false, visit)
    }
}
