//! Filters for joins: which values the first column of an order has, part by part of its domain.
//!
//! ```text
//! 01 [ filter ) [ filter ) [ filter ) 02        each begins where the one before ends; kept under e rid like entries
//! ```
//! 1. The first row with a value, and the last one that goes, sign the filter of the value's part again, in the commit in
//!    which that happens, and mark it in the open period like a record whose version changed.
//! 2. A part of more than [`VALUES_MAX`] values is split; one of fewer than [`VALUES_MIN`] is joined with the one beside it if
//!    that has room. What is joined away is marked as gone.
//! 3. Rows with values that are there already, and NULLs, touch no filter.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_mirror::SignedFilter;
use counterfoil_proof::record::Stamp;
use counterfoil_proof::{FIRST_FILTER, Filter, FilterBits, Points, Value};

use crate::edit::Edit;
use crate::error::Error;
use crate::ledger::{Change, Ledger};
use crate::publication::{Publication, entry_key, noted_key};

/// Values of a part at most, before it is split into parts of half as many.
const VALUES_MAX: usize = 128;

/// Values of a part below which it is joined with another one.
const VALUES_MIN: usize = 16;

/// Bits for each value: fewer false positives than the paper's eight, since their proof takes rows and not values alone.
const BITS_PER_VALUE: u32 = 10;

/// Orders that would make as many changes: a value that comes or goes changes its filter, and those that it is split into or
/// joined with, which is no more than two orders' neighbours.
pub(crate) const ORDERS_PER_FILTER: usize = 2;

/// Values that an edit touches, encoded, by order, and whether a row had them before.
pub(crate) struct Touched(BTreeMap<(u8, Vec<u8>), bool>);

/// A part of an order's domain.
struct Part {
    low: Vec<u8>,
    high: Vec<u8>,
}

impl<L: Ledger> Publication<L> {
    /// One filter of no value for each order that is to have some.
    pub(crate) fn begin_filters(&mut self) -> Result<BTreeSet<u64>, Error> {
        let mut begun = BTreeSet::new();
        for order in self.definition.filters.clone() {
            let (low, high) = Filter::whole_domain();
            let rid = self.number_filter();
            self.place_filter(order, rid, &Part { low, high }, &[])?;
            begun.insert(rid);
        }
        Ok(begun)
    }

    /// What an edit that has not begun touches.
    pub(crate) fn touched_values(&self, edit: &Edit) -> Result<Touched, Error> {
        let mut touched = BTreeMap::new();
        for order in &self.definition.filters {
            let before = edit.delete.iter().chain(edit.update.iter().map(|(rid, _)| rid));
            let before = before.filter_map(|rid| self.shelf.entry(*rid)?.record.as_ref()).map(|record| &record.values);
            let after = edit.update.iter().map(|(_, values)| values).chain(&edit.insert);
            for values in before.chain(after) {
                if let Some(value) = self.joined_value(*order, values)? {
                    let is_there = self.has_value(*order, &value);
                    touched.insert((*order, value), is_there);
                }
            }
        }
        Ok(Touched(touched))
    }

    /// The value by which a row is found in an order, encoded; none for NULL, which equals nothing.
    fn joined_value(&self, order: u8, values: &[Value]) -> Result<Option<Vec<u8>>, Error> {
        let column = usize::from(self.definition.orders[usize::from(order)][0]);
        let mut encoded = Vec::new();
        let wrong = |_| Error::Corrupt("a value of a type that its column has not");
        self.definition.columns[column].kind.encode(&values[column], &mut encoded).map_err(wrong)?;
        Ok((values[column] != Value::Null).then_some(encoded))
    }

    fn has_value(&self, order: u8, value: &[u8]) -> bool {
        let interval = Points::interval(value);
        self.shelf.next(order, interval.start()).is_some_and(|position| position.bytes() < interval.end())
    }

    /// Makes the filters anew of which a value came or went, when rows are in their places; gives those to be signed.
    pub(crate) fn refilter(&mut self, touched: Touched, changes: &mut Vec<Change>) -> Result<BTreeSet<u64>, Error> {
        let mut stale = BTreeSet::new();
        for ((order, value), was_there) in touched.0 {
            if self.has_value(order, &value) != was_there {
                let signed = self.shelf.filter_at(order, &value).ok_or(Error::Corrupt("a filter"))?;
                stale.insert((order, signed.stamp.rid));
            }
        }
        let mut affected = BTreeSet::new();
        for (order, rid) in stale {
            // Joined with the one before it meanwhile, it is gone.
            if let Some(signed) = self.shelf.filter_of_number(rid) {
                let part = Part { low: signed.filter.low().to_vec(), high: signed.filter.high().to_vec() };
                self.rebuild(order, rid, part, &mut affected, changes)?;
            }
        }
        Ok(affected)
    }

    fn rebuild(
        &mut self,
        order: u8,
        mut rid: u64,
        mut part: Part,
        affected: &mut BTreeSet<u64>,
        changes: &mut Vec<Change>,
    ) -> Result<(), Error> {
        let mut values = self.values_of(order, &part);
        while values.len() < VALUES_MIN
            && let Some((kept, gone, joined)) = self.beside(order, rid)
        {
            let all = self.values_of(order, &joined);
            if all.len() > VALUES_MAX / 2 {
                break;
            }
            self.drop_filter(gone, changes);
            affected.remove(&gone);
            (rid, part, values) = (kept, joined, all);
            self.place_filter(order, rid, &part, &values)?;
        }
        if values.len() <= VALUES_MAX {
            affected.insert(rid);
            return self.place_filter(order, rid, &part, &values);
        }
        let mut chunks = values.chunks(VALUES_MAX / 2).peekable();
        while let Some(chunk) = chunks.next() {
            // The first one keeps its number; each ends where the next one's first value is.
            let high = chunks.peek().map_or(&part.high, |next| &next[0]).clone();
            let low = std::mem::replace(&mut part.low, high.clone());
            self.place_filter(order, rid, &Part { low, high }, chunk)?;
            affected.insert(rid);
            if chunks.peek().is_some() {
                rid = self.number_filter();
            }
        }
        Ok(())
    }

    /// The filter beside one, behind it if there is one: which of both stays, which goes, and their part together.
    fn beside(&self, order: u8, rid: u64) -> Option<(u64, u64, Part)> {
        let own = self.shelf.filter_of_number(rid)?;
        let behind = self.shelf.filter_at(order, own.filter.high()).filter(|behind| behind.stamp.rid != rid);
        let (kept, gone) = match behind {
            Some(behind) => (own, behind),
            None => (self.shelf.filter_before(order, own.filter.low())?, own),
        };
        let part = Part { low: kept.filter.low().to_vec(), high: gone.filter.high().to_vec() };
        Some((kept.stamp.rid, gone.stamp.rid, part))
    }

    /// The distinct values that rows have in a part, ascending: found by leaping from one to the next.
    fn values_of(&self, order: u8, part: &Part) -> Vec<Vec<u8>> {
        let column = usize::from(self.definition.orders[usize::from(order)][0]);
        let kind = self.definition.columns[column].kind;
        let mut values = Vec::new();
        let mut at = Points::interval(&part.low).start().to_vec();
        while let Some(position) = self.shelf.next(order, &at) {
            let Some(key) = position.key() else { break };
            let mut reader = counterfoil_proof::bytes::Reader::new(key, "a key");
            // What is shelved was encoded here.
            if kind.decode(&mut reader).is_err() {
                break;
            }
            let value = &key[..key.len() - reader.left()];
            if value >= &part.high[..] {
                break;
            }
            at = Points::interval(value).end().to_vec();
            values.push(value.to_vec());
        }
        values
    }

    fn number_filter(&mut self) -> u64 {
        self.next_filter += 1;
        self.next_filter - 1
    }

    /// Puts a filter in its place, to be signed as its next version.
    fn place_filter(&mut self, order: u8, rid: u64, part: &Part, values: &[Vec<u8>]) -> Result<(), Error> {
        let before = self.shelf.filter_of_number(rid).map(|signed| signed.stamp);
        let stamp = before.unwrap_or(Stamp { rid, version: 0, period: self.period.number });
        let salt = self.secrets.seed(&self.definition.table, rid, stamp.version + 1);
        let values: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let bits = FilterBits::build(salt, &values, BITS_PER_VALUE);
        let filter = Filter::new(order, part.low.clone(), part.high.clone(), bits)?;
        // Whatever signature is at hand, until it has its own.
        let (signature, hint) = self.any_signature()?;
        self.shelf.put_filter(SignedFilter { stamp, filter, signature, hint });
        Ok(())
    }

    fn drop_filter(&mut self, rid: u64, changes: &mut Vec<Change>) {
        if let Some(signed) = self.shelf.remove_filter(rid) {
            self.ages.remove(&signed.stamp);
        }
        changes.push((entry_key(rid), None));
        changes.push((noted_key(rid), Some(self.period.delete(rid).to_bytes())));
    }

    /// Signs filters as they stand now, like [`Publication::sign`] records.
    pub(crate) fn sign_filters(
        &mut self,
        rids: &BTreeSet<u64>,
        is_change: bool,
        changes: &mut Vec<Change>,
    ) -> Result<usize, Error> {
        let mut filters = Vec::with_capacity(rids.len());
        let mut messages = Vec::with_capacity(rids.len());
        for rid in rids.range(FIRST_FILTER..) {
            let mut signed = self.shelf.filter_of_number(*rid).ok_or(Error::Corrupt("a filter"))?.clone();
            self.ages.remove(&signed.stamp);
            signed.stamp.version += u64::from(is_change);
            signed.stamp.period = self.period.number;
            messages.push(signed.filter.message(&self.digest, &signed.stamp));
            filters.push(signed);
        }
        let signatures = self.sign_all(&messages)?;
        for ((mut signed, message), (signature, hint)) in filters.into_iter().zip(&messages).zip(signatures) {
            (signed.signature, signed.hint) = (signature, hint);
            self.note_signed(&signed.stamp, is_change, &[*message], changes);
            changes.push((entry_key(signed.stamp.rid), Some(signed.to_bytes())));
            self.shelf.put_filter(signed);
        }
        Ok(messages.len())
    }
}
