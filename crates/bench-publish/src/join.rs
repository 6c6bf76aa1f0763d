//! Proofs that values have no match (section 3.5), counted value by value: boundary values against partition filters.

use std::collections::BTreeSet;

use counterfoil_proof::FilterBits;

use crate::random::Random;

/// Bytes of a value of the join's column.
pub const VALUE: usize = 4;
/// Bytes of a boundary row as a reader needs it: value, number of the row (8) and root of its attributes (32).
pub const ROW: usize = VALUE + 8 + 32;
/// Bytes of a filter's signed header beside bounds and bits: salt (16), number, version and period (some 4 each).
pub const HEADER: usize = 28;

/// The two columns: R.A has all values, S.B some of them.
pub struct Columns {
    /// Increasing.
    referenced: Vec<u32>,
    /// Those of R.A that S.B does not have, in the order in which queries take them, and those it has.
    unmatched: Vec<u32>,
    matched: Vec<u32>,
}

impl Columns {
    /// `distinct_a` values, of which S.B has `distinct_b`.
    pub fn new(distinct_a: usize, distinct_b: usize) -> Self {
        let mut random = Random(5);
        let mut values = BTreeSet::new();
        while values.len() < distinct_a {
            values.insert(random.next() as u32);
        }
        let mut values: Vec<u32> = values.into_iter().collect();
        random.shuffle(&mut values);
        let unmatched = values.split_off(distinct_b);
        let mut referenced = values.clone();
        referenced.sort_unstable();
        Self { referenced, unmatched, matched: values }
    }

    /// Of `selected` records of R, the values without a match where a part `alpha` of the records has one.
    pub fn unmatched(&self, selected: usize, alpha: f64) -> &[u32] {
        let with = ((selected as f64 * alpha).round() as usize).min(self.matched.len());
        &self.unmatched[..(selected - with).min(self.unmatched.len())]
    }

    /// The values before and behind one that is not there.
    fn bounds(&self, value: u32) -> impl Iterator<Item = u32> + '_ {
        let at = self.referenced.partition_point(|known| *known < value);
        [at.checked_sub(1), Some(at)].into_iter().flatten().filter_map(|at| self.referenced.get(at).copied())
    }

    /// Bytes of boundary values, each sent once.
    pub fn boundary_bytes(&self, unmatched: &[u32]) -> usize {
        unmatched.iter().flat_map(|value| self.bounds(*value)).collect::<BTreeSet<u32>>().len() * VALUE
    }
}

/// The filters of S.B, one for so many values of it.
pub struct Filters<'a> {
    columns: &'a Columns,
    partition: usize,
    filters: Vec<FilterBits>,
}

/// What the proof by filters is made of, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Proof {
    pub filters: usize,
    pub partition_bounds: usize,
    pub boundaries: usize,
    /// Filters that are sent.
    pub probed: usize,
    /// Values that a filter had though S.B has not.
    pub false_positives: usize,
}

impl Proof {
    pub fn bytes(&self) -> usize {
        self.filters + self.partition_bounds + self.boundaries
    }

    /// With rows for boundary values and a header for each filter.
    pub fn signed_bytes(&self) -> usize {
        self.filters + self.partition_bounds + self.probed * HEADER + self.boundaries / VALUE * ROW
    }
}

impl<'a> Filters<'a> {
    pub fn new(columns: &'a Columns, partition: usize, bits_per_value: u32) -> Self {
        let filters = columns
            .referenced
            .chunks(partition)
            .enumerate()
            .map(|(at, values)| filter(at, values, bits_per_value))
            .collect();
        Self { columns, partition, filters }
    }

    /// The proof for values that S.B does not have: probed filters, their bounds, and the neighbours of false positives.
    pub fn prove(&self, unmatched: &[u32]) -> Proof {
        let (mut probed, mut boundaries, mut false_positives) = (BTreeSet::new(), BTreeSet::new(), 0);
        for value in unmatched {
            // A partition reaches from its first value to the next one's.
            let below = self.columns.referenced.partition_point(|known| known < value);
            let at = below.saturating_sub(1) / self.partition;
            probed.insert(at);
            if self.filters[at].may_contain(&value.to_le_bytes()) {
                false_positives += 1;
                boundaries.extend(self.columns.bounds(*value));
            }
        }
        let bounds: BTreeSet<usize> = probed.iter().flat_map(|at| [*at, at + 1]).collect();
        Proof {
            // What a filter is beside its bits, one byte, its header says for all.
            filters: probed.iter().map(|at| self.filters[*at].to_bytes().len() - 1).sum(),
            partition_bounds: bounds.len() * VALUE,
            boundaries: boundaries.len() * VALUE,
            probed: probed.len(),
            false_positives,
        }
    }
}

/// A filter of values; its salt is its place.
pub fn filter(at: usize, values: &[u32], bits_per_value: u32) -> FilterBits {
    let mut salt = [0; 16];
    salt[..8].copy_from_slice(&(at as u64).to_le_bytes());
    let values: Vec<[u8; VALUE]> = values.iter().map(|value| value.to_le_bytes()).collect();
    let values: Vec<&[u8]> = values.iter().map(|value| &value[..]).collect();
    FilterBits::build(salt, &values, bits_per_value)
}

/// Formula (2), bytes.
pub fn expected_boundary_bytes(alpha: f64, distinct_a: f64, distinct_b: f64) -> f64 {
    (1.0 - alpha) * distinct_a * f64::min(2.0, distinct_b / distinct_a) * VALUE as f64
}

/// Formula (3), bytes.
pub fn expected_filter_bytes(alpha: f64, distinct_a: f64, distinct_b: f64, partition: f64, bits: f64) -> f64 {
    let (open, partitions, rate) = (1.0 - alpha, distinct_b / partition, 0.6185f64.powf(bits));
    let value = VALUE as f64;
    open * bits * distinct_b / 8.0
        + f64::min(1.0, 2.0 * open) * partitions * value
        + open * distinct_a * rate * 2.0 * value
}

/// Formula (5): whether filters of eight bits are worth it.
#[cfg(test)]
fn is_filter_better(alpha: f64, distinct_a: f64, distinct_b: f64, partition: f64) -> bool {
    let bounds = f64::min(1.0, 2.0 * (1.0 - alpha)) * (distinct_b / partition) / (1.0 - alpha);
    0.75 * distinct_b - 0.0432 * distinct_a - bounds > 0.0
}

#[cfg(test)]
mod tests {
    use super::{Columns, Filters, expected_boundary_bytes, expected_filter_bytes, is_filter_better};

    #[test]
    fn formulas_are_near_counted_sizes() {
        // All of R, as the formulas have it: half of the values have a match.
        let columns = Columns::new(6850, 3425);
        let unmatched = columns.unmatched(6850, 0.5);
        assert_eq!(unmatched.len(), 3425);
        let counted = Filters::new(&columns, 64, 8).prove(unmatched);
        // Formula (3) takes half of the filters to be probed; all of them are where partitions are this large.
        let expected = expected_filter_bytes(0.5, 6850.0, 3425.0, 64.0, 8.0) + 0.5 * 3425.0;
        assert!((counted.bytes() as f64 / expected - 1.0).abs() < 0.15, "{counted:?} for {expected}");
        let rate = counted.false_positives as f64 / unmatched.len() as f64;
        assert!((0.012..0.035).contains(&rate), "{rate}");
        // Formula (2) is of values that share all they can: 1 - alpha of them. Two thirds are needed where matches fall at random.
        let counted = columns.boundary_bytes(unmatched) as f64;
        let expected = expected_boundary_bytes(0.5, 6850.0, 3425.0);
        assert!((1.0..2.0).contains(&(counted / expected)), "{counted} for {expected}");
    }

    #[test]
    fn the_settings_of_section_3_5_are_where_filters_begin_to_pay() {
        // The sufficient condition, alpha to one: I_B / p of 2.83 and 6.29.
        for (ratio, partition) in [(1.0, 2.83), (10.0, 6.29)] {
            assert!(is_filter_better(0.999, ratio * 1000.0, 1000.0, partition + 0.02));
            assert!(!is_filter_better(0.999, ratio * 1000.0, 1000.0, partition - 0.02));
        }
        // Formula (4) is where (3) is below (2).
        for alpha in [0.1, 0.5, 0.9] {
            for partition in [2.0, 2.5, 3.0, 4.0, 8.0] {
                let smaller = expected_filter_bytes(alpha, 2000.0, 1000.0, partition, 8.0)
                    < expected_boundary_bytes(alpha, 2000.0, 1000.0);
                assert_eq!(smaller, is_filter_better(alpha, 2000.0, 1000.0, partition), "{alpha} {partition}");
            }
        }
    }
}
