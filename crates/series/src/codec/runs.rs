//! Integers that mostly follow themselves: qualities, states, which values are NULL.
//!
//! ```text
//! how many runs | their values, as in integers.rs | their lengths less one, as in integers.rs
//! ```

use alloc::vec::Vec;

use super::integers::COUNT_MAX;
use super::{Nonsense, integers, numbers};

/// Appends the values of a column.
///
/// # Panics
/// If there are more than [`COUNT_MAX`].
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "a leaf has so many values at most");
    let (mut of, mut lengths) = (Vec::new(), Vec::new());
    for run in values.chunk_by(|one, next| one == next) {
        of.push(run[0]);
        lengths.push(run.len() as i64 - 1);
    }
    numbers::put(of.len() as u64, out);
    integers::encode(&of, out);
    integers::encode(&lengths, out);
}

/// Appends so many values, and takes their bytes off the front.
///
/// # Errors
/// [`Nonsense`] if there are not so many, or more than [`COUNT_MAX`] are asked for.
pub fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    let runs = usize::try_from(numbers::take(bytes)?).ok().filter(|runs| *runs <= count && count <= COUNT_MAX);
    let runs = runs.ok_or(Nonsense)?;
    let (mut of, mut lengths) = (Vec::new(), Vec::new());
    integers::decode(bytes, runs, &mut of)?;
    integers::decode(bytes, runs, &mut lengths)?;
    let mut left = count;
    for (value, length) in of.into_iter().zip(lengths) {
        let length = usize::try_from(length).ok().filter(|length| *length < left).ok_or(Nonsense)? + 1;
        out.resize(out.len() + length, value);
        left -= length;
    }
    if left == 0 { Ok(()) } else { Err(Nonsense) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(values: &[i64]) -> usize {
        let mut out = Vec::new();
        encode(values, &mut out);
        let (mut rest, mut found) = (&out[..], Vec::new());
        decode(&mut rest, values.len(), &mut found).expect("there");
        assert_eq!((&found[..], rest), (values, &[][..]));
        out.len()
    }

    #[test]
    fn what_does_not_change_costs_nothing() {
        let mut quality = [192; 4000];
        assert!(bytes(&quality) < 16);
        quality[1000..1010].fill(0);
        assert!(bytes(&quality) < 24, "{}", bytes(&quality));
        bytes(&[]);
    }

    proptest! {
        #[test]
        fn every_column_comes_back(values in prop::collection::vec(0_i64..3, 0..200)) {
            bytes(&values);
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0_usize..300) {
            let mut found = Vec::new();
            let outcome = decode(&mut &bytes[..], count, &mut found);
            prop_assert!(outcome.is_err() || found.len() == count);
        }
    }
}
