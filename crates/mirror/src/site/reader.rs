//! Reading a site: whoever asks finds the rows itself, and checks them afterwards like any other answer.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{Definition, Edge, Filter, Malformed, Position, Scheme};

use super::layout::{
    FILE_BYTES_MAX, HEIGHT_MAX, Head, Name, Page, SUMMARIES_PER_FILE, name_of, path_of, summaries_path,
};
use crate::entry::Entry;
use crate::filters::SignedFilter;
use crate::groups::SignedGroup;
use crate::node_entry::{NodeEntry, place};
use crate::shelf::Shelf;

/// Bytes that a reader fetches for one question at most, with what their pages take of memory. A mirror could go on for ever otherwise.
const BYTES_MAX: usize = 1 << 30;

/// Memory that a part of a page takes beside its bytes.
const PART_BYTES: usize = 96;

/// Files that a reader fetches for one question at most.
const FILES_MAX: usize = 1 << 20;

/// Where files come from.
pub trait Fetch {
    /// The bytes of a file, at most `most` of them; none if there is no such file.
    ///
    /// # Errors
    /// A text that says what went wrong and where.
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String>;

    /// What a program says to `question`, at most `most` bytes; none where nobody answers, as in a folder.
    ///
    /// # Errors
    /// A text that says what went wrong and where.
    fn ask(&mut self, _path: &str, _question: &[u8], _most: usize) -> Result<Option<Vec<u8>>, String> {
        Ok(None)
    }

    /// Files that a walk may want next, nearest first, as far as is known at its `level`; level 0 is where a walk begins, and
    /// what was said of it or of those below before is out of date. Whoever has a long way to its files may bring some along.
    fn soon(&mut self, _level: usize, _paths: &mut dyn Iterator<Item = String>) {}
}

impl<F: Fetch + ?Sized> Fetch for &mut F {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        (**self).fetch(path, most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        (**self).ask(path, question, most)
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        (**self).soon(level, paths);
    }
}

impl<F: Fetch + ?Sized> Fetch for Box<F> {
    fn fetch(&mut self, path: &str, most: usize) -> Result<Option<Vec<u8>>, String> {
        (**self).fetch(path, most)
    }

    fn ask(&mut self, path: &str, question: &[u8], most: usize) -> Result<Option<Vec<u8>>, String> {
        (**self).ask(path, question, most)
    }

    fn soon(&mut self, level: usize, paths: &mut dyn Iterator<Item = String>) {
        (**self).soon(level, paths);
    }
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

/// A site whose manifest was fetched and is to be checked.
pub struct Unread<F> {
    files: Files<F>,
    head: Head,
}

impl<F: Fetch> Unread<F> {
    /// Opens a site and gives its manifest.
    ///
    /// # Errors
    /// [`SiteError`].
    pub fn open(fetch: F) -> Result<(Self, Vec<u8>), SiteError> {
        let mut files = Files { fetch, bytes: BYTES_MAX, files: FILES_MAX };
        let manifest = files.need("manifest")?;
        let head = Head::from_bytes(&files.need("head")?).map_err(|what| SiteError::Damaged("head".into(), what))?;
        Ok((Self { files, head }, manifest))
    }

    /// Whether a program answers here ([`Site::ask`]), so that there are no pages to look through.
    #[must_use]
    pub fn answers(&self) -> bool {
        self.head.answers
    }

    /// The site of a table whose definition a checked manifest told.
    #[must_use]
    pub fn of(self, definition: Definition) -> Site<F> {
        Site { files: self.files, definition, head: self.head, pages: HashMap::new() }
    }
}

/// What is called with a place in a tree of pages and what stands there, and says whether to go on.
type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<bool, Malformed> + 'a;

/// A site, as its head was when it was opened.
pub struct Site<F> {
    files: Files<F>,
    definition: Definition,
    head: Head,
    pages: HashMap<Name, Arc<Page>>,
}

/// Files, as many and as large as a reader can bear.
struct Files<F> {
    fetch: F,
    bytes: usize,
    files: usize,
}

impl<F: Fetch> Files<F> {
    fn need(&mut self, path: &str) -> Result<Vec<u8>, SiteError> {
        let most = self.bytes.min(FILE_BYTES_MAX);
        self.files = self.files.checked_sub(1).ok_or_else(|| too_much(path))?;
        let bytes = self.fetch.fetch(path, most).map_err(SiteError::Fetch)?;
        let bytes = bytes.ok_or_else(|| SiteError::Missing(path.into()))?;
        self.hold(path, bytes.len())?;
        Ok(bytes)
    }

    /// Takes so many bytes of what a question may take.
    fn hold(&mut self, path: &str, bytes: usize) -> Result<(), SiteError> {
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| too_much(path))?;
        Ok(())
    }
}

fn too_much(path: &str) -> SiteError {
    SiteError::Fetch(format!("{path}: more than a gigabyte, or a million files, for one question"))
}

impl<F: Fetch> Site<F> {
    /// The last period whose summary is here, as the site says.
    #[must_use]
    pub fn last(&self) -> u64 {
        self.head.last
    }

    /// The period from which on it takes summaries to check an answer, as the site says.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.head.first
    }

    /// The summaries of the periods from `first` on to the last one, as they are served.
    ///
    /// # Errors
    /// [`SiteError`].
    pub fn summaries(&mut self, first: u64) -> Result<Vec<Vec<u8>>, SiteError> {
        let mut found = Vec::new();
        let mut file = first / SUMMARIES_PER_FILE;
        let paths = (file..=self.head.last / SUMMARIES_PER_FILE).map(|file| summaries_path(file * SUMMARIES_PER_FILE));
        self.files.fetch.soon(0, &mut { paths });
        while file <= self.head.last / SUMMARIES_PER_FILE {
            let path = summaries_path(file * SUMMARIES_PER_FILE);
            let bytes = self.files.need(&path)?;
            let damaged = |what| SiteError::Damaged(path.clone(), what);
            let mut reader = Reader::new(&bytes, "summaries of changes");
            // All of its periods, or those up to the last one: a file with fewer would let a head lead on for ever.
            let start = file * SUMMARIES_PER_FILE;
            for period in start..=self.head.last.min(start + (SUMMARIES_PER_FILE - 1)) {
                let summary = reader.string().map_err(damaged)?;
                if period >= first {
                    found.push(summary.to_vec());
                }
            }
            file += 1;
        }
        Ok(found)
    }

    /// The answer of the program behind it to a question, as bytes to be checked.
    ///
    /// # Errors
    /// [`SiteError`].
    pub fn ask(&mut self, question: &[u8]) -> Result<Vec<u8>, SiteError> {
        let most = self.files.bytes.min(FILE_BYTES_MAX);
        let answer = self.files.fetch.ask("answer", question, most).map_err(SiteError::Fetch)?;
        answer.ok_or_else(|| SiteError::Missing("answer".into()))
    }

    fn page(&mut self, name: Name) -> Result<Arc<Page>, SiteError> {
        if let Some(page) = self.pages.get(&name) {
            return Ok(page.clone());
        }
        let path = path_of(&name);
        let bytes = self.files.need(&path)?;
        if name_of(&bytes) != name {
            return Err(SiteError::Damaged(path, Malformed("its bytes are not those of its name")));
        }
        let page = Page::from_bytes(&bytes).map_err(|what| SiteError::Damaged(path.clone(), what))?;
        self.files.hold(&path, page.parts.len() * PART_BYTES)?;
        let page = Arc::new(page);
        self.pages.insert(name, page.clone());
        Ok(page)
    }

    /// Walks the entries of an order from `at` on, until `visit` says false.
    fn walk(
        &mut self,
        order: u8,
        at: &[u8],
        upward: bool,
        visit: &mut dyn FnMut(Position, Entry) -> bool,
    ) -> Result<(), SiteError> {
        let definition = self.definition.clone();
        self.walk_parts(usize::from(order), at, upward, &mut |position, part| {
            Ok(visit(Position::from_bytes(position)?, Entry::from_bytes(part, &definition)?))
        })
    }

    /// The same of any tree of pages: orders come first, nodes of those that have some behind them, then groups, filters last.
    fn walk_parts(&mut self, tree: usize, at: &[u8], upward: bool, visit: &mut Visit<'_>) -> Result<(), SiteError> {
        let Some(root) = self.head.roots.get(tree).copied() else {
            return Err(SiteError::Damaged("head".into(), Malformed("an order without pages")));
        };
        let root = Below { name: root, first: None, end: None, height: HEIGHT_MAX };
        self.descend(&root, at, upward, visit).map(drop)
    }

    fn descend(
        &mut self,
        below: &Below<'_>,
        at: &[u8],
        upward: bool,
        visit: &mut Visit<'_>,
    ) -> Result<bool, SiteError> {
        let page = self.page(below.name)?;
        let damaged = |what| SiteError::Damaged(path_of(&below.name), what);
        below.check(&page).map_err(damaged)?;
        // Parts that begin at `at` or behind it, and before them the one that may hold it.
        let split = page.parts.partition_point(|(first, _)| &first[..] < at);
        let first = if page.is_leaf { split } else { split.saturating_sub(1) };
        let chosen: Vec<usize> = if upward { (first..page.parts.len()).collect() } else { (0..split).rev().collect() };
        if !page.is_leaf {
            let names = chosen.iter().filter_map(|index| page.parts[*index].1[..].try_into().ok());
            self.files.fetch.soon(HEIGHT_MAX - below.height, &mut names.map(|name| path_of(&name)));
        }
        for index in chosen {
            let (position, part) = &page.parts[index];
            let goes_on = if page.is_leaf {
                visit(position, part).map_err(damaged)?
            } else {
                let name = part[..].try_into().map_err(|_| damaged(Malformed("the name of a page")))?;
                let end = page.parts.get(index + 1).map(|(next, _)| &next[..]).or(below.end);
                let next = Below { name, first: Some(position), end, height: below.height - 1 };
                self.descend(&next, at, upward, visit)?
            };
            if !goes_on {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A page below another one, and what it may hold: from where the other one says that it begins to where the next begins.
/// Without that a page could be named a thousand times by each of the pages above it.
struct Below<'a> {
    name: Name,
    first: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
    height: usize,
}

impl Below<'_> {
    fn check(&self, page: &Page) -> Result<(), Malformed> {
        let begins = page.parts.first().map(|(first, _)| &first[..]);
        let last = page.parts.last().map(|(last, _)| &last[..]);
        if (self.first.is_some() && begins != self.first) || (self.end.is_some() && last >= self.end) {
            return Err(Malformed("a page that is not where it belongs"));
        }
        if self.height == 0 { Err(Malformed("pages below pages without end")) } else { Ok(()) }
    }
}

impl<F: Fetch> Shelf for Site<F> {
    type Error = SiteError;

    fn definition(&self) -> &Definition {
        &self.definition
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

    fn node(&mut self, order: u8, level: u8, from: &[u8]) -> Result<Option<NodeEntry>, SiteError> {
        let Some(index) = self.definition.nodes.iter().position(|of| of.order == order) else { return Ok(None) };
        let definition = self.definition.clone();
        let mut found = None;
        let mut read = |position: &[u8], part: &[u8]| {
            if position.starts_with(&[1, level]) {
                let entry = NodeEntry::from_bytes(part, &definition)?;
                if entry.place() != position {
                    return Err(Malformed("a node in another node's place"));
                }
                found = Some(entry);
            }
            Ok(false)
        };
        self.walk_parts(self.definition.orders.len() + index, &place(level, from), true, &mut read)?;
        Ok(found)
    }

    fn group(&mut self, place: &[u8]) -> Result<Option<SignedGroup>, SiteError> {
        if !matches!(self.definition.scheme, Scheme::Group(_)) {
            return Ok(None);
        }
        let (definition, mut found) = (self.definition.clone(), None);
        let tree = definition.orders.len() + definition.nodes.len();
        // The last one that begins at the place, or before.
        let behind = [place, &[0]].concat();
        self.walk_parts(tree, &behind, false, &mut |_, part| {
            found = Some(SignedGroup::from_bytes(part, &definition)?);
            Ok(false)
        })?;
        Ok(found)
    }

    fn filter(&mut self, order: u8, value: &[u8]) -> Result<Option<SignedFilter>, SiteError> {
        let Some(at) = self.definition.filters.iter().position(|filtered| *filtered == order) else {
            return Ok(None);
        };
        let misfit = |what| SiteError::Damaged("head".into(), what);
        let behind = Edge::after(&Filter::place_of(value).map_err(misfit)?);
        let (definition, mut found) = (self.definition.clone(), None);
        // The last roots are those of filters, whatever else there is.
        let first = self.head.roots.len().checked_sub(self.definition.filters.len());
        let first = first.ok_or_else(|| misfit(Malformed("filters without pages")))?;
        self.walk_parts(first + at, behind.bytes(), false, &mut |_, part| {
            found = Some(SignedFilter::from_bytes(part, &definition)?);
            Ok(false)
        })?;
        Ok(found)
    }
}
