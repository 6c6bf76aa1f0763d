//! Integers: times, counts, and whatever became integers in [`super::doubles`].
//!
//! ```text
//! 0 kind u8, by how many differences were taken: 0 none, 1 between neighbours, 2 between those; 3 runs; 4 factor; 5 list
//! runs:   0 u8 | how many less one, then their values and their lengths less one, each as a column of kind 0 to 2
//! factor: 2 at least | rest: less than that | numbers, as a column of kind 0 to 3: a value is factor * number + rest
//! list:   how many less one | values, ascending, as a column of kind 0 to 2 | places from 0 on, as a column of kind 0 to 3
//! otherwise: width u8 | first values, as many as differences were taken | reference: the least of what is left
//! exceptions: how many, then for each the distance from the one before and the bits that do not fit
//! numbers: what is left less the reference, its lowest `width` bits each
//! (numbers without a width are as in numbers.rs, integers folded)
//! ```
//! 1. All arithmetic wraps, so every integer has a difference to every other.
//! 2. The width is the one that makes the column shortest, so a jump of a clock costs a few bytes and widens nothing.
//! 3. A factor and a list are looked for where the column is not short without them, and taken where that is shorter.

use alloc::vec::Vec;

use super::factor::Factor;
use super::{Nonsense, list, numbers, plain};

/// Written instead of how many differences were taken.
const RUNS: u8 = 3;
const FACTOR: u8 = 4;
const LIST: u8 = 5;
/// Values that a run has on average at least where runs are written.
const RUN_VALUES: usize = 4;
/// Values at most: no leaf has more.
pub const COUNT_MAX: usize = 1 << 16;

/// Values that are looked at together for runs.
const RUN_CHUNK: usize = 256;

/// Bits a value from which on a factor and a list are looked for.
const LONG_BITS: usize = 2;

/// Appends the values of a column.
///
/// # Panics
/// If there are more than [`COUNT_MAX`].
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "a leaf has so many values at most");
    let begun = out.len();
    encode_repeated(values, out);
    for shorter in [with_factor, with_list] {
        let bytes = out.len() - begun;
        if bytes * 8 < values.len() * LONG_BITS {
            return;
        }
        if let Some(shorter) = shorter(values, bytes).filter(|shorter| shorter.len() < bytes) {
            out.truncate(begun);
            out.extend_from_slice(&shorter);
        }
    }
}

/// The column as a factor and numbers, if there is one.
fn with_factor(values: &[i64], _: usize) -> Option<Vec<u8>> {
    let factor = Factor::of(values)?;
    let mut out = Vec::from([FACTOR]);
    factor.put(&mut out);
    encode_repeated(&factor.divided(values), &mut out);
    Some(out)
}

/// The column as a list and places, if that may be less than so many bytes.
fn with_list(values: &[i64], bytes: usize) -> Option<Vec<u8>> {
    if !list::is_worth_trying(values, bytes * 8 / values.len().max(1)) {
        return None;
    }
    let different = list::different(values)?;
    let mut out = Vec::from([LIST]);
    numbers::put(different.len() as u64 - 1, &mut out);
    plain::encode(&different, &mut out);
    encode_repeated(&list::places(&different, values), &mut out);
    Some(out)
}

/// Values as runs or one by one.
fn encode_repeated(values: &[i64], out: &mut Vec<u8>) {
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
    match bytes.split_first() {
        Some((&FACTOR, rest)) => {
            *bytes = rest;
            let (factor, begun) = (Factor::take(bytes)?, out.len());
            decode_repeated(bytes, count, out)?;
            factor.multiply(&mut out[begun..]);
            Ok(())
        }
        Some((&LIST, rest)) => {
            *bytes = rest;
            decode_list(bytes, count, out)
        }
        _ => decode_repeated(bytes, count, out),
    }
}

fn decode_list(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    let (mut different, mut places) = (Vec::new(), Vec::new());
    let how_many = take_count(bytes, count)?;
    plain::decode(bytes, how_many, &mut different)?;
    decode_repeated(bytes, count, &mut places)?;
    let most = places.iter().fold(0, |most, place| most.max(*place as u64));
    if !different.is_sorted_by(|one, next| one < next) || most >= different.len() as u64 {
        return Err(Nonsense);
    }
    out.extend(places.iter().map(|place| different[*place as usize]));
    Ok(())
}

/// Takes off the front how many of so many values are told: one at least.
fn take_count(bytes: &mut &[u8], count: usize) -> Result<usize, Nonsense> {
    Ok(usize::try_from(numbers::take(bytes)?).ok().filter(|less_one| *less_one < count).ok_or(Nonsense)? + 1)
}

fn decode_repeated(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    if bytes.first() == Some(&RUNS) { decode_runs(bytes, count, out) } else { plain::decode(bytes, count, out) }
}

fn decode_runs(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    *bytes = bytes.strip_prefix(&[RUNS, 0]).ok_or(Nonsense)?;
    let runs = take_count(bytes, count)?;
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
    match bytes.split_first() {
        Some((&FACTOR, rest)) => {
            *bytes = rest;
            Factor::take(bytes)?;
        }
        Some((&LIST, rest)) => {
            *bytes = rest;
            let different = take_count(bytes, count)?;
            plain::skip(bytes, different)?;
        }
        _ => (),
    }
    if bytes.first() != Some(&RUNS) {
        return plain::skip(bytes, count);
    }
    *bytes = bytes.strip_prefix(&[RUNS, 0]).ok_or(Nonsense)?;
    let runs = take_count(bytes, count)?;
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
        let mut plain = Vec::new();
        encode_repeated(values, &mut plain);
        assert!(length <= plain.len(), "never longer than without factor and list");
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
    fn a_common_factor_costs_nothing() {
        let millis: Vec<i64> = (0..1000).map(|at| 1_767_225_600_000 + at * 1000 + (at * 7919) % 997 % 16).collect();
        let nanos: Vec<i64> = millis.iter().map(|time| time * 1_000_000).collect();
        assert!(bytes(&millis) < 700, "times in ms: {}", bytes(&millis));
        assert_eq!(bytes(&nanos), bytes(&millis) + 5, "the kind, three bytes of the factor, no rest");
        let hundredths: Vec<i64> = (0..1000).map(|at| 3207 - 18 * ((at * 7919) % 997 % 61)).collect();
        assert!(bytes(&hundredths) <= 1000 * 6 / 8 + 8, "6 bits: {}", bytes(&hundredths));
    }

    #[test]
    fn few_values_take_the_bits_of_their_places() {
        let few: Vec<i64> = (0..1000_i64).map(|at| ((at * 7919) % 997 % 31 + 2).pow(7)).collect();
        assert!(bytes(&few) <= 1000 * 5 / 8 + 31 * 5 + 16, "5 bits and a list: {}", bytes(&few));
    }

    #[test]
    fn what_has_neither_is_written_as_ever() {
        let times: Vec<i64> = (0..1000).map(|at| at * 100_000 + (at * 7919) % 997).collect();
        let mut one_off: Vec<i64> = (0..1000).map(|at| (at * 7919) % 997 * 10).collect();
        one_off[998] += 1;
        let near: Vec<i64> = (0..1000).map(|at| (at * 7919) % 997 % 31).collect();
        for values in [times, one_off, near] {
            let (mut out, mut plain) = (Vec::new(), Vec::new());
            encode(&values, &mut out);
            encode_repeated(&values, &mut plain);
            assert_eq!(out, plain);
        }
    }

    #[test]
    fn factors_and_lists_that_make_no_sense_are_nonsense() {
        let numbers = [0, 1, 0, 0, 0b10];
        let twice = |head: &[u8]| {
            let all = [head, &numbers].concat();
            let skipped = skip(&mut &all[..], 2).is_ok();
            let mut found = Vec::new();
            let outcome = decode(&mut &all[..], 2, &mut found);
            assert!(skipped || outcome.is_err(), "{head:?}");
            outcome.map(|()| found)
        };
        assert_eq!(twice(&[FACTOR, 9, 8]), Ok(vec![8, 17]));
        assert_eq!((twice(&[FACTOR, 0, 0]), twice(&[FACTOR, 1, 0])), (Err(Nonsense), Err(Nonsense)));
        assert_eq!(twice(&[FACTOR, 9, 9]), Err(Nonsense), "the rest is no rest");
        let most = [FACTOR, 255, 255, 255, 255, 255, 255, 255, 255, 127, 0];
        assert_eq!(twice(&most), Ok(vec![0, i64::MAX]));
        let more = [FACTOR, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1, 0];
        assert_eq!(twice(&more), Err(Nonsense), "2^63");
        assert_eq!(twice(&[FACTOR, 9, 8, FACTOR, 9, 8]), Err(Nonsense), "a factor of a factor");
        assert_eq!(twice(&[FACTOR, 9, 8, LIST, 1, 0, 1, 0, 0, 0b10]), Err(Nonsense), "a list of a factor");
        assert_eq!(twice(&[LIST, 1, 0, 1, 4, 0, 0b10]), Ok(vec![2, 3]));
        assert_eq!(twice(&[LIST, 0, 0, 0, 4, 0]), Err(Nonsense), "a place behind the list");
        assert_eq!(twice(&[LIST, 1, 0, 1, 4, 0, 0b01]), Err(Nonsense), "not ascending");
        assert_eq!(twice(&[LIST, 2, 0, 1, 4, 0, 0b110]), Err(Nonsense), "more than there are values");
        assert_eq!(twice(&[LIST, 1, RUNS, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Err(Nonsense), "a list of runs");
        assert_eq!(twice(&[LIST, 1, 0, 1, 4, 0, 0b10, FACTOR, 2, 0]), Err(Nonsense), "places with a factor");
        let before = [LIST, 1, 0, 1, 4, 0, 0b10, 0, 1, 1, 0, 0b10];
        assert_eq!(decode(&mut &before[..], 2, &mut Vec::new()), Err(Nonsense), "the place -1");
        assert_eq!(decode(&mut &[LIST, 0, 0, 0, 0, 0][..], 0, &mut Vec::new()), Err(Nonsense), "a list of none");
    }

    #[test]
    fn a_factor_wraps_as_everything_does() {
        let mut found = Vec::new();
        let mut bytes = Vec::from([FACTOR, 10, 7]);
        encode_repeated(&[i64::MAX, i64::MIN, -1], &mut bytes);
        decode(&mut &bytes[..], 3, &mut found).expect("numbers");
        assert_eq!(found, [i64::MAX.wrapping_mul(10).wrapping_add(7), 7, -3]);
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
        fn multiples_come_back(numbers in prop::collection::vec(-500_i64..500, 0..300), factor in prop_oneof![2_i64..5000, 2_i64..], rest in any::<i64>(), odd in any::<i64>()) {
            let mut values: Vec<i64> = numbers.iter().map(|number| number.wrapping_mul(factor).wrapping_add(rest)).collect();
            bytes(&values);
            values.push(odd);
            bytes(&values);
        }

        #[test]
        fn columns_of_a_few_any_values_come_back(few in prop::collection::vec(any::<i64>(), 1..40), places in prop::collection::vec(any::<prop::sample::Index>(), 0..600)) {
            let values: Vec<i64> = places.iter().map(|place| few[place.index(few.len())]).collect();
            let is_listed = values.len() > 500 && few.len() > 10;
            let length = bytes(&values);
            prop_assert!(!is_listed || length < 900, "{}", length);
        }

        #[test]
        fn every_column_comes_back(values in prop::collection::vec(prop_oneof![any::<i64>(), -5_i64..5, Just(i64::MAX)], 0..200)) {
            bytes(&values);
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(kind in 0_u8..7, more in prop::collection::vec(prop_oneof![any::<u8>(), 0_u8..7], 0..80), count in 0_usize..300) {
            let bytes = [&[kind], &more[..]].concat();
            let (mut found, mut rest, mut skipped) = (Vec::new(), &bytes[..], &bytes[..]);
            let outcome = decode(&mut rest, count, &mut found);
            prop_assert!(outcome.is_err() || found.len() == count);
            let passed = skip(&mut skipped, count);
            prop_assert!(outcome.is_err() || (passed.is_ok() && skipped == rest));
        }
    }
}
