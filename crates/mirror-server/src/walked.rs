//! What a walk along an order has passed, and the sum of its signatures.

use counterfoil_mirror::sums::height;
use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{Malformed, Signature, SignatureSum};

use crate::sums::{KeptSums, Moment, Stretch};

const SIGNATURE: usize = 96;
const HINT: usize = 96;

/// An entry that was passed.
struct Leaf {
    position: Vec<u8>,
    /// The levels on which a stretch begins with it.
    height: usize,
    signature: [u8; SIGNATURE],
}

/// Entries of an order that stand beside each other, each with a signature of its own.
pub(crate) struct Walked<'a> {
    kept: &'a KeptSums,
    moment: Moment,
    order: u8,
    /// Whether what was passed descends.
    descends: bool,
    leaves: Vec<Leaf>,
}

impl<'a> Walked<'a> {
    pub(crate) fn new(kept: &'a KeptSums, moment: Moment) -> Self {
        Self { kept, moment, order: 0, descends: false, leaves: Vec::new() }
    }

    /// A walk begins.
    pub(crate) fn begin(&mut self, order: u8, upward: bool) {
        (self.order, self.descends) = (order, !upward);
        self.leaves.clear();
    }

    /// Passes an entry: its number comes first in its bytes, its signature before the hint at their end.
    pub(crate) fn pass(&mut self, position: &[u8], entry: &[u8]) -> Result<(), Malformed> {
        let rid = Reader::new(entry, "an entry").number()?;
        let start = entry.len().checked_sub(SIGNATURE + HINT).ok_or(Malformed("an entry that is too short"))?;
        let mut signature = [0; SIGNATURE];
        signature.copy_from_slice(&entry[start..start + SIGNATURE]);
        self.leaves.push(Leaf { position: position.to_vec(), height: height(rid), signature });
        Ok(())
    }

    /// The sum of all that was passed from `from` on and before `before`.
    pub(crate) fn sum(&mut self, from: &[u8], before: &[u8]) -> Result<SignatureSum, Malformed> {
        if std::mem::take(&mut self.descends) {
            self.leaves.reverse();
        }
        let first = self.leaves.partition_point(|leaf| &leaf.position[..] < from);
        let end = self.leaves.partition_point(|leaf| &leaf.position[..] < before).max(first);
        let leaves = &self.leaves[first..end];
        if leaves.is_empty() {
            return Ok(SignatureSum::new());
        }
        let mut work = Work::default();
        let levels = leaves.iter().map(|leaf| leaf.height).max().unwrap_or(0);
        let sum = self.below(levels, leaves, &mut work)?;
        self.kept.keep(&self.moment, work.made.into_iter());
        Ok(sum)
    }

    /// The sum of entries by stretches of a level and of those below it: entries up to where the first one begins, stretches, and
    /// what is left, which may be a part of one.
    fn below<'b>(&'b self, level: usize, leaves: &'b [Leaf], work: &mut Work<'b>) -> Result<SignatureSum, Malformed> {
        let Some(lower) = level.checked_sub(1).filter(|_| !leaves.is_empty()) else { return work.add(leaves) };
        let begins: Vec<usize> = (0..leaves.len()).filter(|at| leaves[*at].height >= level).collect();
        let (Some(first), Some(last)) = (begins.first(), begins.last()) else { return self.below(lower, leaves, work) };
        let mut total = self.below(lower, &leaves[..*first], work)?;
        for pair in begins.windows(2) {
            let (begin, end) = (&leaves[pair[0]].position[..], &leaves[pair[1]].position[..]);
            let stretch = Stretch { order: self.order, level: level as u8, begin, end };
            let sum = match self.kept.find(&self.moment, &stretch) {
                Some(sum) => sum,
                None => {
                    let sum = self.below(lower, &leaves[pair[0]..pair[1]], work)?;
                    work.made.push((stretch, sum));
                    sum
                }
            };
            total.add_sum(&sum);
        }
        total.add_sum(&self.below(lower, &leaves[*last..], work)?);
        Ok(total)
    }
}

/// What it took to make a sum.
#[derive(Default)]
struct Work<'a> {
    /// Stretches whose sums were not there.
    made: Vec<(Stretch<'a>, SignatureSum)>,
    /// How many signatures were added.
    added: usize,
}

impl Work<'_> {
    fn add(&mut self, leaves: &[Leaf]) -> Result<SignatureSum, Malformed> {
        self.added += leaves.len();
        let mut total = SignatureSum::new();
        for leaf in leaves {
            let wrong = |_| Malformed("the signature of a record");
            total.add(&Signature::from_bytes(&leaf.signature).map_err(wrong)?);
        }
        Ok(total)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use counterfoil_mirror::wire::{Progress, State};
    use counterfoil_proof::bytes::Writer;
    use counterfoil_proof::{Message, SecretKey, Signature, SignatureSum};

    use super::{Walked, Work};
    use crate::store::Touched;
    use crate::sums::{KeptSums, Moment};

    struct Dice(u64);

    impl Dice {
        fn below(&mut self, bound: usize) -> usize {
            self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (self.0 >> 33) as usize % bound
        }
    }

    /// An order as a store has it, in a state: numbers and signatures by positions.
    #[derive(Clone)]
    struct Order {
        entries: BTreeMap<Vec<u8>, (u64, Signature)>,
        moment: Moment,
    }

    impl Order {
        fn new() -> Self {
            Self { entries: BTreeMap::new(), moment: Moment { table: [3; 32], state: State::default() } }
        }

        fn walk<'a>(&self, kept: &'a KeptSums, from: &[u8], before: &[u8]) -> Walked<'a> {
            let mut walked = Walked::new(kept, self.moment);
            walked.begin(1, true);
            for (position, (rid, signature)) in self.entries.range(from.to_vec()..before.to_vec()) {
                let mut entry = Writer::default();
                entry.number(*rid).raw(&[7; 50]).raw(&signature.to_uncompressed()).raw(&[0; 96]);
                walked.pass(position, &entry.0).expect("an entry");
            }
            walked
        }

        fn plain(&self, from: &[u8], before: &[u8]) -> SignatureSum {
            let mut total = SignatureSum::new();
            self.entries.range(from.to_vec()..before.to_vec()).for_each(|(_, (_, signature))| total.add(signature));
            total
        }

        /// Goes to the next state: what the mirror is told of it.
        fn moves(&mut self, kept: &KeptSums, touched: &Touched) {
            let (before, number) = (self.moment, self.moment.state.progress.number + 1);
            self.moment.state.progress = Progress { number, ..self.moment.state.progress };
            kept.moved(&before, self.moment.state, touched);
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

    fn range(dice: &mut Dice) -> [Vec<u8>; 2] {
        let mut ends = if dice.below(5) == 0 { [vec![1], vec![2]] } else { [0; 2].map(|_| place(dice.below(1500))) };
        ends.sort();
        ends
    }

    #[test]
    fn sums_are_those_of_the_entries_whatever_comes_and_goes() {
        let (signatures, mut dice, mut order) = (signatures(), Dice(3), Order::new());
        let kept = KeptSums::new(1 << 20);
        let mut snapshots = vec![order.clone()];
        for step in 0..3000 {
            let mut touched = Vec::new();
            for _ in 0..dice.below(4) {
                let rid = dice.below(1500);
                touched.push((1, place(rid)));
                match dice.below(3) {
                    0 => drop(order.entries.remove(&place(rid))),
                    _ => drop(order.entries.insert(place(rid), (rid as u64, signatures[dice.below(32)]))),
                }
            }
            // Now and then somebody else writes, or a table is begun anew.
            match dice.below(40) {
                0 => order.moment.state.progress.number += 1,
                1 => order.moves(&kept, &Touched::All),
                _ => order.moves(&kept, &Touched::Places(touched)),
            }
            if dice.below(10) == 0 {
                snapshots = vec![order.clone(), snapshots[0].clone()];
            }
            // Also by those who began to answer before, and by whom the store was read before this was told of it.
            for seen in [&order, &snapshots[dice.below(snapshots.len())]] {
                let [from, before] = range(&mut dice);
                let told = seen.walk(&kept, &from, &before).sum(&from, &before).expect("a sum");
                assert!(told == seen.plain(&from, &before), "step {step}");
            }
        }
    }

    fn added(order: &Order, kept: &KeptSums, from: &[u8], before: &[u8]) -> usize {
        let walked = order.walk(kept, from, before);
        let mut work = Work::default();
        let levels = walked.leaves.iter().map(|leaf| leaf.height).max().unwrap_or(0);
        walked.below(levels, &walked.leaves, &mut work).expect("a sum");
        kept.keep(&order.moment, work.made.into_iter());
        work.added
    }

    #[test]
    fn a_range_that_was_asked_before_takes_few_additions() {
        let (signatures, mut dice, mut order) = (signatures(), Dice(9), Order::new());
        for rid in 0..20_000 {
            order.entries.insert(place(rid), (rid as u64, signatures[rid % 32]));
        }
        let kept = KeptSums::new(4 << 20);
        assert_eq!(added(&order, &kept, &[1], &[2]), 20_000);
        for _ in 0..50 {
            let mut ends = [place(dice.below(20_000)), place(dice.below(20_000))];
            ends.sort();
            let added = added(&order, &kept, &ends[0], &ends[1]);
            assert!(added < 250, "{added} additions");
        }
        // An entry that changes costs the stretches that it is in.
        order.entries.insert(place(77), (77, signatures[3]));
        order.moves(&kept, &Touched::Places(vec![(1, place(77))]));
        let again = added(&order, &kept, &[1], &[2]);
        assert!((1..300).contains(&again), "{again} additions");
        // Sums take no more than they may: what does not fit is made each time.
        let small = KeptSums::new(1000);
        assert_eq!([(); 2].map(|()| added(&order, &small, &[1], &[2])), [20_000; 2]);
    }
}
