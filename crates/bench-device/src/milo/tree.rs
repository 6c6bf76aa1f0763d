//! A B+-tree of keys and rows over a translation layer, written through.
//!
//! ```text
//! leaf    2 count | 1 height 0 | key 10, row 4 ...                         145 entries
//! inner   2 count | 1 height   | lowest key 10, row 4, page 4 below ...    113 entries
//! ```

use std::collections::VecDeque;

use super::ftl::{Ftl, Page};
use super::paper::Key;

const HEAD_BYTES: usize = 3;
const ENTRY_BYTES: usize = 14;
const CHILD_BYTES: usize = 4;
const PAGE_BYTES: usize = 2048;
/// How full leaves are that grew by themselves: what the paper says of B-trees (4.3.2).
const FILL: f64 = 0.66;
/// Pages that all trees keep in memory together: 32 KB.
const PAGES_KEPT: usize = 16;

type Entry = (Key, u32);

struct Node {
    height: u8,
    entries: Vec<(Entry, u32)>,
}

impl Node {
    fn entry_bytes(height: u8) -> usize {
        ENTRY_BYTES + if height == 0 { 0 } else { CHILD_BYTES }
    }

    fn room(height: u8) -> usize {
        (PAGE_BYTES - HEAD_BYTES) / Self::entry_bytes(height)
    }

    fn parse(page: &Page) -> Self {
        let (count, height) = (u16::from_le_bytes([page[0], page[1]]), page[2]);
        let number = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        let entry = |bytes: &[u8]| {
            let key = bytes[..10].try_into().expect("ten bytes");
            ((key, number(&bytes[10..])), if height == 0 { 0 } else { number(&bytes[14..]) })
        };
        let entries = page[HEAD_BYTES..].chunks_exact(Self::entry_bytes(height)).take(usize::from(count)).map(entry);
        Self { height, entries: entries.collect() }
    }

    fn page(&self) -> Page {
        let mut page = [0; PAGE_BYTES];
        page[..2].copy_from_slice(&(self.entries.len() as u16).to_le_bytes());
        page[2] = self.height;
        let slots = page[HEAD_BYTES..].chunks_exact_mut(Self::entry_bytes(self.height));
        for (slot, ((key, row), child)) in slots.zip(&self.entries) {
            slot[..10].copy_from_slice(key);
            slot[10..14].copy_from_slice(&row.to_le_bytes());
            if self.height > 0 {
                slot[14..].copy_from_slice(&child.to_le_bytes());
            }
        }
        page
    }

    /// The last entry that is not above one.
    fn place(&self, sought: &Entry) -> usize {
        self.entries.partition_point(|(entry, _)| entry <= sought).saturating_sub(1)
    }
}

/// Pages of a translation layer: which is the next that was never used, and which are in memory.
pub struct Pages {
    pub ftl: Ftl,
    next: u64,
    kept: VecDeque<(u64, Page)>,
}

impl Pages {
    pub fn new(ftl: Ftl) -> Self {
        Self { ftl, next: 0, kept: VecDeque::new() }
    }

    pub fn take(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    pub fn read(&mut self, page: u64) -> Page {
        let place = self.kept.iter().position(|(kept, _)| *kept == page);
        let bytes = match place.and_then(|place| self.kept.remove(place)) {
            Some((_, bytes)) => bytes,
            None => self.ftl.read(page),
        };
        self.keep(page, bytes);
        bytes
    }

    pub fn write(&mut self, page: u64, bytes: &Page) {
        self.kept.retain(|(kept, _)| *kept != page);
        self.keep(page, *bytes);
        self.ftl.write(page, bytes);
    }

    fn keep(&mut self, page: u64, bytes: Page) {
        if self.kept.len() == PAGES_KEPT {
            self.kept.pop_front();
        }
        self.kept.push_back((page, bytes));
    }
}

pub struct Tree {
    root: u64,
}

impl Tree {
    /// A tree of sorted entries, as full as one that grew.
    pub fn build(pages: &mut Pages, entries: Vec<Entry>) -> Self {
        let (mut height, mut level) = (0, entries.into_iter().map(|entry| (entry, 0)).collect::<Vec<(Entry, u32)>>());
        loop {
            let in_page = ((Node::room(height) as f64 * FILL) as usize).max(2);
            let mut above = Vec::new();
            for part in level.chunks(in_page) {
                let page = pages.take();
                pages.write(page, &Node { height, entries: part.to_vec() }.page());
                above.push((part[0].0, page as u32));
            }
            if above.len() <= 1 {
                return Self { root: above.first().map_or(0, |(_, page)| u64::from(*page)) };
            }
            (level, height) = (above, height + 1);
        }
    }

    /// Inserts an entry, and writes every page that it changed.
    pub fn insert(&mut self, pages: &mut Pages, entry: Entry) {
        if let Some(split) = insert_below(pages, self.root, entry) {
            let old = Node::parse(&pages.read(self.root));
            let entries = vec![(old.entries[0].0, self.root as u32), split];
            let root = pages.take();
            pages.write(root, &Node { height: old.height + 1, entries }.page());
            self.root = root;
        }
    }

    /// Rows with a key.
    #[cfg(test)]
    fn lookup(&self, pages: &mut Pages, key: &Key) -> Vec<u32> {
        let mut found = Vec::new();
        look_below(pages, self.root, key, &mut found);
        found
    }
}

fn insert_below(pages: &mut Pages, page: u64, entry: Entry) -> Option<(Entry, u32)> {
    let mut node = Node::parse(&pages.read(page));
    if node.height == 0 {
        let place = node.entries.partition_point(|(other, _)| *other <= entry);
        node.entries.insert(place, (entry, 0));
    } else {
        let place = node.place(&entry);
        let split = insert_below(pages, u64::from(node.entries[place].1), entry)?;
        node.entries.insert(place + 1, split);
    }
    let mut split = None;
    if node.entries.len() > Node::room(node.height) {
        let upper = Node { height: node.height, entries: node.entries.split_off(node.entries.len() / 2) };
        let new = pages.take();
        pages.write(new, &upper.page());
        split = Some((upper.entries[0].0, new as u32));
    }
    pages.write(page, &node.page());
    split
}

#[cfg(test)]
fn look_below(pages: &mut Pages, page: u64, key: &Key, found: &mut Vec<u32>) {
    let node = Node::parse(&pages.read(page));
    if node.height == 0 {
        found.extend(node.entries.iter().filter(|((other, _), _)| other == key).map(|((_, row), _)| row));
        return;
    }
    let first = node.place(&(*key, 0));
    for ((lowest, _), child) in &node.entries[first..] {
        if lowest > key {
            break;
        }
        look_below(pages, u64::from(*child), key, found);
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_flash_sim::Dice;

    use super::*;

    #[test]
    fn a_tree_finds_what_a_list_finds() {
        let key = |number: u64| format!("VAL_{number:06}").into_bytes().try_into().expect("ten bytes");
        for distinct in [7, 900, 100_000] {
            let (mut dice, mut pages) = (Dice::new(distinct), Pages::new(Ftl::new(400)));
            let mut entries: Vec<Entry> = (0..3000).map(|row| (key(dice.below(distinct)), row)).collect();
            entries.sort_unstable();
            let mut tree = Tree::build(&mut pages, entries.clone());
            for row in 3000..9000 {
                let entry = (key(dice.below(distinct)), row);
                tree.insert(&mut pages, entry);
                entries.push(entry);
            }
            for _ in 0..50 {
                let sought = key(dice.below(distinct));
                let mut found = tree.lookup(&mut pages, &sought);
                found.sort_unstable();
                let expected: Vec<u32> =
                    entries.iter().filter(|(key, _)| *key == sought).map(|(_, row)| *row).collect();
                assert_eq!(found.len(), expected.len());
                assert!(expected.iter().all(|row| found.contains(row)));
            }
        }
    }
}
