//! Groups: which records are signed together, after rows came and went.
//!
//! ```text
//! first order   [01 ......... a) [a ........... b) [b ....... 02)     each group has up to as many records as the definition says
//! ```
//! 1. Groups tile the first order, from `01` to `02`; a table without rows has one without records.
//! 2. A group is signed in the commit in which one of its records comes, goes or moves, or gets other values or neighbours, and
//!    is marked in the open period like a record whose version changed. What is joined away is marked as gone.
//! 3. A group with more records than it may have is cut into pieces of three quarters; one with fewer than three eighths is
//!    joined with a neighbour. It keeps its number as long as it begins where it does.

use std::collections::BTreeSet;

use counterfoil_mirror::{MemoryShelf, SignedGroup};
use counterfoil_proof::record::{Stamp, head_rid};
use counterfoil_proof::{
    Digest, FIRST_GROUP, FIRST_NODE, FIRST_RID, Position, Scheme, attributes, group_message, is_group, member,
};

use crate::error::Error;
use crate::ledger::{Change, Ledger};
use crate::publication::{Publication, entry_key, noted_key};
use crate::tree::all;

/// Orders that would make as many changes as the groups that a row cuts and joins: two pieces, and a neighbour on each side.
pub(crate) const ORDERS_PER_GROUP: usize = 2;

/// How many records a group is to have.
#[derive(Clone, Copy)]
struct Size {
    max: usize,
    min: usize,
    cut: usize,
}

impl Size {
    fn of(rows_max: u8) -> Self {
        let max = usize::from(rows_max);
        Self { max, min: (3 * max / 8).max(1), cut: (3 * max / 4).max(1) }
    }
}

/// Neighbouring groups that are looked at together: where they begin and end.
struct Window {
    start: Vec<u8>,
    end: Vec<u8>,
}

/// A record and where it stands in the first order.
type Placed = (Vec<u8>, u64);

/// Which groups a window is to have, by where they begin.
fn pieces(size: Size, start: &[u8], records: &[Placed]) -> Vec<(Vec<u8>, Vec<u64>)> {
    let count = if records.len() > size.max { records.len().div_ceil(size.cut) } else { 1 };
    let piece = |at: usize| {
        let records = &records[at * records.len() / count..(at + 1) * records.len() / count];
        let low = if at == 0 { start.to_vec() } else { records[0].0.clone() };
        (low, records.iter().map(|(_, rid)| *rid).collect())
    };
    (0..count).map(piece).collect()
}

fn records(shelf: &MemoryShelf, window: &Window) -> Vec<Placed> {
    let within = shelf.within(0, &window.start, &window.end);
    within.map(|(place, entry)| (place.to_vec(), entry.stamp.rid)).collect()
}

/// The windows of the groups in which something happened, each wide enough for a group.
fn windows(shelf: &MemoryShelf, size: Size, stale: BTreeSet<Vec<u8>>) -> Vec<(Window, Vec<Placed>)> {
    let mut filled: Vec<(Window, Vec<Placed>)> = Vec::new();
    for start in stale {
        // One that the window before has taken in.
        if filled.last().is_some_and(|(last, _)| last.end > start) {
            continue;
        }
        let mut window = Window { end: end_of(shelf, &start), start };
        let mut placed = records(shelf, &window);
        while placed.len() < size.min {
            if shelf.groups.from(&window.end).next().is_some_and(|next| next.low == window.end) {
                window.end = end_of(shelf, &window.end);
            } else if let Some((before, _)) = filled.pop_if(|(before, _)| before.end == window.start) {
                window.start = before.start;
            } else if let Some(before) = shelf.groups.before(&window.start) {
                window.start.clone_from(&before.low);
            } else {
                break;
            }
            placed = records(shelf, &window);
        }
        filled.push((window, placed));
    }
    filled
}

/// Where the group that begins at `low` ends.
fn end_of(shelf: &MemoryShelf, low: &[u8]) -> Vec<u8> {
    let behind = [low, &[0]].concat();
    shelf.groups.from(&behind).next().map_or_else(|| all().1, |next| next.low.clone())
}

impl<L: Ledger> Publication<L> {
    /// The one group of a table without rows, to be signed.
    pub(crate) fn begin_groups(&mut self) -> Result<Option<u64>, Error> {
        if !matches!(self.definition.scheme, Scheme::Group(_)) {
            return Ok(None);
        }
        self.put_group(all().0, Vec::new()).map(Some)
    }

    /// Makes the groups anew that have records among `changed`, or places of the first order in `touched`, when rows are in
    /// their places and have their links; gives those to be signed.
    pub(crate) fn regroup(
        &mut self,
        changed: &BTreeSet<u64>,
        touched: &[Position],
        changes: &mut Vec<Change>,
    ) -> Result<BTreeSet<u64>, Error> {
        let Scheme::Group(rows_max) = self.definition.scheme else { return Ok(BTreeSet::new()) };
        let mut stale = BTreeSet::new();
        let mut places: Vec<Vec<u8>> = touched.iter().map(|position| position.bytes().to_vec()).collect();
        for rid in changed.range(FIRST_RID..FIRST_GROUP) {
            let entry = self.shelf.entry(*rid).ok_or(Error::Corrupt("a record that was there"))?;
            places.push(entry.position(&self.definition, 0)?.bytes().to_vec());
        }
        for place in places {
            stale.insert(self.shelf.groups.at(&place).ok_or(Error::Corrupt("a group"))?.low.clone());
        }
        let size = Size::of(rows_max);
        let mut affected = BTreeSet::new();
        for (window, placed) in windows(&self.shelf, size, stale) {
            self.replace_groups(&window, pieces(size, &window.start, &placed), &mut affected, changes)?;
        }
        Ok(affected)
    }

    /// Puts groups in the place of those of a window.
    fn replace_groups(
        &mut self,
        window: &Window,
        pieces: Vec<(Vec<u8>, Vec<u64>)>,
        affected: &mut BTreeSet<u64>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let lows: BTreeSet<&Vec<u8>> = pieces.iter().map(|(low, _)| low).collect();
        let before = self.shelf.groups.from(&window.start).take_while(|group| group.low < window.end);
        let gone: Vec<u64> = before.filter(|group| !lows.contains(&group.low)).map(|group| group.stamp.rid).collect();
        for rid in gone {
            let group = self.shelf.groups.remove(rid).ok_or(Error::Corrupt("a group"))?;
            self.ages.remove(&group.stamp);
            changes.push((entry_key(rid), None));
            changes.push((noted_key(rid), Some(self.period.delete(rid).to_bytes())));
        }
        for (low, rids) in pieces {
            let members =
                rids.into_iter().map(|rid| Ok((rid, self.member(rid)?))).collect::<Result<Vec<_>, Error>>()?;
            let known = self.shelf.groups.at(&low).filter(|group| group.low == low);
            if known.is_none_or(|known| known.members != members) {
                affected.insert(self.put_group(low, members)?);
            }
        }
        Ok(())
    }

    /// What a group holds of a record as it stands now.
    fn member(&self, rid: u64) -> Result<Digest, Error> {
        let entry = self.shelf.entry(rid).ok_or(Error::Corrupt("a record that was there"))?;
        let record = entry.record.as_ref().ok_or(Error::Corrupt("a record's values"))?;
        let root = attributes::root(&record.leaves(&self.definition)?);
        Ok(member(&self.digest, rid, &entry.links, &root))
    }

    /// Puts a group where it begins, to be signed as its next version.
    fn put_group(&mut self, low: Vec<u8>, members: Vec<(u64, Digest)>) -> Result<u64, Error> {
        let known = self.shelf.groups.at(&low).filter(|group| group.low == low).map(|group| group.stamp);
        let stamp = match known {
            Some(stamp) => stamp,
            None => Stamp { rid: self.number_group()?, version: 0, period: self.period.number },
        };
        // It stands in its place before it is signed, as rows do.
        let (signature, hint) = self.any_signature()?;
        self.shelf.groups.put(SignedGroup { stamp, low, members, signature, hint });
        Ok(stamp.rid)
    }

    fn number_group(&mut self) -> Result<u64, Error> {
        let rid = FIRST_GROUP.checked_add(self.next_group).filter(|rid| is_group(*rid));
        self.next_group += 1;
        rid.ok_or(Error::Corrupt("a number"))
    }

    /// Signs groups as they stand: as their next version if they changed, as the same one if they did not.
    pub(crate) fn sign_groups(
        &mut self,
        rids: &BTreeSet<u64>,
        is_change: bool,
        changes: &mut Vec<Change>,
    ) -> Result<usize, Error> {
        let (mut groups, mut messages) = (Vec::new(), Vec::new());
        for rid in rids.range(FIRST_GROUP..FIRST_NODE) {
            let mut group = self.shelf.groups.of_number(*rid).ok_or(Error::Corrupt("a group"))?.clone();
            self.ages.remove(&group.stamp);
            group.stamp.version += u64::from(is_change);
            group.stamp.period = self.period.number;
            messages.push(group_message(&self.digest, &group.stamp, &group.digests()));
            groups.push(group);
        }
        let signatures = self.sign_all(&messages)?;
        for ((mut group, message), (signature, hint)) in groups.into_iter().zip(&messages).zip(signatures) {
            (group.signature, group.hint) = (signature, hint);
            self.note_signed(&group.stamp, is_change, &[*message], changes);
            changes.push((entry_key(group.stamp.rid), Some(group.to_bytes())));
            self.shelf.groups.put(group);
        }
        Ok(messages.len())
    }

    /// Whatever signature is at hand, for what has its place and not its own one yet.
    pub(crate) fn any_signature(&self) -> Result<(counterfoil_proof::Signature, counterfoil_proof::Hint), Error> {
        let head = self.shelf.entry(head_rid(0)).and_then(|head| head.signed.first().copied());
        head.ok_or(Error::Corrupt("a head"))
    }
}
