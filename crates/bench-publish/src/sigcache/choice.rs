//! Which nodes are worth keeping: P(T) of section 4.1 and Algorithm 1.

use std::collections::{HashMap, HashSet};

use super::Node;

/// How often queries of each cardinality come: that of 1 first; larger ones than are here do not come.
pub struct Cardinalities(pub Vec<f64>);

impl Cardinalities {
    pub fn uniform(records: usize) -> Self {
        Self(vec![1.0 / records as f64; records])
    }

    /// In inverse proportion to the cardinality.
    pub fn skewed(records: usize) -> Self {
        let sum: f64 = (1..=records).map(|q| 1.0 / q as f64).sum();
        Self((1..=records).map(|q| 1.0 / q as f64 / sum).collect())
    }
}

/// The queries of cardinality `q` that are answered from a node: those over it and not over all of its parent. The paper's
/// cases of xi say the same.
pub fn queries(levels: u32, (level, place): Node, q: usize) -> usize {
    let records = 1 << levels;
    let over = |level: u32, place: usize| {
        let (begin, width) = (place << level, 1 << level);
        let (first, last) = ((begin + width).saturating_sub(q), begin.min(records - q));
        if q < width { 0 } else { (last + 1).saturating_sub(first) }
    };
    over(level, place) - if level < levels { over(level + 1, place / 2) } else { 0 }
}

/// P(T): how probable it is that a query is answered from a node.
pub fn probability(levels: u32, node: Node, cardinalities: &Cardinalities) -> f64 {
    let records = 1usize << levels;
    let each = |q: usize| queries(levels, node, q) as f64 / (records - q + 1) as f64 * cardinalities.0[q - 1];
    (1 << node.0..=records.min(cardinalities.0.len())).map(each).sum()
}

pub fn mirror(levels: u32, (level, place): Node) -> Node {
    (level, (1 << (levels - level)) - 1 - place)
}

/// How Algorithm 1 counts what a new node takes from those above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Counting {
    /// All above it save less, kept or not, so that a node below a kept one is hardly ever worth it.
    AsWritten,
    /// A kept one is not made anew, and so saves what it saved; neither does anything above it change.
    KeptStay,
}

/// Algorithm 1 over the upper `depth` levels, left half alone: pairs of a node and its mirror (the root has itself), best
/// first, `pairs` at most.
pub fn choose(levels: u32, depth: u32, cardinalities: &Cardinalities, pairs: usize, counting: Counting) -> Vec<Node> {
    let left = |level: u32| (0..(1usize << (levels - level)).div_ceil(2)).map(move |place| (level, place));
    let all: Vec<Node> = (levels.saturating_sub(depth).max(1)..=levels).flat_map(left).collect();
    let waiting = all.into_iter().map(|node| (node, probability(levels, node, cardinalities))).collect();
    choose_among(levels, waiting, pairs, counting, |node| copies(levels, node))
}

/// Algorithm 1 over some nodes, with how probable it is that a query needs each; `copies` of a node are kept at once.
pub fn choose_among(
    levels: u32,
    mut waiting: HashMap<Node, f64>,
    most: usize,
    counting: Counting,
    copies: impl Fn(Node) -> f64,
) -> Vec<Node> {
    let mut savings: HashMap<Node, f64> = waiting.keys().map(|node| (*node, (1u64 << node.0) as f64 - 1.0)).collect();
    let mut kept: Vec<(Node, f64)> = Vec::new();
    let mut is_kept: HashSet<Node> = HashSet::new();
    let mut best = 0.0;
    while kept.len() < most {
        let utility = |node: &Node, probability: f64| probability * savings[node] * copies(*node);
        let better =
            |a: &(&Node, &f64), b: &(&Node, &f64)| utility(a.0, *a.1).total_cmp(&utility(b.0, *b.1)).then(b.0.cmp(a.0));
        let Some((node, chance)) = waiting.iter().max_by(better).map(|(node, chance)| (*node, *chance)) else { break };
        waiting.remove(&node);
        let saved = savings[&node];
        let ends = |above: Node| counting == Counting::KeptStay && is_kept.contains(&above);
        let changed = changed_above(levels, node, &copies, ends);
        change(&changed, -saved, &mut savings);
        kept.push((node, chance));
        is_kept.insert(node);
        let total: f64 = kept.iter().map(|(node, chance)| chance * savings[node] * copies(*node)).sum();
        if total < best {
            change(&changed, saved, &mut savings);
            kept.pop();
            is_kept.remove(&node);
        } else {
            best = total;
        }
    }
    kept.into_iter().map(|(node, _)| node).collect()
}

fn copies(levels: u32, node: Node) -> f64 {
    if mirror(levels, node) == node { 1.0 } else { 2.0 }
}

/// The ancestors of a node that are changed, up to where it ends, and how often.
fn changed_above(
    levels: u32,
    node: Node,
    copies: &impl Fn(Node) -> f64,
    ends: impl Fn(Node) -> bool,
) -> Vec<(Node, f64)> {
    let above = (node.0 + 1..=levels).map(|level| (level, node.1 >> (level - node.0)));
    // Over the root alone a node comes with its mirror.
    above
        .take_while(|above| !ends(*above))
        .map(|above| (above, if above.0 == levels { copies(node) } else { 1.0 }))
        .collect()
}

fn change(nodes: &[(Node, f64)], by: f64, savings: &mut HashMap<Node, f64>) {
    for (node, times) in nodes {
        if let Some(saved) = savings.get_mut(node) {
            *saved += by * times;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Cardinalities, Counting, Node, choose, mirror, probability, queries};

    /// The nodes that cover a range, by walking down.
    fn cover(node: Node, from: usize, to: usize, found: &mut Vec<Node>) {
        let (begin, end) = (node.1 << node.0, (node.1 + 1) << node.0);
        if from <= begin && end <= to {
            found.push(node);
        } else if begin < to && from < end {
            cover((node.0 - 1, node.1 * 2), from, to, found);
            cover((node.0 - 1, node.1 * 2 + 1), from, to, found);
        }
    }

    #[test]
    fn probabilities_are_those_of_all_queries() {
        for levels in 1..=6 {
            let records = 1usize << levels;
            for cardinalities in [Cardinalities::uniform(records), Cardinalities::skewed(records)] {
                let mut chances = std::collections::BTreeMap::<Node, f64>::new();
                for q in 1..=records {
                    for from in 0..=records - q {
                        let mut found = Vec::new();
                        cover((levels, 0), from, from + q, &mut found);
                        let chance = cardinalities.0[q - 1] / (records - q + 1) as f64;
                        found.into_iter().for_each(|node| *chances.entry(node).or_default() += chance);
                    }
                }
                for level in 0..=levels {
                    for place in 0..records >> level {
                        let wanted = chances.get(&(level, place)).copied().unwrap_or(0.0);
                        let told = probability(levels, (level, place), &cardinalities);
                        assert!((wanted - told).abs() < 1e-12, "{level}, {place}: {told} for {wanted}");
                        let mirrored = probability(levels, mirror(levels, (level, place)), &cardinalities);
                        assert!((told - mirrored).abs() < 1e-12, "{level}, {place}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_examples_of_section_4_hold() {
        let of_seven = |node| queries(4, node, 7);
        assert_eq!([(2, 0), (2, 3), (2, 1), (2, 2)].map(of_seven), [1, 1, 4, 4]);
        assert_eq!([(1, 1), (1, 3), (1, 5), (0, 0xb), (1, 7), (3, 0)].map(of_seven), [2, 2, 1, 0, 0, 0]);
        assert_eq!([(1, 4), (1, 6), (0, 8), (1, 2), (0, 6), (0, 4), (1, 0)].map(of_seven), [2, 2, 1, 1, 1, 0, 0]);
    }

    #[test]
    fn the_second_from_the_edge_is_chosen_first() {
        let chosen = choose(12, 8, &Cardinalities::uniform(1 << 12), 3, Counting::AsWritten);
        assert_eq!(chosen, [(10, 1), (9, 1), (8, 1)]);
        let chosen = choose(12, 8, &Cardinalities::uniform(1 << 12), 20, Counting::KeptStay);
        assert_eq!((chosen[0], chosen.len()), ((10, 1), 20));
    }
}
