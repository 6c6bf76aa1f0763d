//! Integers: times, counts, and whatever became integers in [`super::doubles`].
//!
//! ```text
//! 0 differences taken u8: 0 none, 1 between neighbours, 2 between those | 1 width u8
//! first values, as many as differences were taken | reference: the least of what is left
//! exceptions: how many, then for each the distance from the one before and the bits that do not fit
//! numbers: what is left less the reference, its lowest `width` bits each
//! (numbers without a width are as in numbers.rs, integers folded)
//! ```
//! 1. All arithmetic wraps, so every integer has a difference to every other.
//! 2. The width is the one that makes the column shortest, so a jump of a clock costs a few bytes and widens nothing.

use alloc::vec::Vec;

use super::{Nonsense, bits, numbers};

/// Differences that may be taken.
const ORDERS: usize = 3;
/// Values at most: no leaf has more.
pub const COUNT_MAX: usize = 1 << 16;

/// How a column is written.
#[derive(Clone, Copy)]
struct Plan {
    order: usize,
    reference: i64,
    width: u32,
    exceptions: usize,
    bytes: usize,
}

/// Appends the values of a column.
///
/// # Panics
/// If there are more than [`COUNT_MAX`].
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "a leaf has so many values at most");
    let mut left: Vec<i64> = values.to_vec();
    let mut best = Plan::of(0, &left);
    for order in 1..ORDERS.min(values.len()) {
        differ(&mut left, order);
        let plan = Plan::of(order, &left[order..]);
        // Worth a pass of its own only if it pays.
        if plan.bytes >= best.bytes {
            break;
        }
        best = plan;
    }
    left.clear();
    left.extend_from_slice(values);
    for order in 1..=best.order {
        differ(&mut left, order);
    }
    best.write(&left, out);
}

/// Replaces each value from `from` on by its difference to the one before it.
fn differ(values: &mut [i64], from: usize) {
    for at in (from..values.len()).rev() {
        values[at] = values[at].wrapping_sub(values[at - 1]);
    }
}

impl Plan {
    /// The shortest way to write what is left after so many differences.
    fn of(order: usize, left: &[i64]) -> Plan {
        let reference = left.iter().copied().min().unwrap_or(0);
        // How many numbers need each width.
        let mut needing = [0_usize; 65];
        for value in left {
            let number = value.wrapping_sub(reference) as u64;
            needing[64 - number.leading_zeros() as usize] += 1;
        }
        let (mut exceptions, mut extra) = (0, 0);
        let mut best = Plan { order, reference, width: 64, exceptions: 0, bytes: bits::bytes(left.len(), 64) };
        for width in (0..=64_u32).rev() {
            let bytes = bits::bytes(left.len(), width) + extra;
            if bytes < best.bytes {
                best = Plan { order, reference, width, exceptions, bytes };
            }
            // With one bit less, those that need this width are exceptions: a distance and the bits above.
            let more = needing[width as usize];
            exceptions += more;
            extra += more * (2 + (64 - width as usize) / 7);
            if exceptions > left.len() / 8 + 1 {
                break;
            }
        }
        best
    }

    fn write(&self, left: &[i64], out: &mut Vec<u8>) {
        let (first, rest) = left.split_at(self.order);
        out.extend_from_slice(&[self.order as u8, self.width as u8]);
        first.iter().for_each(|value| numbers::put(numbers::folded(*value), out));
        numbers::put(numbers::folded(self.reference), out);
        let number = |value: &i64| value.wrapping_sub(self.reference) as u64;
        let above = |value: &i64| number(value).checked_shr(self.width).unwrap_or(0);
        numbers::put(self.exceptions as u64, out);
        let mut before = 0;
        for (at, value) in rest.iter().enumerate().filter(|(_, value)| self.exceptions > 0 && above(value) != 0) {
            numbers::put((at - before) as u64, out);
            numbers::put(above(value), out);
            before = at;
        }
        bits::pack(rest.iter().map(number), self.width, out);
    }
}

/// Appends so many values, and takes their bytes off the front.
///
/// # Errors
/// [`Nonsense`] if there are not so many, or more than [`COUNT_MAX`] are asked for.
pub fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    let ([order, width], rest) = bytes.split_first_chunk::<2>().ok_or(Nonsense)?;
    let (order, width) = (usize::from(*order), u32::from(*width));
    if order >= ORDERS || order > count || count > COUNT_MAX {
        return Err(Nonsense);
    }
    *bytes = rest;
    let mut first = [0; ORDERS];
    for value in &mut first[..order] {
        *value = numbers::unfolded(numbers::take(bytes)?);
    }
    let reference = numbers::unfolded(numbers::take(bytes)?);
    let exceptions = take_exceptions(bytes, count - order)?;
    let mut packed = Vec::new();
    bits::unpack(bytes, count - order, width, &mut packed)?;
    let mut at = 0;
    for (distance, above) in exceptions {
        at += distance;
        let place = packed.get_mut(at).ok_or(Nonsense)?;
        *place |= above.checked_shl(width).ok_or(Nonsense)?;
    }
    let begun = out.len();
    out.extend_from_slice(&first[..order]);
    out.extend(packed.iter().map(|number| reference.wrapping_add(*number as i64)));
    for order in (1..=order).rev() {
        sum(&mut out[begun..], order);
    }
    Ok(())
}

fn take_exceptions(bytes: &mut &[u8], count: usize) -> Result<Vec<(usize, u64)>, Nonsense> {
    let exceptions = numbers::take(bytes)?;
    if exceptions > count as u64 {
        return Err(Nonsense);
    }
    let exception = |_| {
        let distance = usize::try_from(numbers::take(bytes)?).ok().filter(|distance| *distance < COUNT_MAX);
        Ok((distance.ok_or(Nonsense)?, numbers::take(bytes)?))
    };
    (0..exceptions).map(exception).collect()
}

/// The inverse of [`differ`].
fn sum(values: &mut [i64], from: usize) {
    let mut before = values[from - 1];
    for value in &mut values[from..] {
        before = before.wrapping_add(*value);
        *value = before;
    }
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
        assert!(bytes(&[5; 1000]) < 8);
        assert!(bytes(&vec![i64::MIN, i64::MAX].repeat(500)) < 9000);
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
        fn every_column_comes_back(values in prop::collection::vec(prop_oneof![any::<i64>(), -5_i64..5, Just(i64::MAX)], 0..200)) {
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
