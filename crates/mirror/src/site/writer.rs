//! Writing a site: new pages first, the head last, and then away with what no head names any more.
//!
//! A cut before the head leaves the site as it was, and some pages that nobody asks for; the next update removes them.

use std::collections::HashSet;
use std::io;
use std::path::Path;

use counterfoil_proof::bytes::Writer;
use counterfoil_proof::{Definition, Malformed, Manifest, Scheme};

use super::destination::{Destination, OwnFolder};
use super::layout::{
    FILE_BYTES_MAX, HEIGHT_MAX, Head, Name, Page, SUMMARIES_PER_FILE, name_of, path_of, summaries_path,
};
use crate::entry::Entry;
use crate::filters::SignedFilter;
use crate::memory::MemoryShelf;
use crate::shelf::Shelf as _;

/// An entry ends its page if its number says so: one of so many does.
const ENTRIES_PER_PAGE: u64 = 32;
/// A page ends in any case before it has more bytes than this.
const PAGE_BYTES_MAX: usize = 1 << 20;

const ABOUT: &str = "This folder is a published table. Any web server may serve it; nobody can change it unnoticed.\n\
Read it with: counterfoil ask --server URL --owner OWNER \"SELECT ...\"\n";

/// Writes what is on `shelf` into `folder`, with its manifest and all its summaries from period 0 on. Gives the number of
/// files and bytes written.
///
/// # Errors
/// Those of the file system, [`io::ErrorKind::AlreadyExists`]: another table is there, and [`io::ErrorKind::InvalidData`]: a shelf without summaries or with values of other types.
pub fn write(shelf: &MemoryShelf, manifest: &[u8], summaries: &[Vec<u8>], folder: &Path) -> io::Result<(u64, u64)> {
    write_to(shelf, manifest, summaries, &mut OwnFolder::make(folder)?)
}

/// The same into another destination.
///
/// # Errors
/// Those of the destination, [`io::ErrorKind::AlreadyExists`]: another table is there, and [`io::ErrorKind::InvalidData`].
pub fn write_to(
    shelf: &MemoryShelf,
    manifest: &[u8],
    summaries: &[Vec<u8>],
    destination: &mut dyn Destination,
) -> io::Result<(u64, u64)> {
    let invalid = |what: Malformed| io::Error::new(io::ErrorKind::InvalidData, what);
    keep_another(shelf.definition(), destination)?;
    let mut site = Files { destination, files: 0, bytes: 0 };
    let before = site.destination.read("head")?.and_then(|bytes| Head::from_bytes(&bytes).ok());
    let mut live = HashSet::new();
    let mut roots = Vec::new();
    for order in 0..shelf.definition().orders.len() as u8 {
        let parts = entries(shelf, order).map_err(invalid)?;
        roots.push(tree(parts, &mut site, &mut live)?.map_err(invalid)?);
    }
    for of in &shelf.definition().nodes {
        let parts = nodes(shelf, of.order).map_err(invalid)?;
        roots.push(tree(parts, &mut site, &mut live)?.map_err(invalid)?);
    }
    if matches!(shelf.definition().scheme, Scheme::Group(_)) {
        roots.push(tree(groups_of(shelf), &mut site, &mut live)?.map_err(invalid)?);
    }
    for order in &shelf.definition().filters {
        roots.push(tree(filters(shelf, *order), &mut site, &mut live)?.map_err(invalid)?);
    }
    let last = summaries.len().checked_sub(1).ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))? as u64;
    for (at, part) in summaries.chunks(SUMMARIES_PER_FILE as usize).enumerate() {
        let mut writer = Writer::default();
        part.iter().for_each(|summary| {
            writer.string(summary);
        });
        site.put(&summaries_path(at as u64 * SUMMARIES_PER_FILE), &writer.0)?;
    }
    site.put("about.txt", ABOUT.as_bytes())?;
    site.put("manifest", manifest)?;
    // A head that is there before what it names would lead readers to what is not.
    site.destination.settle()?;
    let first = shelf.oldest().min(last);
    site.put("head", &Head { last, first, roots, answers: false }.to_bytes())?;
    site.destination.settle()?;
    // Readers that began with the head of before go on with its pages.
    for root in before.iter().flat_map(|head| &head.roots) {
        keep(site.destination, *root, HEIGHT_MAX, &mut live)?;
    }
    sweep(site.destination, &live)?;
    Ok((site.files, site.bytes))
}

/// Refuses a place in which another table is published, whose readers would call all of this forged; and one with files of
/// somebody else that have the names of these.
fn keep_another(own: &Definition, destination: &mut dyn Destination) -> io::Result<()> {
    let taken = |what| Err(io::Error::new(io::ErrorKind::AlreadyExists, what));
    match destination.read("manifest")?.and_then(|bytes| Manifest::unchecked(&bytes).ok()) {
        Some(there) if there.definition.table == own.table => return Ok(()),
        Some(there) => return taken(format!("another table is published here already, {}", there.definition.name)),
        None => {}
    }
    // What a cut or damage has left of this table says so.
    if destination.read("about.txt")?.is_some_and(|about| about == ABOUT.as_bytes()) {
        return Ok(());
    }
    for name in ["head", "manifest", "about.txt"] {
        if destination.read(name)?.is_some() {
            return taken(format!("a file called {name} is here that belongs to no published table"));
        }
    }
    Ok(())
}

/// A part of a page: where it begins, its bytes, and the mark that says whether a page ends with it.
type Part = (Vec<u8>, Vec<u8>, u64);

struct Files<'a> {
    destination: &'a mut dyn Destination,
    files: u64,
    bytes: u64,
}

impl Files<'_> {
    /// Puts a file in its place; one that is there already with these bytes is left.
    fn put(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        if bytes.len() > FILE_BYTES_MAX {
            let text = format!("{path} would have {} bytes, and readers take {FILE_BYTES_MAX}", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if self.destination.has(path, bytes)? {
            return Ok(());
        }
        self.destination.put(path, bytes)?;
        self.files += 1;
        self.bytes += bytes.len() as u64;
        Ok(())
    }
}

/// The entries of an order, as its lowest pages hold them.
fn entries(shelf: &MemoryShelf, order: u8) -> Result<Vec<Part>, Malformed> {
    let entries = shelf.rids(order).filter_map(|rid| shelf.entry(rid));
    let part = |entry: &Entry| {
        let position = entry.position(shelf.definition(), order)?;
        Ok((position.bytes().to_vec(), entry.to_bytes(shelf.definition())?, entry.stamp.rid))
    };
    entries.map(part).collect()
}

/// The nodes of an order, by level and where they begin.
fn nodes(shelf: &MemoryShelf, order: u8) -> Result<Vec<Part>, Malformed> {
    let nodes = shelf.nodes.of(order);
    nodes.map(|entry| Ok((entry.place(), entry.to_bytes(shelf.definition())?, entry.stamp.rid))).collect()
}

/// The filters of an order in the same way.
fn filters(shelf: &MemoryShelf, order: u8) -> Vec<Part> {
    let part = |signed: &SignedFilter| (signed.filter.place().bytes().to_vec(), signed.to_bytes(), signed.stamp.rid);
    shelf.filters(order).map(part).collect()
}

/// The groups in the same way.
fn groups_of(shelf: &MemoryShelf) -> Vec<Part> {
    shelf.groups.from(&[]).map(|group| (group.low.clone(), group.to_bytes(), group.stamp.rid)).collect()
}

/// Writes the pages of an order's entries, nodes, groups or filters from below and gives the root's name.
fn tree(mut parts: Vec<Part>, site: &mut Files<'_>, live: &mut HashSet<Name>) -> io::Result<Result<Name, Malformed>> {
    let mut is_leaf = true;
    loop {
        let mut above: Vec<Part> = Vec::new();
        for group in groups(&parts) {
            let first = group[0].0.clone();
            let page = Page { is_leaf, parts: group.iter().map(|(at, part, _)| (at.clone(), part.clone())).collect() };
            let bytes = page.to_bytes();
            let name = name_of(&bytes);
            site.put(&path_of(&name), &bytes)?;
            live.insert(name);
            // What decides where the page above ends is where this one ended, scaled: not its bytes, which change.
            let mark = group.last().map_or(0, |(_, _, mark)| mark / ENTRIES_PER_PAGE);
            above.push((first, name.to_vec(), mark));
        }
        match &above[..] {
            [] => return Ok(Err(Malformed("a table without a head or tail, or without its nodes or groups"))),
            [(_, name, _)] => return Ok(Ok(name[..].try_into().unwrap_or_default())),
            _ => parts = above,
        }
        is_leaf = false;
    }
}

/// Parts in pages: a page ends where a mark is a multiple, or before it grows too large.
fn groups(parts: &[Part]) -> Vec<&[Part]> {
    let mut groups = Vec::new();
    let (mut start, mut bytes) = (0, 0);
    for (at, (position, part, mark)) in parts.iter().enumerate() {
        bytes += position.len() + part.len() + 8;
        let next = parts.get(at + 1).map_or(0, |(position, part, _)| position.len() + part.len() + 8);
        // Two at least, so that each level is half of the one below.
        let may_end = at - start >= 1;
        if (may_end && (mark % ENTRIES_PER_PAGE == 0 || bytes + next > PAGE_BYTES_MAX)) || at + 1 == parts.len() {
            groups.push(&parts[start..=at]);
            (start, bytes) = (at + 1, 0);
        }
    }
    groups
}

/// Names the pages below `root` too, as far as they are there.
fn keep(destination: &mut dyn Destination, root: Name, height: usize, live: &mut HashSet<Name>) -> io::Result<()> {
    if height == 0 || !live.insert(root) {
        return Ok(());
    }
    let page = destination.read(&path_of(&root))?.and_then(|bytes| Page::from_bytes(&bytes).ok());
    if let Some(page) = page.filter(|page| !page.is_leaf) {
        for (_, name) in page.parts {
            if let Ok(name) = name[..].try_into() {
                keep(destination, name, height - 1, live)?;
            }
        }
    }
    Ok(())
}

/// Removes the pages that no head names. What else somebody put here stays.
fn sweep(destination: &mut dyn Destination, live: &HashSet<Name>) -> io::Result<()> {
    let live: HashSet<_> = live.iter().map(path_of).collect();
    for path in destination.pages()? {
        if !live.contains(&path) {
            destination.remove(&path)?;
        }
    }
    Ok(())
}
