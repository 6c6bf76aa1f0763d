//! Nodes: pages of entries, written once when they are full.
//!
//! ```text
//! 0          1        2            6               8              10
//! | 2 u8     | level  | series u32 | entries u16   | bytes n u16  | columns (n bytes) | zeros to the end of the page
//! columns, as integers: first times | how long each goes on | points, less 1 | pages | writes
//! ```

use alloc::vec::Vec;

use counterfoil_log::View;

use crate::Error;
use crate::codec::{Nonsense, integers};
use crate::edge::{Entry, LEVELS_MAX};
use crate::pages::{PageAt, Pages};
use crate::points::Span;
use crate::state::State;

const FORMAT: u8 = 2;
const HEAD_BYTES: usize = 10;
/// Entries that a node has at most.
pub(crate) const ENTRIES_MAX: usize = 4096;

/// Entries as a node.
pub(crate) struct PackedNode {
    pub(crate) count: usize,
    pub(crate) payload: Vec<u8>,
}

/// Packs as many entries as fit into a node of a level (1 is the lowest), from the first one on.
pub(crate) fn pack(series: u32, level: usize, entries: &[Entry], page_bytes: usize) -> PackedNode {
    let (mut most, mut too_many) = (0, entries.len().min(ENTRIES_MAX) + 1);
    let mut best = Vec::new();
    let mut next = too_many - 1;
    while most + 1 < too_many {
        let payload = encode(series, level, &entries[..next]);
        if payload.len() <= page_bytes {
            (most, best) = (next, payload);
        } else {
            too_many = next;
        }
        next = (most + too_many) / 2;
    }
    best.resize(page_bytes, 0);
    PackedNode { count: most, payload: best }
}

fn encode(series: u32, level: usize, entries: &[Entry]) -> Vec<u8> {
    let mut payload = Vec::from([FORMAT, level as u8]);
    payload.extend_from_slice(&series.to_le_bytes());
    payload.extend_from_slice(&(entries.len() as u16).to_le_bytes());
    payload.extend_from_slice(&[0, 0]);
    let mut column = |value: &dyn Fn(&Entry) -> i64| {
        integers::encode(&entries.iter().map(value).collect::<Vec<_>>(), &mut payload);
    };
    column(&|entry| entry.first);
    column(&|entry| entry.last.wrapping_sub(entry.first));
    column(&|entry| entry.points as i64 - 1);
    column(&|entry| entry.at.page as i64);
    column(&|entry| entry.at.write as i64);
    let body = payload.len() - HEAD_BYTES;
    payload[8..HEAD_BYTES].copy_from_slice(&(body.min(usize::from(u16::MAX)) as u16).to_le_bytes());
    payload
}

/// Reads the entries of a node, and that it is what its parent says.
pub(crate) fn read(
    view: &dyn View,
    pages: &Pages,
    (series, level): (u32, usize),
    parent: &Entry,
) -> Result<Vec<Entry>, Error> {
    let payload = pages.read(view, parent.at)?;
    let entries = decode(&payload, series, level).map_err(Error::nonsense("node"))?;
    let over = Entry::over(&entries, parent.at);
    if over != Some(*parent) { Err(Error::Corrupt { what: "node" }) } else { Ok(entries) }
}

fn decode(payload: &[u8], series: u32, level: usize) -> Result<Vec<Entry>, Nonsense> {
    let (head, body) = payload.split_first_chunk::<HEAD_BYTES>().ok_or(Nonsense)?;
    let is_it = head[0] == FORMAT && usize::from(head[1]) == level && head[2..6] == series.to_le_bytes();
    let count = usize::from(u16::from_le_bytes([head[6], head[7]]));
    let mut bytes = body.get(..usize::from(u16::from_le_bytes([head[8], head[9]]))).ok_or(Nonsense)?;
    if !is_it || count > ENTRIES_MAX {
        return Err(Nonsense);
    }
    let mut column = || {
        let mut values = Vec::new();
        integers::decode(&mut bytes, count, &mut values).map(|()| values)
    };
    let (firsts, longs, points, pages, writes) = (column()?, column()?, column()?, column()?, column()?);
    let entry = |at: usize| Entry {
        first: firsts[at],
        last: firsts[at].wrapping_add(longs[at]),
        points: (points[at] as u64).wrapping_add(1),
        at: PageAt { page: pages[at] as u64, write: writes[at] as u64 },
    };
    let entries: Vec<Entry> = (0..count).map(entry).collect();
    let in_order = entries.iter().all(|entry| entry.first <= entry.last && entry.points < 1 << 48)
        && entries.windows(2).all(|pair| pair[0].last < pair[1].first);
    if in_order && bytes.is_empty() { Ok(entries) } else { Err(Nonsense) }
}

/// Visits every page of a table, with its level: leaves are of level 0.
pub(crate) fn visit(
    view: &dyn View,
    pages: &Pages,
    state: &State,
    visit: &mut dyn FnMut(usize, &Entry) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, series) in (0..).zip(&state.series) {
        let mut ahead: Vec<_> = series.edge.entries().map(|(level, _, entry)| (level, entry)).collect();
        while let Some((level, entry)) = ahead.pop() {
            visit(level, &entry)?;
            if level > 0 {
                let under = read(view, pages, (number, level), &entry)?;
                ahead.extend(under.into_iter().map(|entry| (level - 1, entry)));
            }
        }
    }
    Ok(())
}

/// The leaves under an edge that have points of a span of time, the oldest first.
pub(crate) struct Walk {
    series: u32,
    span: Span,
    /// Entries still to be visited, the next one last, with their level.
    ahead: Vec<(usize, Entry)>,
}

impl Walk {
    pub(crate) fn new(series: u32, edge: &crate::edge::Edge, span: Span) -> Walk {
        let mut ahead: Vec<_> = edge.entries().map(|(level, _, entry)| (level, entry)).collect();
        ahead.retain(|(_, entry)| entry.span().meets(&span));
        ahead.reverse();
        Walk { series, span, ahead }
    }

    /// The next leaf.
    pub(crate) fn next(&mut self, view: &dyn View, pages: &Pages) -> Result<Option<Entry>, Error> {
        while let Some((level, entry)) = self.ahead.pop() {
            if level == 0 {
                return Ok(Some(entry));
            }
            debug_assert!(level < LEVELS_MAX, "the journal was checked");
            let entries = read(view, pages, (self.series, level), &entry)?;
            let within = entries.into_iter().rev().filter(|entry| entry.span().meets(&self.span));
            self.ahead.extend(within.map(|entry| (level - 1, entry)));
        }
        Ok(None)
    }

    /// The first time of what comes after the leaf given last.
    pub(crate) fn goes_on_at(&self) -> Option<i64> {
        self.ahead.last().map(|(_, entry)| entry.first)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_node_holds_hundreds_of_leaves() {
        let entry = |at: i64| Entry {
            first: at * 1_700_000_000 + at * 7919 % 4096,
            last: at * 1_700_000_000 + 1_600_000_000 + at * 104_729 % 8192,
            points: 1500 + (at * 7919 % 61) as u64,
            at: PageAt { page: (at * 101 + at % 3) as u64, write: (at * 100 + 7) as u64 },
        };
        let entries: Vec<_> = (0..3000).map(entry).collect();
        let packed = pack(5, 1, &entries, 4072);
        assert!((300..1000).contains(&packed.count), "{}", packed.count);
        assert_eq!(decode(&packed.payload, 5, 1), Ok(entries[..packed.count].to_vec()));
        assert_eq!(decode(&packed.payload, 6, 1), Err(Nonsense));
        assert_eq!(decode(&packed.payload, 5, 2), Err(Nonsense));
    }

    proptest! {
        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut payload = Vec::from([FORMAT, 1, 5, 0, 0, 0]);
            payload.extend(bytes);
            if let Ok(entries) = decode(&payload, 5, 1) {
                prop_assert!(entries.len() <= ENTRIES_MAX);
            }
        }
    }
}
