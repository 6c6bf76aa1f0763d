//! Which records were signed in which period: what is oldest is found without looking at the table.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_proof::record::Stamp;

/// Numbers of all that is published, by the period of their signatures.
#[derive(Clone, Default)]
pub(crate) struct Ages(BTreeMap<u64, BTreeSet<u64>>);

impl Ages {
    /// Notes what was signed.
    pub fn put(&mut self, stamp: &Stamp) {
        self.0.entry(stamp.period).or_default().insert(stamp.rid);
    }

    /// Forgets a signature that does not stand any more.
    pub fn remove(&mut self, stamp: &Stamp) {
        if let Some(rids) = self.0.get_mut(&stamp.period) {
            rids.remove(&stamp.rid);
            if rids.is_empty() {
                self.0.remove(&stamp.period);
            }
        }
    }

    /// The period of the oldest signature that stands.
    pub fn oldest(&self) -> Option<u64> {
        self.0.keys().next().copied()
    }

    /// The numbers signed in periods for which `is_due` says so, oldest first, up to the first period for which it does not.
    pub fn due(&self, is_due: impl Fn(u64) -> bool) -> impl Iterator<Item = u64> {
        self.0.iter().take_while(move |(period, _)| is_due(**period)).flat_map(|(_, rids)| rids.iter().copied())
    }

    /// The numbers signed in the periods that `choose` takes.
    pub fn of(&self, choose: impl Fn(u64) -> bool) -> BTreeSet<u64> {
        self.0.iter().filter(|(period, _)| choose(**period)).flat_map(|(_, rids)| rids.iter().copied()).collect()
    }

    /// How many signatures stand of periods from one up to another, that one not included.
    pub fn count(&self, from: u64, until: u64) -> u64 {
        self.0.range(from..until.max(from)).map(|(_, rids)| rids.len() as u64).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Ages;
    use counterfoil_proof::record::Stamp;

    #[test]
    fn what_is_due_comes_by_period_and_ends_where_it_is_not() {
        let mut ages = Ages::default();
        let stamp = |rid, period| Stamp { rid, version: 1, period };
        [stamp(40, 3), stamp(41, 1), stamp(39, 3), stamp(42, 5), stamp(43, 9)].iter().for_each(|it| ages.put(it));
        assert_eq!(ages.due(|period| period < 6).collect::<Vec<_>>(), [41, 39, 40, 42]);
        assert_eq!((ages.oldest(), ages.count(3, 9), ages.count(3, 3)), (Some(1), 3, 0));
        ages.remove(&stamp(41, 1));
        // Nothing of it stood in that period.
        ages.remove(&stamp(40, 5));
        assert_eq!((ages.oldest(), ages.of(|period| period == 3).len()), (Some(3), 2));
    }
}
