//! Chosen sums, kept true eagerly or lazily (section 4.3).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::{Node, Sum};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Updates {
    /// A sum loses the old signature and gains the new one with each update.
    Eager,
    /// A sum is forgotten with an update and made again when a query wants it.
    Lazy,
}

pub struct SigCache<S: Sum> {
    levels: u32,
    leaves: Vec<S::Leaf>,
    /// Nothing where an update came by.
    kept: HashMap<Node, Option<S>>,
    /// Nodes with a kept one below them.
    above: HashSet<Node>,
    updates: Updates,
    /// Additions and subtractions so far.
    pub additions: u64,
}

fn ancestors(levels: u32, (level, place): Node) -> impl Iterator<Item = Node> {
    (level + 1..=levels).map(move |up| (up, place >> (up - level)))
}

impl<S: Sum> SigCache<S> {
    /// Over 2^levels leaves; the sums of `nodes` are made when they are wanted.
    pub fn new(levels: u32, leaves: Vec<S::Leaf>, nodes: &[Node], updates: Updates) -> Self {
        assert_eq!(leaves.len(), 1 << levels, "the tree is full");
        let above = nodes.iter().flat_map(|node| ancestors(levels, *node)).collect();
        let kept = nodes.iter().map(|node| (*node, None)).collect();
        let mut cache = Self { levels, leaves, kept, above, updates, additions: 0 };
        for node in nodes {
            cache.value(*node);
        }
        cache.additions = 0;
        cache
    }

    /// Records.
    pub fn len(&self) -> usize {
        self.leaves.len()
    }

    pub fn levels(&self) -> u32 {
        self.levels
    }

    #[cfg(test)]
    pub fn kept_count(&self) -> usize {
        self.kept.len()
    }

    /// Keeps the sum of a node, made when it is wanted.
    pub fn keep(&mut self, node: Node) {
        if let Entry::Vacant(place) = self.kept.entry(node) {
            place.insert(None);
            self.above.extend(ancestors(self.levels, node));
        }
    }

    /// Forgets all others.
    pub fn keep_only(&mut self, nodes: &[Node]) {
        let before = std::mem::take(&mut self.kept);
        self.kept = nodes.iter().map(|node| (*node, before.get(node).copied().flatten())).collect();
        self.above = nodes.iter().flat_map(|node| ancestors(self.levels, *node)).collect();
    }

    /// The sum of a range that is not empty.
    pub fn answer(&mut self, range: Range<usize>) -> S {
        let (mut sum, mut terms) = (S::zero(), 0);
        self.gather((self.levels, 0), &range, &mut sum, &mut terms);
        self.additions += terms - 1;
        sum
    }

    fn gather(&mut self, node: Node, wanted: &Range<usize>, sum: &mut S, terms: &mut u64) {
        let (begin, end) = (node.1 << node.0, (node.1 + 1) << node.0);
        let (from, to) = (begin.max(wanted.start), end.min(wanted.end));
        if from >= to {
            return;
        }
        if from == begin && to == end && self.kept.contains_key(&node) {
            let kept = self.value(node);
            sum.add(&kept);
            *terms += 1;
        } else if self.above.contains(&node) {
            self.gather((node.0 - 1, node.1 * 2), wanted, sum, terms);
            self.gather((node.0 - 1, node.1 * 2 + 1), wanted, sum, terms);
        } else {
            self.leaves[from..to].iter().for_each(|leaf| sum.add_leaf(leaf));
            *terms += (to - from) as u64;
        }
    }

    fn value(&mut self, node: Node) -> S {
        if let Some(Some(sum)) = self.kept.get(&node) {
            return *sum;
        }
        let (mut sum, mut terms) = (S::zero(), 0);
        let wanted = node.1 << node.0..(node.1 + 1) << node.0;
        for child in [node.1 * 2, node.1 * 2 + 1] {
            self.gather((node.0 - 1, child), &wanted, &mut sum, &mut terms);
        }
        self.additions += terms - 1;
        self.kept.insert(node, Some(sum));
        sum
    }

    pub fn update(&mut self, record: usize, leaf: S::Leaf) {
        let before = std::mem::replace(&mut self.leaves[record], leaf);
        for level in 1..=self.levels {
            let Some(kept) = self.kept.get_mut(&(level, record >> level)) else { continue };
            match (self.updates, kept) {
                (Updates::Eager, Some(sum)) => {
                    sum.subtract_leaf(&before);
                    sum.add_leaf(&leaf);
                    self.additions += 2;
                }
                (_, kept) => *kept = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{SigCache, Updates};
    use crate::random::Random;
    use crate::sigcache::choice::{Cardinalities, Counting, choose, mirror};

    #[test]
    fn an_answer_is_the_plain_sum_whatever_was_updated() {
        let (levels, records) = (8, 256);
        let mut nodes = choose(levels, 6, &Cardinalities::skewed(records), 12, Counting::KeptStay);
        nodes.extend(nodes.clone().into_iter().map(|node| mirror(levels, node)));
        for updates in [Updates::Eager, Updates::Lazy] {
            let mut random = Random(7);
            let mut plain: Vec<u64> = (0..records).map(|_| random.next()).collect();
            let mut cache = SigCache::<u64>::new(levels, plain.clone(), &nodes, updates);
            for _ in 0..20_000 {
                if random.below(2) == 0 {
                    let (record, leaf) = (random.below(records), random.next());
                    plain[record] = leaf;
                    cache.update(record, leaf);
                } else {
                    let from = random.below(records);
                    let to = from + 1 + random.below(records - from);
                    let sum = plain[from..to].iter().fold(0u64, |sum, leaf| sum.wrapping_add(*leaf));
                    assert_eq!(cache.answer(from..to), sum, "{updates:?} {from}..{to}");
                }
            }
        }
    }
}
