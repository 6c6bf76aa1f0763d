//! Nodes: pages of entries, written once when they are full.
//!
//! ```text
//! 0          1        2            6               8              10
//! | 2 u8     | level  | series u32 | entries u16   | bytes n u16  | columns (n bytes) | zeros to the end of the page
//! columns, as integers: first times | how long each goes on | points, less 1 | pages | writes
//! ```
//! Of a table with summaries the first byte is 3, and they come behind the columns (`digest`).

use alloc::vec::Vec;

use counterfoil_log::View;

use crate::Error;
use crate::codec::{Nonsense, integers};
use crate::edge::{Entry, LEVELS_MAX};
use crate::files::Files;
use crate::pages::PageAt;
use crate::points::Span;
use crate::state::State;

const FORMAT: u8 = 2;
const FORMAT_WITH_SUMMARIES: u8 = 3;
const HEAD_BYTES: usize = 10;
/// Entries that a node has at most.
pub(crate) const ENTRIES_MAX: usize = 4096;

/// Entries as a node.
pub(crate) struct PackedNode {
    pub(crate) count: usize,
    /// Bytes of the page that they need.
    pub(crate) bytes: usize,
    pub(crate) payload: Vec<u8>,
}

fn format(files: &Files) -> u8 {
    if files.summarized().is_empty() { FORMAT } else { FORMAT_WITH_SUMMARIES }
}

/// Packs as many entries as fit into a node of a level (1 is the lowest), from the first one on.
pub(crate) fn pack(series: u32, level: usize, entries: &[Entry], files: &Files) -> PackedNode {
    let page_bytes = files.pages.bytes as usize;
    let (mut most, mut too_many) = (0, entries.len().min(ENTRIES_MAX) + 1);
    let mut best = Vec::new();
    let mut next = too_many - 1;
    while most + 1 < too_many {
        let payload = encode(series, level, &entries[..next], files);
        if payload.len() <= page_bytes {
            (most, best) = (next, payload);
        } else {
            too_many = next;
        }
        next = (most + too_many) / 2;
    }
    let bytes = best.len();
    best.resize(page_bytes, 0);
    PackedNode { count: most, bytes, payload: best }
}

fn encode(series: u32, level: usize, entries: &[Entry], files: &Files) -> Vec<u8> {
    let mut payload = Vec::from([format(files), level as u8]);
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
    files.shape().encode(&entries.iter().collect::<Vec<_>>(), &mut payload);
    let body = payload.len() - HEAD_BYTES;
    payload[8..HEAD_BYTES].copy_from_slice(&(body.min(usize::from(u16::MAX)) as u16).to_le_bytes());
    payload
}

/// Reads the entries of a node, and that it is what its parent says.
pub(crate) fn read(
    view: &dyn View,
    files: &Files,
    (series, level): (u32, usize),
    parent: &Entry,
) -> Result<Vec<Entry>, Error> {
    let payload = files.pages.read(view, parent.at)?;
    let entries = decode(&payload, series, level, files).map_err(Error::nonsense("node"))?;
    let over = Entry::over(&entries, parent.at);
    if over.as_ref() != Some(parent) { Err(Error::Corrupt { what: "node" }) } else { Ok(entries) }
}

/// The series that a node is of, and its first time.
pub(crate) fn place(payload: &[u8], files: &Files) -> Result<(u32, i64), Nonsense> {
    let (_, rest) = payload.split_first_chunk::<1>().ok_or(Nonsense)?;
    let (level, rest) = rest.split_first().ok_or(Nonsense)?;
    let (series, _) = rest.split_first_chunk::<4>().ok_or(Nonsense)?;
    let series = u32::from_le_bytes(*series);
    let entries = decode(payload, series, usize::from(*level), files)?;
    entries.first().map(|entry| (series, entry.first)).ok_or(Nonsense)
}

fn decode(payload: &[u8], series: u32, level: usize, files: &Files) -> Result<Vec<Entry>, Nonsense> {
    let (head, body) = payload.split_first_chunk::<HEAD_BYTES>().ok_or(Nonsense)?;
    let is_it = head[0] == format(files) && usize::from(head[1]) == level && head[2..6] == series.to_le_bytes();
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
        summaries: None,
    };
    let mut entries: Vec<Entry> = (0..count).map(entry).collect();
    let in_order = entries.iter().all(|entry| entry.first <= entry.last && entry.points < 1 << 48)
        && entries.windows(2).all(|pair| pair[0].last < pair[1].first);
    if !in_order {
        return Err(Nonsense);
    }
    files.shape().decode(&mut entries.iter_mut().collect::<Vec<_>>(), &mut bytes)?;
    if bytes.is_empty() { Ok(entries) } else { Err(Nonsense) }
}

/// Visits every page of a table, with its level: leaves are of level 0.
pub(crate) fn visit(
    view: &dyn View,
    files: &Files,
    state: &State,
    visit: &mut dyn FnMut(usize, &Entry) -> Result<(), Error>,
) -> Result<(), Error> {
    for (number, series) in (0..).zip(&state.series) {
        let mut ahead: Vec<_> = series.edge.entries().map(|(level, _, entry)| (level, entry)).collect();
        while let Some((level, entry)) = ahead.pop() {
            visit(level, &entry)?;
            if level > 0 {
                let under = read(view, files, (number, level), &entry)?;
                ahead.extend(under.into_iter().map(|entry| (level - 1, entry)));
            }
        }
    }
    Ok(())
}

/// Whether an entry is a leaf without points outside a span.
fn is_whole(level: usize, entry: &Entry, span: &Span) -> bool {
    level == 0 && span.contains(entry.first) && span.contains(entry.last)
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
    pub(crate) fn next(&mut self, view: &dyn View, files: &Files) -> Result<Option<Entry>, Error> {
        while let Some((level, entry)) = self.ahead.pop() {
            if level == 0 {
                return Ok(Some(entry));
            }
            debug_assert!(level < LEVELS_MAX, "the journal was checked");
            let entries = read(view, files, (self.series, level), &entry)?;
            let within = entries.into_iter().rev().filter(|entry| entry.span().meets(&self.span));
            self.ahead.extend(within.map(|entry| (level - 1, entry)));
        }
        Ok(None)
    }

    /// The next leaf, if it is known by now, has so many points at most, and none of them outside the span.
    pub(crate) fn next_whole(&mut self, points_max: usize) -> Option<Entry> {
        let span = self.span;
        self.ahead
            .pop_if(|(level, entry)| is_whole(*level, entry, &span) && entry.points <= points_max as u64)
            .map(|(_, entry)| entry)
    }

    /// Points of the next leaves that [`Walk::next_whole`] gives one after the other while they are so many at most.
    pub(crate) fn points_whole(&self, points_max: usize) -> usize {
        let mut left = points_max as u64;
        for (level, entry) in self.ahead.iter().rev() {
            if !is_whole(*level, entry, &self.span) || entry.points > left {
                break;
            }
            left -= entry.points;
        }
        points_max - left as usize
    }

    /// The first time of what comes after the leaf given last.
    pub(crate) fn goes_on_at(&self) -> Option<i64> {
        self.ahead.last().map(|(_, entry)| entry.first)
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::string::String;

    use proptest::prelude::*;

    use super::*;
    use crate::column::{Kind, Value};
    use crate::digest::Summarized;
    use crate::points::Points;
    use crate::summary::{Held, Sum, Summary};
    use crate::wide::Wide;

    #[test]
    fn a_node_holds_hundreds_of_leaves() {
        let entry = |at: i64| Entry {
            first: at * 1_700_000_000 + at * 7919 % 4096,
            last: at * 1_700_000_000 + 1_600_000_000 + at * 104_729 % 8192,
            points: 1500 + (at * 7919 % 61) as u64,
            at: PageAt { page: (at * 101 + at % 3) as u64, write: (at * 100 + 7) as u64 },
            summaries: None,
        };
        let entries: Vec<_> = (0..3000).map(entry).collect();
        let files = Files::for_test(4072, &[Kind::Double], Summarized::default());
        let packed = pack(5, 1, &entries, &files);
        assert!((300..1000).contains(&packed.count), "{}", packed.count);
        assert_eq!(decode(&packed.payload, 5, 1, &files), Ok(entries[..packed.count].to_vec()));
        assert_eq!(decode(&packed.payload, 6, 1, &files), Err(Nonsense));
        assert_eq!(decode(&packed.payload, 5, 2, &files), Err(Nonsense));
    }

    #[test]
    fn a_node_with_summaries_is_what_the_specification_says() {
        let mut points = Points::new(&[Kind::Double]);
        for (time, value) in [(1000, Some(1.5)), (2000, Some(2.5)), (3000, None)] {
            points.push(time, [value.map(Value::Double)]);
        }
        let summarized = Summarized { columns: [0].to_vec(), quality: None };
        let summaries = summarized.of(&points, 0..3);
        let entry = Entry { first: 1000, last: 3000, points: 3, at: PageAt { page: 5, write: 9 }, summaries };
        let files = Files::for_test(1024, &[Kind::Double], summarized);
        let packed = pack(7, 1, core::slice::from_ref(&entry), &files);
        let bytes = packed.payload.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let hex: String = packed.payload[..bytes].iter().map(|byte| format!("{byte:02X}")).collect();
        let spec = include_str!("../../../SPEC.md");
        assert!(spec.contains(&format!("`{hex}`")), "the vector of SPEC, series, is `{hex}`");
        assert_eq!(decode(&packed.payload, 7, 1, &files), Ok([entry].to_vec()));
    }

    /// Entries with the worst summaries, so to speak: nothing in them is like anything else.
    #[test]
    fn any_two_entries_fit_into_a_node() {
        let wild = |at: i64| at.wrapping_mul(0x5851_F42D_4C95_7F2D);
        let summary = |kind: Kind, at: i64| Summary {
            count: 1 + (at as u64 & 1) * ((1 << 47) + 12345),
            good: 1,
            sum: Sum::stored(Wide::new(i128::from(wild(at)) << 62 | 1, -(at & 1) as i32 * 1000), at & 7)
                .expect("a sum"),
            least: wild(at) & i64::MAX,
            greatest: i64::MAX - (at & 1) * 7,
            first: Some(wild(at + 1)),
            last: Some(wild(at + 2)),
            lead: Some(wild(at) as u64 >> 1),
            area: Sum::stored(Wide::new(!(i128::from(wild(at)) << 62), (at & 1) as i32 * 900), at & 7).expect("a sum"),
            known: wild(at + 3) as u64 >> 1,
            held: Held::Value(wild(at + 4)),
            ..Summary::empty(kind)
        };
        for page_bytes in [256, 616, 1000, 4072, 16_000] {
            for kind in [Kind::Double, Kind::Integer] {
                let columns = Summarized::columns_max(page_bytes);
                let entry = |at: i64| Entry {
                    first: i64::MIN + at * (i64::MAX / 3 * 2),
                    last: i64::MIN + at * (i64::MAX / 3 * 2) + i64::MAX / 3 * 2 - 7 + at,
                    points: (1 << 48) - 1 - at as u64 * 77,
                    at: PageAt { page: wild(at) as u64, write: wild(at + 9) as u64 },
                    summaries: (columns > 0)
                        .then(|| (0..columns as i64).map(|c| summary(kind, c * 100 + at)).collect()),
                };
                let summarized = Summarized { columns: (0..columns as u32).collect(), quality: None };
                let files = Files::for_test(page_bytes as u32, &alloc::vec![kind; columns], summarized);
                assert_eq!(pack(0, 1, &[entry(0), entry(1)], &files).count, 2, "{columns} columns in {page_bytes}");
            }
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut payload = Vec::from([FORMAT, 1, 5, 0, 0, 0]);
            payload.extend(bytes);
            for (format, columns) in [(FORMAT, &[][..]), (FORMAT_WITH_SUMMARIES, &[0][..])] {
                payload[0] = format;
                let summarized = Summarized { columns: columns.to_vec(), quality: None };
                let files = Files::for_test(4072, &[Kind::Double], summarized);
                if let Ok(entries) = decode(&payload, 5, 1, &files) {
                    prop_assert!(entries.len() <= ENTRIES_MAX);
                }
            }
        }
    }
}
