//! Filters in memory.

use std::collections::{BTreeMap, HashMap};

use counterfoil_proof::Filter;

use crate::filters::SignedFilter;

/// The filters of all orders of a table.
#[derive(Clone, Default)]
pub(crate) struct Filters {
    by_number: HashMap<u64, SignedFilter>,
    /// By order and place.
    places: BTreeMap<(u8, Vec<u8>), u64>,
}

fn place(signed: &SignedFilter) -> (u8, Vec<u8>) {
    (signed.filter.order(), signed.filter.place().bytes().to_vec())
}

impl Filters {
    /// Puts a filter in the place of the one with its number.
    pub fn put(&mut self, signed: SignedFilter) {
        self.remove(signed.stamp.rid);
        self.places.insert(place(&signed), signed.stamp.rid);
        self.by_number.insert(signed.stamp.rid, signed);
    }

    /// Takes the filter with this number away.
    pub fn remove(&mut self, rid: u64) -> Option<SignedFilter> {
        let signed = self.by_number.remove(&rid)?;
        let place = place(&signed);
        // Another one may stand there by now: that of a part that was split or joined.
        if self.places.get(&place) == Some(&rid) {
            self.places.remove(&place);
        }
        Some(signed)
    }

    /// The filter with this number.
    pub fn of_number(&self, rid: u64) -> Option<&SignedFilter> {
        self.by_number.get(&rid)
    }

    /// The filter of an order that tells of an encoded value.
    pub fn at(&self, order: u8, value: &[u8]) -> Option<&SignedFilter> {
        let place = Filter::place_of(value).ok()?.bytes().to_vec();
        let (_, rid) = self.places.range((order, Vec::new())..=(order, place)).next_back()?;
        self.by_number.get(rid)
    }

    /// The filter of an order that ends where one with the lower bound `low` begins.
    pub fn before(&self, order: u8, low: &[u8]) -> Option<&SignedFilter> {
        let place = Filter::place_of(low).ok()?.bytes().to_vec();
        let (_, rid) = self.places.range((order, Vec::new())..(order, place)).next_back()?;
        self.by_number.get(rid)
    }

    /// All filters of an order, by their bounds.
    pub fn of(&self, order: u8) -> impl Iterator<Item = &SignedFilter> {
        let places = self.places.range((order, Vec::new())..=(order, vec![u8::MAX]));
        places.filter_map(|(_, rid)| self.by_number.get(rid))
    }

    /// All filters, in no order.
    pub fn all(&self) -> impl Iterator<Item = &SignedFilter> {
        self.by_number.values()
    }
}
