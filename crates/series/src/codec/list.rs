//! The values of a column that differ, each once, and the places that the values have among them: knots told in miles an hour, of
//! which no power of ten makes integers, or whatever takes few values unevenly apart.

use alloc::vec::Vec;

/// Values that are looked at before all are.
const SAMPLES: usize = 32;
/// Values that a different one stands for on average at least where a list is written.
const REPEATED: usize = 8;
/// Bits that the values are spread over at least beside those of a place: where they lie close together, places are no shorter.
const SPREAD: u32 = 2;
/// Of the values looked at so many do not count for that at each end, since some that are far out cost little as they are.
const FAR_OUT: usize = 2;
/// Bits of a place that may become less by differences.
const SLACK: usize = 1;

/// Whether places may be shorter than so many bits a value, as some values tell.
pub(crate) fn is_worth_trying(values: &[i64], bits: usize) -> bool {
    if values.len() < 2 * SAMPLES {
        return false;
    }
    // Odd, since what comes round again mostly does so after an even number.
    let step = (values.len() / SAMPLES - 1) | 1;
    let mut sample = [0; SAMPLES];
    sample.iter_mut().zip(values.iter().step_by(step)).for_each(|(sample, value)| *sample = *value);
    if sample.is_sorted_by(|one, next| one < next) {
        // As times are.
        return false;
    }
    sample.sort_unstable();
    let different = 1 + sample.windows(2).filter(|pair| pair[0] != pair[1]).count();
    let width = |most: u64| u64::BITS - most.leading_zeros();
    let place = width(likely(different) - 1);
    place as usize <= bits + SLACK && place + SPREAD <= width(sample[SAMPLES - 1 - FAR_OUT].abs_diff(sample[FAR_OUT]))
}

/// How many different values a column has about, if the sample has so many: were they equally frequent, every pair of the sample
/// would be two of the same in one case of so many.
fn likely(different: usize) -> u64 {
    let repeats = SAMPLES - different;
    match repeats {
        0 => u64::MAX,
        _ if repeats * 2 >= SAMPLES => different as u64,
        _ => (SAMPLES * SAMPLES / (2 * repeats)) as u64,
    }
}

/// The values that differ, ascending; none if they are too many.
pub(crate) fn different(values: &[i64]) -> Option<Vec<i64>> {
    let most = values.len() / REPEATED;
    let mut sorted = Vec::new();
    let mut last = None;
    for value in values {
        if last == Some(value) {
            continue;
        }
        last = Some(value);
        if let Err(place) = sorted.binary_search(value) {
            if sorted.len() == most {
                return None;
            }
            sorted.insert(place, *value);
        }
    }
    Some(sorted)
}

/// The places of values in the list of those that differ.
pub(crate) fn places(sorted: &[i64], values: &[i64]) -> Vec<i64> {
    values.iter().map(|value| sorted.partition_point(|other| other < value) as i64).collect()
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn a_list_is_tried_where_places_may_be_shorter() {
        let mixed = |at: i64| at * 7919 % 997;
        let of = |value: &dyn Fn(i64) -> i64| (0..2000).map(|at| value(mixed(at))).collect::<Vec<i64>>();
        let few = of(&|at| (at % 31).pow(5));
        assert!(is_worth_trying(&few, 20) && !is_worth_trying(&few, 2));
        assert!(!is_worth_trying(&of(&|at| at % 31), 20), "close together");
        assert!(!is_worth_trying(&of(&|at| at.pow(5)), 64), "all different");
        assert!(!is_worth_trying(&(0..2000).map(|at| at * at).collect::<Vec<_>>(), 20), "ascending");
        assert!(!is_worth_trying(&few[..63], 20), "short");
    }

    #[test]
    fn places_are_those_in_the_list() {
        let values = [[7, -3, 7, 1 << 40].repeat(9), vec![-3]].concat();
        let sorted = different(&values).expect("few");
        assert_eq!(sorted, [-3, 7, 1 << 40]);
        assert_eq!(places(&sorted, &values[..4]), [1, 0, 1, 2]);
        assert_eq!(different(&values[..23]), None, "each stands for too few");
    }
}
