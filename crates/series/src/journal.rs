//! The journal of a table: what is in no leaf, and how the trees changed. What is known of a table is what its journal says.
//!
//! ```text
//! entry: kind u8 | bytes n u32 | body (n bytes)
//! 1 splices   postcard: how edges change; then points of the tail that are at or before their series' new end are dropped
//! 2 points    series, one run each | points of each run, less 1 | points (times, columns)
//! 3 gone      the same without columns: whatever stands at these times is deleted
//! 4 settled   postcard: series of which nothing is late any more
//! 5 oldest    postcard: i64, what is before this time is gone, in all series
//! 6 begins    postcard: series with times before which nothing of them is late any more
//! 7 splices   of a table with summaries: as 1, then those of all entries put in (`digest`)
//! ```
//! Runs and counts are integers columns (`codec`), preceded by how many runs there are as u32.
//! Power cuts: an entry is part of one commit, so it is there as a whole or not at all.

use alloc::vec::Vec;
use core::ops::Range;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::batch::Picked;
use crate::codec::{Nonsense, integers};
use crate::column::Kind;
use crate::digest::Shape;
use crate::edge::Splice;
use crate::points::Points;

/// Bytes of an entry's head.
pub(crate) const HEAD_BYTES: usize = 5;
/// Bytes of an entry at most: what is read back is held in memory as a whole.
pub(crate) const BYTES_MAX: usize = 1 << 26;
/// Bytes of texts from which on points go into an entry of their own: with those of one more point far below the bound.
pub(crate) const TEXT_BYTES: usize = 1 << 22;
/// Points that one entry has at most.
pub(crate) const POINTS_MAX: usize = 1 << 15;

const SPLICES: u8 = 1;
const POINTS: u8 = 2;
const GONE: u8 = 3;
const SETTLED: u8 = 4;
const OLDEST: u8 = 5;
const BEGINS: u8 = 6;
const SUMMARIZED: u8 = 7;

/// Something that happened to a table.
#[derive(Debug, PartialEq)]
pub(crate) enum Entry {
    Splices(Vec<Splice>),
    Points(Runs),
    Gone(Runs),
    Settled(Vec<u32>),
    Oldest(i64),
    Begins(Vec<(u32, i64)>),
}

/// Points of several series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Runs {
    /// Each series and how many of the points are its own.
    pub(crate) runs: Vec<(u32, usize)>,
    pub(crate) points: Points,
}

impl Runs {
    pub(crate) fn new(kinds: &[Kind]) -> Runs {
        Runs { runs: Vec::new(), points: Points::new(kinds) }
    }

    /// Says of which series the points are that come next.
    fn go_on(&mut self, series: u32, count: usize) {
        match self.runs.last_mut() {
            Some((last, points)) if *last == series => *points += count,
            _ => self.runs.push((series, count)),
        }
    }

    pub(crate) fn append(&mut self, series: u32, points: &Points, picked: Picked<'_>) {
        if picked.len() > 0 {
            self.go_on(series, picked.len());
            self.points.append_picked(points, picked);
        }
    }

    pub(crate) fn push_time(&mut self, series: u32, time: i64) {
        self.go_on(series, 1);
        self.points.times.push(time);
    }

    /// Each run with the places of its points.
    pub(crate) fn each(&self) -> impl Iterator<Item = (u32, Range<usize>)> + '_ {
        self.runs.iter().scan(0, |at, (series, count)| {
            let from = *at;
            *at += count;
            Some((*series, from..*at))
        })
    }

    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&(self.runs.len() as u32).to_le_bytes());
        integers::encode(&self.runs.iter().map(|(series, _)| i64::from(*series)).collect::<Vec<_>>(), out);
        integers::encode(&self.runs.iter().map(|(_, count)| *count as i64 - 1).collect::<Vec<_>>(), out);
        self.points.encode(0..self.points.len(), out);
    }

    fn decode(mut bytes: &[u8], kinds: &[Kind]) -> Result<Runs, Nonsense> {
        let (count, rest) = bytes.split_first_chunk::<4>().ok_or(Nonsense)?;
        let count = usize::try_from(u32::from_le_bytes(*count)).map_err(|_| Nonsense)?;
        if count > POINTS_MAX {
            return Err(Nonsense);
        }
        bytes = rest;
        let (mut series, mut counts) = (Vec::new(), Vec::new());
        integers::decode(&mut bytes, count, &mut series)?;
        integers::decode(&mut bytes, count, &mut counts)?;
        let mut runs = Runs::new(kinds);
        let mut total = 0_usize;
        for (series, less) in series.into_iter().zip(counts) {
            let points = usize::try_from(less).ok().filter(|less| *less < POINTS_MAX).ok_or(Nonsense)? + 1;
            total += points;
            runs.runs.push((u32::try_from(series).map_err(|_| Nonsense)?, points));
            if total > POINTS_MAX {
                return Err(Nonsense);
            }
        }
        runs.points.decode(&mut bytes, total)?;
        if bytes.is_empty() { Ok(runs) } else { Err(Nonsense) }
    }
}

/// Appends an entry.
pub(crate) fn put(entry: &Entry, shape: Shape<'_>, out: &mut Vec<u8>) -> Result<(), Error> {
    let begun = out.len();
    let kind = match entry {
        Entry::Splices(_) if !shape.summarized.is_empty() => SUMMARIZED,
        Entry::Splices(_) => SPLICES,
        Entry::Points(_) => POINTS,
        Entry::Gone(_) => GONE,
        Entry::Settled(_) => SETTLED,
        Entry::Oldest(_) => OLDEST,
        Entry::Begins(_) => BEGINS,
    };
    out.push(kind);
    out.extend_from_slice(&[0; 4]);
    match entry {
        Entry::Splices(splices) => {
            put_plain(splices, out)?;
            let entries: Vec<_> = splices.iter().flat_map(|splice| &splice.entries).collect();
            shape.encode(&entries, out);
        }
        Entry::Settled(series) => put_plain(series, out)?,
        Entry::Oldest(time) => put_plain(time, out)?,
        Entry::Begins(series) => put_plain(series, out)?,
        Entry::Points(runs) | Entry::Gone(runs) => runs.encode(out),
    }
    let body = out.len() - begun - HEAD_BYTES;
    if body > BYTES_MAX - HEAD_BYTES {
        // Better nothing than what nobody reads.
        return Err(Error::Misuse("a change too large for the journal of a series table: make it in parts"));
    }
    let body = body as u32;
    out[begun + 1..begun + HEAD_BYTES].copy_from_slice(&body.to_le_bytes());
    Ok(())
}

fn put_plain<T: Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), Error> {
    *out = postcard::to_extend(value, core::mem::take(out)).map_err(|_| Error::Misuse("a journal entry"))?;
    Ok(())
}

/// Takes an entry off the front.
pub(crate) fn take(bytes: &mut &[u8], shape: Shape<'_>) -> Result<Entry, Error> {
    let mut take = || {
        let (head, rest) = bytes.split_first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
        let (body, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
        *bytes = rest;
        Some((head[0], body))
    };
    let wrong = Error::Corrupt { what: "journal" };
    let (kind, body) = take().ok_or(wrong.clone())?;
    match kind {
        SPLICES if shape.summarized.is_empty() => plain(body).map(Entry::Splices),
        SUMMARIZED if !shape.summarized.is_empty() => splices(body, shape).map(Entry::Splices),
        POINTS => Runs::decode(body, shape.kinds).map(Entry::Points).map_err(Error::nonsense("journal")),
        GONE => Runs::decode(body, &[]).map(Entry::Gone).map_err(Error::nonsense("journal")),
        SETTLED => plain(body).map(Entry::Settled),
        OLDEST => plain(body).map(Entry::Oldest),
        BEGINS => plain(body).map(Entry::Begins),
        _ => Err(wrong),
    }
}

/// Splices with the summaries of what they put in.
fn splices(body: &[u8], shape: Shape<'_>) -> Result<Vec<Splice>, Error> {
    let wrong = Error::Corrupt { what: "journal" };
    let (mut splices, mut rest) = postcard::take_from_bytes::<Vec<Splice>>(body).map_err(|_| wrong.clone())?;
    let mut entries: Vec<_> = splices.iter_mut().flat_map(|splice| &mut splice.entries).collect();
    shape.decode(&mut entries, &mut rest).map_err(Error::nonsense("journal"))?;
    if rest.is_empty() { Ok(splices) } else { Err(wrong) }
}

fn plain<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(Error::Corrupt { what: "journal" }),
    }
}
