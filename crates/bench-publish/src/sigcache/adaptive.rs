//! A cache that learns what is asked (section 4.2): sums that answers needed are kept and counted, and from time to time the
//! list is gone through by Algorithm 1 with the counts as probabilities.

use std::collections::HashMap;
use std::ops::Range;

use super::cache::SigCache;
use super::choice::{Counting, choose_among};
use super::{Node, Sum};

/// Sums of fewer signatures than 2^this are not worth their place.
const LEVEL_LEAST: u32 = 4;

pub struct Adaptive<S: Sum> {
    pub cache: SigCache<S>,
    /// How often queries used a sum since the last revision.
    used: HashMap<Node, u64>,
    /// Sums that stay at a revision.
    most: usize,
    /// Queries between two of them.
    every: u64,
    queries: u64,
}

/// The largest nodes that make up a range.
fn cover(levels: u32, range: &Range<usize>) -> Vec<Node> {
    let (mut from, mut found) = (range.start, Vec::new());
    while from < range.end {
        let aligned = if from == 0 { levels } else { from.trailing_zeros().min(levels) };
        let level = aligned.min((range.end - from).ilog2());
        found.push((level, from >> level));
        from += 1 << level;
    }
    found
}

impl<S: Sum> Adaptive<S> {
    pub fn new(cache: SigCache<S>, most: usize, every: u64) -> Self {
        Self { cache, used: HashMap::new(), most, every, queries: 0 }
    }

    pub fn answer(&mut self, range: Range<usize>) -> S {
        for node in cover(self.cache.levels(), &range).into_iter().filter(|node| node.0 >= LEVEL_LEAST) {
            *self.used.entry(node).or_default() += 1;
            self.cache.keep(node);
        }
        let sum = self.cache.answer(range);
        self.queries += 1;
        if self.queries.is_multiple_of(self.every) {
            self.revise();
        }
        sum
    }

    fn revise(&mut self) {
        let used = std::mem::take(&mut self.used);
        let chances = used.into_iter().map(|(node, used)| (node, used as f64 / self.every as f64)).collect();
        let chosen = choose_among(self.cache.levels(), chances, self.most, Counting::KeptStay, |_| 1.0);
        self.cache.keep_only(&chosen);
    }
}

#[cfg(test)]
mod tests {
    use super::{Adaptive, cover};
    use crate::random::Random;
    use crate::sigcache::cache::{SigCache, Updates};

    #[test]
    fn a_cover_is_the_range_in_few_nodes() {
        for from in 0..64 {
            for to in from + 1..=64 {
                let nodes = cover(6, &(from..to));
                assert!(nodes.len() <= 11);
                let leaves: Vec<usize> =
                    nodes.into_iter().flat_map(|(level, place)| place << level..(place + 1) << level).collect();
                assert!(leaves.into_iter().eq(from..to), "{from}..{to}");
            }
        }
    }

    #[test]
    fn answers_stay_right_and_become_cheaper_where_queries_move() {
        let (levels, mut random) = (12, Random(3));
        let mut plain: Vec<u64> = (0..1 << levels).map(|_| random.next()).collect();
        let cache = SigCache::<u64>::new(levels, plain.clone(), &[], Updates::Lazy);
        let mut adaptive = Adaptive::new(cache, 40, 200);
        let mut costs = Vec::new();
        // First all ask for the left half, then for the right one.
        for phase in 0..2 {
            for block in 0..5 {
                let before = adaptive.cache.additions;
                for _ in 0..200 {
                    let from = phase * 2048 + random.below(1024);
                    let range = from..from + 500 + random.below(500);
                    let sum = plain[range.clone()].iter().fold(0u64, |sum, leaf| sum.wrapping_add(*leaf));
                    assert_eq!(adaptive.answer(range), sum);
                    let (record, leaf) = (random.below(4096), random.next());
                    if random.below(20) == 0 {
                        plain[record] = leaf;
                        adaptive.cache.update(record, leaf);
                    }
                }
                costs.push(adaptive.cache.additions - before);
                assert!(adaptive.cache.kept_count() <= 40, "{block}: {} sums", adaptive.cache.kept_count());
            }
        }
        let unaided = 200 * 749;
        assert!(costs.iter().all(|cost| *cost < unaided / 2), "{costs:?} of {unaided}");
    }
}
