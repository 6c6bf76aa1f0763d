//! Integers: times, counts, and whatever became integers in [`super::doubles`].
//!
//! ```text
//! 0 differences taken u8: 0 none, 1 between neighbours, 2 between those; 3 = runs | 1 width u8
//! runs: how many less one (the width is 0), then their values and their lengths less one, each as a column without runs
//! otherwise: first values, as many as differences were taken | reference: the least of what is left
//! exceptions: how many, then for each the distance from the one before and the bits that do not fit
//! numbers: what is left less the reference, its lowest `width` bits each
//! (numbers without a width are as in numbers.rs, integers folded)
//! ```
//! 1. All arithmetic wraps, so every integer has a difference to every other.
//! 2. The width is the one that makes the column shortest, so a jump of a clock costs a few bytes and widens nothing.

use alloc::vec::Vec;

use super::{Nonsense, numbers, plain};

/// Written instead of how many differences were taken.
const RUNS: u8 = 3;
/// Values that a run has on average at least where runs are written.
const RUN_VALUES: usize = 4;
/// Values at most: no leaf has more.
pub const COUNT_MAX: usize = 1 << 16;

/// Values that are looked at together for runs.
const RUN_CHUNK: usize = 256;

/// Appends the values of a column.
///
/// # Panics
/// If there are more than [`COUNT_MAX`].
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "a leaf has so many values at most");
    match runs(values) {
        Some(runs) => encode_runs(values, runs, out),
        None => plain::encode(values, out),
    }
}

/// How many runs there are if they are few enough to be written; where they are not, not all values are looked at.
fn runs(values: &[i64]) -> Option<usize> {
    let (most, mut runs) = (values.len() / RUN_VALUES, 1);
    for from in (0..values.len().saturating_sub(1)).step_by(RUN_CHUNK) {
        let chunk = &values[from..values.len().min(from + RUN_CHUNK + 1)];
        runs += chunk.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if runs > most {
            return None;
        }
    }
    (runs <= most).then_some(runs)
}

fn encode_runs(values: &[i64], runs: usize, out: &mut Vec<u8>) {
    let (mut of, mut lengths) = (Vec::with_capacity(runs), Vec::with_capacity(runs));
    let mut rest = values;
    while let [first, ..] = rest {
        // Known of the last one without a look.
        let length = if of.len() + 1 == runs { rest.len() } else { run_length(rest) };
        of.push(*first);
        lengths.push(length as i64 - 1);
        rest = &rest[length..];
    }
    out.extend_from_slice(&[RUNS, 0]);
    numbers::put(runs as u64 - 1, out);
    plain::encode(&of, out);
    plain::encode(&lengths, out);
}

/// How many of the first values are the same.
fn run_length(values: &[i64]) -> usize {
    values.iter().position(|value| *value != values[0]).unwrap_or(values.len())
}

/// Appends so many values, and takes their bytes off the front.
///
/// # Errors
/// [`Nonsense`] if there are not so many, or more than [`COUNT_MAX`] are asked for.
pub fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    if count > COUNT_MAX {
        return Err(Nonsense);
    }
    if bytes.first() == Some(&RUNS) { decode_runs(bytes, count, out) } else { plain::decode(bytes, count, out) }
}

fn decode_runs(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    *bytes = bytes.strip_prefix(&[RUNS, 0]).ok_or(Nonsense)?;
    let runs = usize::try_from(numbers::take(bytes)?).ok().filter(|less_one| *less_one < count).ok_or(Nonsense)? + 1;
    let (mut of, mut lengths) = (Vec::new(), Vec::new());
    plain::decode(bytes, runs, &mut of)?;
    plain::decode(bytes, runs, &mut lengths)?;
    let mut left = count;
    for (value, length) in of.into_iter().zip(lengths) {
        let length = usize::try_from(length).ok().filter(|length| *length < left).ok_or(Nonsense)? + 1;
        out.resize(out.len() + length, value);
        left -= length;
    }
    if left == 0 { Ok(()) } else { Err(Nonsense) }
}

/// Takes the bytes of so many values off the front and looks at none of them.
///
/// # Errors
/// As [`decode`], as far as it shows.
pub(crate) fn skip(bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
    if count > COUNT_MAX {
        return Err(Nonsense);
    }
    if bytes.first() != Some(&RUNS) {
        return plain::skip(bytes, count);
    }
    *bytes = bytes.strip_prefix(&[RUNS, 0]).ok_or(Nonsense)?;
    let runs = usize::try_from(numbers::take(bytes)?).ok().filter(|less_one| *less_one < count).ok_or(Nonsense)? + 1;
    plain::skip(bytes, runs)?;
    plain::skip(bytes, runs)
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// Bytes of a column, which must come back.
    fn bytes(values: &[i64]) -> usize {
        let mut out = Vec::new();
        encode(values, &mut out);
        let length = out.len();
        out.push(7);
        let (mut rest, mut found) = (&out[..], vec![-1]);
        decode(&mut rest, values.len(), &mut found).expect("there");
        assert_eq!((&found[1..], rest), (values, &[7][..]));
        let mut skipped = &out[..];
        skip(&mut skipped, values.len()).expect("there");
        assert_eq!(skipped, [7]);
        length
    }

    #[test]
    fn a_column_takes_as_many_bits_as_most_values_need() {
        let regular: Vec<i64> = (0..1000).map(|at| 1_700_000_000_000_000 + at * 100_000).collect();
        assert!(bytes(&regular) < 24, "regular times: {}", bytes(&regular));
        let mut jump = regular.clone();
        jump[500..].iter_mut().for_each(|time| *time += 3_600_000_000);
        assert!(bytes(&jump) < 40, "a clock that jumps: {}", bytes(&jump));
        let jitter: Vec<i64> = regular.iter().zip(0..).map(|(time, at)| time + (at * 7919) % 1000).collect();
        assert!(bytes(&jitter) < 1500, "11 bits of jitter: {}", bytes(&jitter));
        assert!(bytes(&[5; 1000]) < 16);
        assert!(bytes(&[i64::MIN, i64::MAX].repeat(500)) < 9000);
    }

    #[test]
    fn what_does_not_change_costs_nothing() {
        let mut quality = [192; 4000];
        assert!(bytes(&quality) < 16, "{}", bytes(&quality));
        quality[1000..1010].fill(0);
        assert!(bytes(&quality) < 24, "{}", bytes(&quality));
        let steps: Vec<i64> = (0..4000).map(|at| at / 100).collect();
        assert!(bytes(&steps) < 100, "{}", bytes(&steps));
    }

    #[test]
    fn nothing_and_one_value_are_columns() {
        for values in [&[][..], &[i64::MIN], &[0, i64::MAX], &[i64::MAX, i64::MIN, 0]] {
            bytes(values);
        }
    }

    #[test]
    fn bytes_that_are_no_column_are_nonsense() {
        let mut column = Vec::new();
        encode(&[1, 5, 900, 7], &mut column);
        for length in 0..column.len() {
            assert_eq!(decode(&mut &column[..length], 4, &mut Vec::new()), Err(Nonsense), "{length} bytes");
        }
        assert_eq!(decode(&mut &[3, 0, 0, 0, 0, 0, 0][..], 9, &mut Vec::new()), Err(Nonsense));
        assert_eq!(decode(&mut &[0, 0, 0, 0][..], COUNT_MAX + 1, &mut Vec::new()), Err(Nonsense));
    }

    proptest! {
        #[test]
        fn columns_of_few_values_come_back(values in prop::collection::vec(0_i64..2, 0..300)) {
            bytes(&values);
        }

        #[test]
        fn every_column_comes_back(values in prop::collection::vec(prop_oneof![any::<i64>(), -5_i64..5, Just(i64::MAX)], 0..200)) {
            bytes(&values);
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0_usize..300) {
            let (mut found, mut rest, mut skipped) = (Vec::new(), &bytes[..], &bytes[..]);
            let outcome = decode(&mut rest, count, &mut found);
            prop_assert!(outcome.is_err() || found.len() == count);
            let passed = skip(&mut skipped, count);
            prop_assert!(outcome.is_err() || (passed.is_ok() && skipped == rest));
        }
    }
}
