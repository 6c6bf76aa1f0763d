//! Doubles. What a sensor sends is mostly a decimal of few digits, or the count of a converter in a range that is a power of
//! two: an integer over a power of ten or of two. What a computation gave has bits at random, of which those are left out that no
//! value has.
//!
//! ```text
//! 0 kind u8
//! fractions (0): 1 divisor u8: d below 16 is 10^d, others are 2^(d - 15) | bytes of exceptions, then for each the distance from
//!                the one before, and its 8 bytes | integers (integers.rs), an exception having the integer before it
//! bits (1):      1 shift u8 | integers: bits without sign, shifted right, all of them flipped where the sign is set
//! ```
//! 1. A value is a fraction only if the division gives it back bit by bit: zero below zero, NaN and the infinities are not.
//! 2. Both ways are exact; which one is taken is a matter of length.

use alloc::vec::Vec;

use super::integers::COUNT_MAX;
use super::{Nonsense, integers, numbers};

const FRACTIONS: u8 = 0;
const BITS: u8 = 1;
/// Powers of ten that are doubles without rounding, and of which a sensor's value has no more.
const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
/// Powers of two beside those.
const TWOS: usize = 40;
/// Added to a double of less than 2^51 it leaves the nearest integer in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;
const INTEGER_MAX: u64 = 1 << 51;
/// Values that are looked at to guess the power.
const SAMPLES: usize = 32;
const SIGN: u64 = 1 << 63;

/// Appends the values of a column.
///
/// # Panics
/// If there are more than [`COUNT_MAX`].
pub fn encode(values: &[f64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "a leaf has so many values at most");
    let Some(number) = least_divisor(values, 0) else { return encode_bits(values, out) };
    let begun = out.len();
    let missed = encode_fractions(values, number, out);
    // Where most values are 0, say, those that were looked at tell nothing of the others.
    let other = least_divisor(&missed, number).filter(|other| *other != number && !missed.is_empty());
    if let Some(other) = other {
        let mut column = Vec::new();
        encode_fractions(values, other, &mut column);
        if !column.is_empty() && (out.len() == begun || column.len() < out.len() - begun) {
            out.truncate(begun);
            out.extend_from_slice(&column);
        }
    }
    if out.len() == begun {
        encode_bits(values, out);
    }
}

/// The number of the least divisor that makes integers of some values, from this one on.
fn least_divisor(values: &[f64], least: usize) -> Option<usize> {
    let (tens, twos) = (guess(values, least, ten), guess(values, least, two));
    tens.into_iter().chain(twos).min_by(|one, other| divisor(*one).total_cmp(&divisor(*other)))
}

/// What the integers of a column are divided by.
fn divisor(number: usize) -> f64 {
    match number.checked_sub(TENS.len() - 1) {
        Some(power @ 1..) => (1_u64 << power.min(TWOS)) as f64,
        _ => TENS[number],
    }
}

/// The integer nearest to a double, if that is not far from zero.
fn rounded(scaled: f64) -> i64 {
    (scaled + ROUNDER).to_bits().wrapping_sub(ROUNDER.to_bits()) as i64
}

/// The double of an integer of less than 2^51; unlike the processor's conversion it takes several at once.
fn double(integer: i64) -> f64 {
    f64::from_bits(ROUNDER.to_bits().wrapping_add(integer as u64)) - ROUNDER
}

/// Whether a division gives the value back.
fn is_fraction(value: f64, integer: i64, divisor: f64) -> bool {
    let is_near = integer.unsigned_abs() < INTEGER_MAX;
    is_near & ((double(integer) / divisor).to_bits() == value.to_bits())
}

/// The integer that this divisor makes of a value, if that gives the value back.
fn integer(value: f64, divisor: f64) -> Option<i64> {
    Some(rounded(value * divisor)).filter(|integer| is_fraction(value, *integer, divisor))
}

/// The least power of ten from this one on that makes an integer of a value.
fn ten(value: f64, least: usize) -> Option<usize> {
    (least..TENS.len()).find(|number| integer(value, TENS[*number]).is_some())
}

/// The least power of two from this one on that makes an integer of a value: what is left of its bits behind the point.
fn two(value: f64, least: usize) -> Option<usize> {
    let bits = value.to_bits() & !SIGN;
    let behind = 1075 - (bits >> 52) as i64 - i64::from((bits | 1 << 52).trailing_zeros());
    let power = usize::try_from(behind.max(0)).ok().filter(|power| *power <= TWOS && (bits == 0 || bits >> 52 != 0))?;
    Some(if power == 0 || bits == 0 { least } else { least.max(TENS.len() - 1 + power) })
}

/// The least divisor that makes integers of some values, spread over the column; none if of too many none does.
fn guess(values: &[f64], least: usize, divisor: impl Fn(f64, usize) -> Option<usize>) -> Option<usize> {
    let step = (values.len() / SAMPLES).max(1);
    let (mut least, mut misses, mut seen) = (least, 0, 0);
    for value in values.iter().step_by(step) {
        seen += 1;
        match divisor(*value, least) {
            Some(needed) => least = needed,
            None => misses += 1,
        }
    }
    (misses * 4 <= seen).then_some(least)
}

/// Writes the values as fractions and gives back those that are none; writes nothing if they are too many.
fn encode_fractions(values: &[f64], number: usize, out: &mut Vec<u8>) -> Vec<f64> {
    let divisor = divisor(number);
    let mut misses = 0;
    let integer = |value: &f64| {
        let integer = rounded(value * divisor);
        misses += usize::from(!is_fraction(*value, integer, divisor));
        integer
    };
    let mut all: Vec<i64> = values.iter().map(integer).collect();
    let (mut exceptions, mut missed) = (Vec::new(), Vec::new());
    if misses * 9 > values.len() {
        return missed;
    }
    if misses > 0 {
        let (mut last, mut before) = (0, 0);
        for (at, (integer, value)) in all.iter_mut().zip(values).enumerate() {
            if is_fraction(*value, *integer, divisor) {
                last = *integer;
                continue;
            }
            numbers::put((at - before) as u64, &mut exceptions);
            exceptions.extend_from_slice(&value.to_bits().to_le_bytes());
            missed.push(*value);
            (*integer, before) = (last, at);
        }
    }
    out.extend_from_slice(&[FRACTIONS, number as u8]);
    numbers::put(exceptions.len() as u64, out);
    out.extend_from_slice(&exceptions);
    integers::encode(&all, out);
    missed
}

fn encode_bits(values: &[f64], out: &mut Vec<u8>) {
    let set = values.iter().fold(0, |set, value| set | value.to_bits() & !SIGN);
    let shift = if set == 0 { 0 } else { set.trailing_zeros() };
    let integer = |value: &f64| {
        let magnitude = ((value.to_bits() & !SIGN) >> shift) as i64;
        if value.is_sign_negative() { !magnitude } else { magnitude }
    };
    let all: Vec<i64> = values.iter().map(integer).collect();
    out.extend_from_slice(&[BITS, shift as u8]);
    integers::encode(&all, out);
}

/// Appends so many values, and takes their bytes off the front.
///
/// # Errors
/// [`Nonsense`] if there are not so many, or more than [`COUNT_MAX`] are asked for.
pub fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<f64>) -> Result<(), Nonsense> {
    let ([kind, how], rest) = bytes.split_first_chunk::<2>().ok_or(Nonsense)?;
    *bytes = rest;
    match *kind {
        FRACTIONS => decode_fractions(bytes, usize::from(*how), count, out),
        BITS if *how < 64 => decode_bits(bytes, u32::from(*how), count, out),
        _ => Err(Nonsense),
    }
}

/// Takes the bytes of so many values off the front and looks at none of them.
///
/// # Errors
/// As [`decode`], as far as it shows.
pub(crate) fn skip(bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
    let ([kind, _], rest) = bytes.split_first_chunk::<2>().ok_or(Nonsense)?;
    *bytes = rest;
    if *kind == FRACTIONS {
        let exceptions = usize::try_from(numbers::take(bytes)?).map_err(|_| Nonsense)?;
        *bytes = bytes.get(exceptions..).ok_or(Nonsense)?;
    }
    integers::skip(bytes, count)
}

fn decode_fractions(bytes: &mut &[u8], number: usize, count: usize, out: &mut Vec<f64>) -> Result<(), Nonsense> {
    let divisor = if number < TENS.len() + TWOS { divisor(number) } else { return Err(Nonsense) };
    let length = usize::try_from(numbers::take(bytes)?).map_err(|_| Nonsense)?;
    let (mut exceptions, rest) = bytes.split_at_checked(length).ok_or(Nonsense)?;
    *bytes = rest;
    let mut all = Vec::new();
    integers::decode(bytes, count, &mut all)?;
    // Nothing above is written, and an exception has the integer of another value.
    let above = all.iter().fold(0, |above, integer| above | integer.wrapping_add(INTEGER_MAX as i64) as u64);
    if above >= 2 * INTEGER_MAX {
        return Err(Nonsense);
    }
    let mut at = out.len();
    out.extend(all.iter().map(|integer| double(*integer) / divisor));
    while !exceptions.is_empty() {
        let distance = numbers::take(&mut exceptions)?;
        at = usize::try_from(distance).ok().and_then(|distance| at.checked_add(distance)).ok_or(Nonsense)?;
        let (bits, rest) = exceptions.split_first_chunk::<8>().ok_or(Nonsense)?;
        *out.get_mut(at).ok_or(Nonsense)? = f64::from_bits(u64::from_le_bytes(*bits));
        exceptions = rest;
    }
    Ok(())
}

fn decode_bits(bytes: &mut &[u8], shift: u32, count: usize, out: &mut Vec<f64>) -> Result<(), Nonsense> {
    let mut all = Vec::new();
    integers::decode(bytes, count, &mut all)?;
    out.extend(all.iter().map(|integer| {
        let (sign, magnitude) = if *integer < 0 { (SIGN, !integer) } else { (0, *integer) };
        f64::from_bits(sign | (magnitude as u64) << shift & !SIGN)
    }));
    Ok(())
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use proptest::prelude::*;

    use super::*;

    /// Bytes of a column, which must come back bit by bit.
    fn bytes(values: &[f64]) -> usize {
        let mut out = Vec::new();
        encode(values, &mut out);
        let length = out.len();
        out.push(7);
        let (mut rest, mut found) = (&out[..], vec![-1.0]);
        decode(&mut rest, values.len(), &mut found).expect("there");
        let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert_eq!((bits(&found[1..]), rest), (bits(values), &[7][..]));
        let mut skipped = &out[..];
        skip(&mut skipped, values.len()).expect("there");
        assert_eq!(skipped, [7]);
        length
    }

    fn noise(at: i64) -> i64 {
        at.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(0x1405_7B7E_F767_814F) >> 20
    }

    #[test]
    fn decimals_take_the_bits_of_their_integers() {
        let mut level = 2000;
        let walk: Vec<f64> = (0..2000)
            .map(|at| {
                level += noise(at).rem_euclid(65) - 32;
                level as f64 / 100.0
            })
            .collect();
        assert!(bytes(&walk) < 2000, "a walk of two decimals: {}", bytes(&walk));
        let mut broken = walk.clone();
        (broken[7], broken[1500], broken[0]) = (f64::NAN, f64::INFINITY, -0.0);
        assert!(bytes(&broken) < bytes(&walk) + 48, "some that are none: {}", bytes(&broken));
    }

    #[test]
    fn noise_takes_the_bits_that_it_has() {
        let white: Vec<f64> = (0..2000).map(|at| noise(at).rem_euclid(1 << 21) as f64 / 4096.0).collect();
        assert!(bytes(&white) < 2000 * 22 / 8, "21 bits: {}", bytes(&white));
        let single: Vec<f64> = (0..2000).map(|at| f64::from((noise(at) as f32).sqrt())).collect();
        assert!(bytes(&single) < 2000 * 5, "doubles that were singles: {}", bytes(&single));
        let root: Vec<f64> = (0..2000).map(|at| (noise(at).abs() as f64).sqrt()).collect();
        assert!(bytes(&root) < 2000 * 8, "no pattern: {}", bytes(&root));
    }

    #[test]
    fn weather_takes_the_bits_that_it_has() {
        let knots: Vec<f64> = (0..2000).map(|at| noise(at).rem_euclid(31) as f64 * 1.15078).collect();
        assert!(bytes(&knots) < 2000 * 5 / 8 + 32 * 8, "knots in miles an hour: {}", bytes(&knots));
        let tenths = |at| noise(at).rem_euclid(15) * 10 + i64::from(noise(at) % 7 == 0) * noise(at + 1).rem_euclid(10);
        let fahrenheit: Vec<f64> = (0..2000).map(|at| (3200 + 18 * tenths(at)) as f64 / 100.0).collect();
        assert!(bytes(&fahrenheit) < 2000, "tenths of Celsius in Fahrenheit: {}", bytes(&fahrenheit));
        let degrees: Vec<f64> = (0..2000).map(|at| noise(at).rem_euclid(36) as f64 * 10.0).collect();
        assert!(bytes(&degrees) < 2000 * 6 / 8 + 16, "tens of degrees: {}", bytes(&degrees));
        // None of those that are looked at is another one than 0.
        let rain: Vec<f64> =
            (0..2000).map(|at| if at % 62 > 57 { noise(at).rem_euclid(9) as f64 / 100.0 } else { 0.0 }).collect();
        assert!(bytes(&rain) < 300, "mostly none: {}", bytes(&rain));
    }

    #[test]
    fn the_odd_ones_come_back() {
        bytes(&[]);
        bytes(&[-0.0, 0.0]);
        bytes(&[f64::NAN, -f64::NAN, f64::from_bits(0x7FF8_0000_0000_0001), f64::INFINITY, f64::NEG_INFINITY]);
        bytes(&[f64::MIN_POSITIVE, 5e-324, f64::MAX, f64::MIN, 1e15, -1e300, 2_251_799_813_685_248.0]);
    }

    #[test]
    fn integers_that_no_double_gave_are_nonsense() {
        for (integer, is_one) in [(-(1 << 51), true), ((1 << 51) - 1, true), (1 << 51, false), (i64::MIN, false)] {
            let mut column = vec![FRACTIONS, 1, 0];
            integers::encode(&[7, integer, 7], &mut column);
            let mut found = Vec::new();
            let outcome = decode(&mut &column[..], 3, &mut found);
            assert_eq!(outcome.is_ok(), is_one, "{integer}");
            assert_eq!(found, if is_one { vec![0.7, integer as f64 / 10.0, 0.7] } else { vec![] });
        }
    }

    proptest! {
        #[test]
        fn every_column_comes_back(bits in prop::collection::vec(any::<u64>(), 0..100), digits in prop::collection::vec(-100_000_i64..100_000, 0..100), power in 0_usize..7) {
            let mut values: Vec<f64> = digits.iter().map(|digits| *digits as f64 / TENS[power]).collect();
            bytes(&values);
            values.extend(bits.iter().take(5).map(|bits| f64::from_bits(*bits)));
            bytes(&values);
            bytes(&bits.iter().map(|bits| f64::from_bits(*bits)).collect::<Vec<_>>());
        }

        #[test]
        fn few_values_come_back(few in prop::collection::vec(any::<u64>(), 1..30), places in prop::collection::vec(any::<prop::sample::Index>(), 0..400)) {
            bytes(&places.iter().map(|place| f64::from_bits(few[place.index(few.len())])).collect::<Vec<_>>());
        }

        #[test]
        fn no_bytes_are_more_than_nonsense(bytes in prop::collection::vec(any::<u8>(), 0..80), count in 0_usize..300) {
            let mut found = Vec::new();
            let outcome = decode(&mut &bytes[..], count, &mut found);
            prop_assert!(outcome.is_err() || found.len() == count);
        }
    }
}
