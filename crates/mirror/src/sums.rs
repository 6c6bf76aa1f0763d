//! Sums of signatures over stretches of an order, so that any range takes a few additions.
//!
//! ```text
//! level 2   |------------------------------------>|----------------->     a stretch begins where a record's number says so:
//! level 1   |------->|------>|------------>|----->|------>|--------->     one in 16 of the level below, by its hash
//! level 0   o o o o o o o o o o o o o o o o o o o o o o o o o o o o o     entries
//! ```
//! 1. A stretch of a level begins with one of each level below it, and the first one of each level before everything.
//! 2. A sum is made when somebody asks for all of its stretch, and forgotten when an entry in it changes. So an owner that
//!    is asked nothing adds nothing, and nobody waits for more additions than the entries that he asked for.
//! 3. Where stretches begin depends on the numbers of entries alone: an entry that comes or goes changes its own.
//!
//! The sums are the mirror's own: nothing is signed over them, and a wrong one is an answer that readers refuse.

use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::OnceLock;

use counterfoil_proof::SignatureSum;

/// Stretches of a level in one of the next, on average: a power of two of them, as bits of a hash.
const FANOUT_BITS: u32 = 4;
/// Levels of stretches above the entries: enough for 2^40 of them.
pub const LEVELS: usize = 10;

/// By where it begins.
type Level = BTreeMap<Vec<u8>, OnceLock<SignatureSum>>;

/// The stretches of an order.
#[derive(Clone, Default)]
pub(crate) struct Sums(Vec<Level>);

/// How entries of an order are added up.
pub(crate) trait Leaves {
    /// The sum of all that stands from `from` on and before `before`.
    fn sum(&self, from: &[u8], before: &[u8]) -> SignatureSum;
}

/// The levels on which a stretch begins with the record of this number.
#[must_use]
pub fn height(rid: u64) -> usize {
    // SplitMix64's last steps: any mixing does, as nothing depends on it but how long stretches are.
    let mut mixed = rid.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^= mixed >> 31;
    LEVELS.min((mixed.trailing_zeros() / FANOUT_BITS) as usize)
}

impl Sums {
    pub fn new() -> Self {
        Self(vec![Level::from([(Vec::new(), OnceLock::new())]); LEVELS])
    }

    /// An entry at `position` came, or came instead of another one of its number.
    pub fn put(&mut self, position: &[u8], rid: u64) {
        self.forget(position);
        for level in &mut self.0[..height(rid)] {
            level.insert(position.to_vec(), OnceLock::new());
        }
    }

    /// The entry at `position` goes.
    pub fn remove(&mut self, position: &[u8], rid: u64) {
        for level in &mut self.0[..height(rid)] {
            level.remove(position);
        }
        self.forget(position);
    }

    /// Whatever an entry at `position` is in has another sum now.
    fn forget(&mut self, position: &[u8]) {
        for level in &mut self.0 {
            if let Some((_, sum)) = level.range_mut::<[u8], _>((Unbounded, Included(position))).next_back() {
                sum.take();
            }
        }
    }

    /// The sum of all that stands from `from` on and before `before`.
    pub fn sum(&self, leaves: &impl Leaves, from: &[u8], before: &[u8]) -> SignatureSum {
        self.below(LEVELS, leaves, from, before)
    }

    /// The same, of stretches of levels below one: entries up to the first that begins there, stretches, and entries again.
    fn below(&self, level: usize, leaves: &impl Leaves, from: &[u8], before: &[u8]) -> SignatureSum {
        let Some(level_below) = level.checked_sub(1) else { return leaves.sum(from, before) };
        let within = (Included(from), Excluded(before));
        let mut stretches = self.0[level_below].range::<[u8], _>(within).peekable();
        let Some((first, _)) = stretches.peek() else { return self.below(level_below, leaves, from, before) };
        let mut total = SignatureSum::new();
        if from < &first[..] {
            total.add_sum(&self.below(level_below, leaves, from, first));
        }
        while let Some((begin, sum)) = stretches.next() {
            match stretches.peek() {
                Some((end, _)) => total.add_sum(sum.get_or_init(|| self.below(level_below, leaves, begin, end))),
                // The last one may reach beyond the range.
                None => total.add_sum(&self.below(level_below, leaves, begin, before)),
            }
        }
        total
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use std::ops::Bound::{Excluded, Included};

    use counterfoil_proof::{Message, SecretKey, Signature, SignatureSum};

    use super::{Leaves, Sums};

    /// Entries, and how many of them were added up.
    struct Plain {
        entries: BTreeMap<Vec<u8>, Signature>,
        added: Cell<usize>,
    }

    impl Leaves for Plain {
        fn sum(&self, from: &[u8], before: &[u8]) -> SignatureSum {
            let mut total = SignatureSum::new();
            for (_, signature) in self.entries.range::<[u8], _>((Included(from), Excluded(before))) {
                total.add(signature);
                self.added.set(self.added.get() + 1);
            }
            total
        }
    }

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }
    }

    fn signatures() -> Vec<Signature> {
        let key = SecretKey::from_entropy(&[5; 32]).expect("a key");
        (0..32).map(|byte| key.sign(&Message([byte; 32]))).collect()
    }

    fn place(rid: usize) -> Vec<u8> {
        // Not in the order of numbers, so that entries come in between others.
        [&[1][..], &(rid as u32).wrapping_mul(2_654_435_761).to_be_bytes()].concat()
    }

    #[test]
    fn a_sum_is_that_of_the_entries_whatever_came_and_went() {
        let (signatures, mut dice) = (signatures(), Dice(3));
        let mut plain = Plain { entries: BTreeMap::new(), added: Cell::new(0) };
        let mut sums = Sums::new();
        for step in 0..6000 {
            let rid = dice.below(1500);
            let position = place(rid);
            if dice.below(3) == 0 {
                if plain.entries.remove(&position).is_some() {
                    sums.remove(&position, rid as u64);
                }
            } else {
                plain.entries.insert(position.clone(), signatures[dice.below(32)]);
                sums.put(&position, rid as u64);
            }
            let (mut from, mut before) = (place(dice.below(1500)), place(dice.below(1500)));
            if step % 7 == 0 {
                (from, before) = (vec![1], vec![2]);
            }
            if from > before {
                std::mem::swap(&mut from, &mut before);
            }
            assert!(sums.sum(&plain, &from, &before) == plain.sum(&from, &before), "step {step}");
        }
    }

    #[test]
    fn a_range_that_was_asked_before_takes_few_entries() {
        let (signatures, mut dice) = (signatures(), Dice(9));
        let mut plain = Plain { entries: BTreeMap::new(), added: Cell::new(0) };
        let mut sums = Sums::new();
        for rid in 0..20_000 {
            plain.entries.insert(place(rid), signatures[rid % 32]);
            sums.put(&place(rid), rid as u64);
        }
        sums.sum(&plain, &[1], &[2]);
        assert_eq!(plain.added.take(), 20_000);
        let mut most = 0;
        for _ in 0..300 {
            let mut ends = [place(dice.below(20_000)), place(dice.below(20_000))];
            ends.sort();
            sums.sum(&plain, &ends[0], &ends[1]);
            most = most.max(plain.added.take());
        }
        assert!(most < 200, "{most} entries");
        // One that changes costs the stretches that it is in.
        sums.put(&place(77), 77);
        sums.sum(&plain, &[1], &[2]);
        assert!(plain.added.get() < 200, "{} entries", plain.added.get());
    }
}
