//! All sums kept: every range takes two additions a level at most, and an update as many.

use std::ops::Range;

use super::Sum;

pub struct SumTree<S: Sum> {
    leaves: Vec<S::Leaf>,
    /// Sums of pairs first, the root last.
    sums: Vec<Vec<S>>,
    pub additions: u64,
}

impl<S: Sum> SumTree<S> {
    /// Over a power of two of leaves.
    pub fn new(leaves: Vec<S::Leaf>) -> Self {
        let pair = |pair: &[S::Leaf]| pair.iter().fold(S::zero(), |mut sum, leaf| (sum.add_leaf(leaf), sum).1);
        let mut sums = vec![leaves.chunks(2).map(pair).collect::<Vec<_>>()];
        while let Some(below) = sums.last().filter(|level| level.len() > 1) {
            let next = below
                .chunks(2)
                .map(|pair| pair.iter().fold(S::zero(), |mut sum, part| (sum.add(part), sum).1))
                .collect();
            sums.push(next);
        }
        Self { leaves, sums, additions: 0 }
    }

    /// The sum of a range that is not empty.
    pub fn answer(&mut self, range: Range<usize>) -> S {
        let (mut from, mut to) = (range.start, range.end);
        let (mut sum, mut terms) = (S::zero(), 0);
        for level in 0..=self.sums.len() {
            if from >= to {
                break;
            }
            let edges = [(from % 2 == 1).then_some(from), (to % 2 == 1).then(|| to - 1)];
            for place in edges.into_iter().flatten().collect::<std::collections::BTreeSet<_>>() {
                match level {
                    0 => sum.add_leaf(&self.leaves[place]),
                    _ => sum.add(&self.sums[level - 1][place]),
                }
                terms += 1;
            }
            (from, to) = (from.div_ceil(2), to / 2);
        }
        self.additions += terms - 1;
        sum
    }

    pub fn update(&mut self, record: usize, leaf: S::Leaf) {
        let before = std::mem::replace(&mut self.leaves[record], leaf);
        for (level, sums) in self.sums.iter_mut().enumerate() {
            let sum = &mut sums[record >> (level + 1)];
            sum.subtract_leaf(&before);
            sum.add_leaf(&leaf);
            self.additions += 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SumTree;
    use crate::random::Random;

    #[test]
    fn an_answer_is_the_plain_sum_in_few_additions() {
        let (levels, mut random) = (7, Random(3));
        let mut plain: Vec<u64> = (0..1 << levels).map(|_| random.next()).collect();
        let mut tree = SumTree::<u64>::new(plain.clone());
        for from in 0..plain.len() {
            for to in from + 1..=plain.len() {
                let (record, leaf) = (random.below(plain.len()), random.next());
                plain[record] = leaf;
                tree.update(record, leaf);
                let before = tree.additions;
                let sum = plain[from..to].iter().fold(0u64, |sum, leaf| sum.wrapping_add(*leaf));
                assert_eq!(tree.answer(from..to), sum, "{from}..{to}");
                assert!(tree.additions - before <= 2 * levels as u64);
            }
        }
    }
}
