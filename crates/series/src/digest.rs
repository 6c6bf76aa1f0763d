//! Summaries of entries as bytes: column by column, in nodes and in the journal.
//!
//! ```text
//! for each column that has summaries, of each 4,096 entries at most, one after another:
//!   points without a value | values not good                          integers
//!   least | greatest | value of the first point | of the last         each a column of the table, NULL where there is none
//!   sum: odd | exponents | low 64 bits | high bits less the sign      integers
//!   lead, -1 if there is none | area: as the sum                      integers
//!   time in which nothing is known | held: 0 to 3                     integers
//!   values held (where held is 3)                                     column
//! ```
//! Odd: 1 NaN, 2 infinity, 4 -infinity among what is summed, added up. Held: 0 as before, 1 nothing, 2 the last value, 3 another.
//! What is mostly zero, or the same, takes next to nothing.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::codec::{Nonsense, integers};
use crate::column::{Column, Kind, Values};
use crate::edge::Entry;
use crate::points::Points;
use crate::summary::{Held, Sum, Summary, double, rank_of};
use crate::wide::Wide;

/// Entries whose columns are written together.
const ENTRIES_MAX: usize = 4096;

/// Bytes at most that summaries of a column take in a node of two entries, and that such a node takes beside them: eleven columns of
/// integers that say nothing of each other, and five of values.
const COLUMN_BYTES: usize = 456;
const NODE_BYTES: usize = 160;

/// Which columns of a table have summaries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summarized {
    /// Their places among the columns: of integers or doubles, each once.
    pub columns: Vec<u32>,
    /// The column of integers that says of what quality the values of a point are.
    pub quality: Option<u32>,
}

impl Summarized {
    /// Columns that may have summaries where pages have so many bytes of payload: any two entries must fit into a node.
    pub fn columns_max(page_bytes: usize) -> usize {
        page_bytes.saturating_sub(NODE_BYTES) / COLUMN_BYTES
    }

    /// Whether they can be summarized.
    pub(crate) fn fits(&self, kinds: &[Kind]) -> bool {
        let kind = |column: &u32| kinds.get(*column as usize);
        let is_number = |column: &u32| kind(column).is_some_and(|kind| *kind != Kind::Text);
        let once = self.columns.iter().enumerate().all(|(at, column)| !self.columns[..at].contains(column));
        let quality = self.quality.iter().all(|column| kind(column) == Some(&Kind::Integer));
        self.columns.iter().all(is_number) && once && quality
    }

    /// Summaries of some points; none in a table without.
    pub(crate) fn of(&self, points: &Points, range: Range<usize>) -> Option<Arc<[Summary]>> {
        if self.is_empty() {
            return None;
        }
        let quality = self.quality.and_then(|column| points.columns.get(column as usize));
        let times = &points.times[range.clone()];
        let columns = self.columns.iter().filter_map(|column| points.columns.get(*column as usize));
        Some(columns.map(|column| Summary::of(times, column, quality, range.start)).collect())
    }

    /// Whether no column has any.
    pub(crate) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }
}

/// What the columns of a table hold, and which of them have summaries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape<'a> {
    pub(crate) kinds: &'a [Kind],
    pub(crate) summarized: &'a Summarized,
}

impl Shape<'_> {
    /// The kinds of the columns that have summaries.
    fn numbers(&self) -> impl Iterator<Item = Kind> {
        self.summarized.columns.iter().filter_map(|column| self.kinds.get(*column as usize).copied())
    }

    /// Appends the summaries of entries.
    pub(crate) fn encode(&self, entries: &[&Entry], out: &mut Vec<u8>) {
        for entries in entries.chunks(ENTRIES_MAX) {
            for (at, kind) in self.numbers().enumerate() {
                let summary = |entry: &Entry| entry.summaries.as_deref()?.get(at).copied();
                let of: Vec<_> = entries.iter().filter_map(|entry| Some((*entry, summary(entry)?))).collect();
                debug_assert_eq!(of.len(), entries.len(), "all entries of a table have summaries");
                encode(kind, &of, out);
            }
        }
    }

    /// Takes the summaries of entries off the front of some bytes.
    pub(crate) fn decode(&self, entries: &mut [&mut Entry], bytes: &mut &[u8]) -> Result<(), Nonsense> {
        if self.summarized.is_empty() {
            return Ok(());
        }
        for entries in entries.chunks_mut(ENTRIES_MAX) {
            let mut all: Vec<Vec<Summary>> = entries.iter().map(|_| Vec::new()).collect();
            self.numbers().try_for_each(|kind| decode(kind, entries, &mut all, bytes))?;
            entries.iter_mut().zip(all).for_each(|(entry, all)| entry.summaries = Some(all.into()));
        }
        Ok(())
    }
}

/// How long an entry goes on.
fn long(entry: &Entry) -> u64 {
    entry.last.wrapping_sub(entry.first) as u64
}

fn encode(kind: Kind, of: &[(&Entry, Summary)], out: &mut Vec<u8>) {
    put(of, out, |(entry, summary)| (entry.points - summary.count) as i64);
    put(of, out, |(_, summary)| (summary.count - summary.good) as i64);
    put_values(kind, of, out, |summary| (summary.count > 0).then_some(summary.least));
    put_values(kind, of, out, |summary| (summary.count > 0).then_some(summary.greatest));
    put_values(kind, of, out, |summary| summary.first);
    put_values(kind, of, out, |summary| summary.last);
    put_sums(of, out, |summary| &summary.sum);
    put(of, out, |(_, summary)| summary.lead.map_or(-1, |lead| lead as i64));
    put_sums(of, out, |summary| &summary.area);
    put(of, out, |(entry, summary)| long(entry).wrapping_sub(summary.known) as i64);
    put(of, out, |(_, summary)| match summary.held {
        Held::AsBefore => 0,
        Held::Nothing => 1,
        Held::Value(rank) if Some(rank) == summary.last => 2,
        Held::Value(_) => 3,
    });
    let others: Vec<_> = of.iter().filter(|(_, summary)| other(summary).is_some()).copied().collect();
    put_values(kind, &others, out, other);
}

/// What is held, if it is not the last value.
fn other(summary: &Summary) -> Option<i64> {
    match summary.held {
        Held::Value(rank) if Some(rank) != summary.last => Some(rank),
        _ => None,
    }
}

fn put(of: &[(&Entry, Summary)], out: &mut Vec<u8>, value: impl Fn(&(&Entry, Summary)) -> i64) {
    integers::encode(&of.iter().map(value).collect::<Vec<_>>(), out);
}

fn put_values(kind: Kind, of: &[(&Entry, Summary)], out: &mut Vec<u8>, rank: impl Fn(&Summary) -> Option<i64>) {
    let ranks: Vec<Option<i64>> = of.iter().map(|(_, summary)| rank(summary)).collect();
    let present = ranks.contains(&None).then(|| ranks.iter().map(Option::is_some).collect());
    let values = match kind {
        Kind::Double => Values::Doubles(ranks.iter().map(|rank| rank.map_or(0.0, double)).collect()),
        _ => Values::Integers(ranks.iter().map(|rank| rank.unwrap_or(0)).collect()),
    };
    Column { values, present }.encode(0..ranks.len(), out);
}

fn put_sums(of: &[(&Entry, Summary)], out: &mut Vec<u8>, sum: impl Fn(&Summary) -> &Sum) {
    put(of, out, |(_, summary)| sum(summary).odd.into());
    put(of, out, |(_, summary)| sum(summary).finite.exponent().into());
    put(of, out, |(_, summary)| sum(summary).finite.mantissa() as i64);
    put(of, out, |(_, summary)| {
        let mantissa = sum(summary).finite.mantissa();
        ((mantissa >> 64) as i64).wrapping_sub((mantissa as i64) >> 63)
    });
}

/// Appends the summaries of one column to those of each entry.
fn decode(kind: Kind, of: &[&mut Entry], all: &mut [Vec<Summary>], bytes: &mut &[u8]) -> Result<(), Nonsense> {
    let count = of.len();
    let (missing, not_good) = (take(bytes, count)?, take(bytes, count)?);
    let mut values = || take_values(kind, bytes, count);
    let (least, greatest, first, last) = (values()?, values()?, values()?, values()?);
    let sums = take_sums(bytes, count)?;
    let leads = take(bytes, count)?;
    let areas = take_sums(bytes, count)?;
    let (unknown, held) = (take(bytes, count)?, take(bytes, count)?);
    let others = held.iter().filter(|held| **held == 3).count();
    let mut others = take_values(kind, bytes, others)?.into_iter().flatten();
    for (at, entry) in of.iter().enumerate() {
        let within =
            |number: i64, most: u64| u64::try_from(number).ok().filter(|number| *number <= most).ok_or(Nonsense);
        let count = entry.points - within(missing[at], entry.points)?;
        let (lead, long) = (leads[at], long(entry));
        let summary = Summary {
            kind,
            count,
            good: count - within(not_good[at], count)?,
            sum: sums[at],
            least: least[at].unwrap_or(0),
            greatest: greatest[at].unwrap_or(0),
            first: first[at],
            last: last[at],
            lead: if lead == -1 { None } else { Some(within(lead, long)?) },
            area: areas[at],
            known: long.checked_sub(unknown[at] as u64).ok_or(Nonsense)?,
            held: match held[at] {
                0 => Held::AsBefore,
                1 => Held::Nothing,
                2 => Held::Value(last[at].ok_or(Nonsense)?),
                3 => Held::Value(others.next().ok_or(Nonsense)?),
                _ => return Err(Nonsense),
            },
        };
        let is_there = count > 0;
        if least[at].is_some() != is_there || greatest[at].is_some() != is_there || summary.least > summary.greatest {
            return Err(Nonsense);
        }
        all[at].push(summary);
    }
    Ok(())
}

fn take(bytes: &mut &[u8], count: usize) -> Result<Vec<i64>, Nonsense> {
    let mut values = Vec::new();
    integers::decode(bytes, count, &mut values).map(|()| values)
}

fn take_values(kind: Kind, bytes: &mut &[u8], count: usize) -> Result<Vec<Option<i64>>, Nonsense> {
    let mut column = Column::new(kind);
    column.decode(bytes, count)?;
    let rank = |at: usize| match &column.values {
        Values::Doubles(values) => rank_of(values[at]),
        Values::Integers(values) => values[at],
        Values::Texts(_) => 0,
    };
    Ok((0..count).map(|at| column.is_present(at).then(|| rank(at))).collect())
}

fn take_sums(bytes: &mut &[u8], count: usize) -> Result<Vec<Sum>, Nonsense> {
    let (odd, exponents) = (take(bytes, count)?, take(bytes, count)?);
    let (lows, highs) = (take(bytes, count)?, take(bytes, count)?);
    let sum = |at: usize| {
        let high = highs[at].wrapping_add(lows[at] >> 63);
        let mantissa = i128::from(high) << 64 | i128::from(lows[at] as u64);
        Sum::stored(Wide::stored(mantissa, exponents[at])?, odd[at])
    };
    (0..count).map(|at| sum(at).ok_or(Nonsense)).collect()
}
