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

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::{Nonsense, bits, numbers};

/// Differences that may be taken.
const ORDERS: usize = 3;
/// Written instead of how many differences were taken.
const RUNS: u8 = 3;
/// Values that a run has on average at least where runs are written.
const RUN_VALUES: usize = 4;
/// Values at most: no leaf has more.
pub const COUNT_MAX: usize = 1 << 16;

/// Values whose spread is looked at together: a single one that is far away spoils no more than these.
const CHUNK: usize = 64;

/// Of a column of more chunks than these only one in so many is looked at to tell its order; no power of two, since what comes
/// round again mostly does so after one.
const CHUNKS_LOOKED_AT: usize = 16;
const CHUNK_STEP: usize = 5;
/// Values that are looked at together for runs.
const RUN_CHUNK: usize = 256;

/// How a column is written.
#[derive(Clone, Copy)]
struct Plan {
    order: usize,
    reference: i64,
    width: u32,
    exceptions: usize,
}

/// Appends the values of a column.
///
/// # Panics
/// If there are more than [`COUNT_MAX`].
pub fn encode(values: &[i64], out: &mut Vec<u8>) {
    assert!(values.len() <= COUNT_MAX, "a leaf has so many values at most");
    match runs(values) {
        Some(runs) => encode_runs(values, runs, out),
        None => encode_each(values, out),
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
    encode_each(&of, out);
    encode_each(&lengths, out);
}

/// How many of the first values are the same.
fn run_length(values: &[i64]) -> usize {
    values.iter().position(|value| *value != values[0]).unwrap_or(values.len())
}

fn encode_each(values: &[i64], out: &mut Vec<u8>) {
    let order = order(values);
    let left: Cow<'_, [i64]> = match order {
        0 => Cow::Borrowed(values),
        1 => values.windows(2).map(difference::<1>).collect(),
        _ => values.windows(3).map(difference::<2>).collect(),
    };
    let first = match *values {
        [one, two, ..] if order == 2 => [one, two.wrapping_sub(one)],
        [one, ..] if order == 1 => [one, 0],
        _ => [0; ORDERS - 1],
    };
    Plan::of(order, &left).write(&first[..order], &left, out);
}

/// How many differences leave least. Of a long column some chunks are looked at: it is the same throughout, or nearly.
fn order(values: &[i64]) -> usize {
    let step = if values.len() < CHUNK * CHUNKS_LOOKED_AT { 1 } else { CHUNK_STEP };
    let (mut best, mut order) = (bits_left::<0>(values, step), 0);
    for next in 1..ORDERS.min(values.len()) {
        let bits = if next == 1 { bits_left::<1>(values, step) } else { bits_left::<2>(values, step) };
        // One more difference only if it pays.
        if bits >= best {
            break;
        }
        (best, order) = (bits, next);
    }
    order
}

/// Bits that so many differences leave of one chunk in `step`, if each has a width of its own.
fn bits_left<const ORDER: usize>(values: &[i64], step: usize) -> usize {
    let count = values.len().saturating_sub(ORDER);
    let chunks = (0..count).step_by(CHUNK * step).map(|from| from..count.min(from + CHUNK));
    chunks
        .map(|chunk| chunk.len() * Spread::of::<ORDER>(&values[chunk.start..chunk.end + ORDER]).width() as usize)
        .sum()
}

/// What so many differences leave of the last of some values that follow each other.
fn difference<const ORDER: usize>(values: &[i64]) -> i64 {
    let less = |at: usize| values[at].wrapping_sub(values[at - 1]);
    match ORDER {
        0 => values[0],
        1 => less(1),
        _ => less(2).wrapping_sub(less(1)),
    }
}

/// How far apart values are.
#[derive(Clone, Copy)]
struct Spread {
    least: i64,
    most: i64,
}

impl Spread {
    const NONE: Spread = Spread { least: i64::MAX, most: i64::MIN };

    /// Of what so many differences leave of some values.
    fn of<const ORDER: usize>(values: &[i64]) -> Spread {
        values
            .windows(ORDER + 1)
            .map(difference::<ORDER>)
            .fold(Spread::NONE, |spread, left| Spread { least: spread.least.min(left), most: spread.most.max(left) })
    }

    /// Of these and others.
    fn and(self, other: Spread) -> Spread {
        Spread { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// Bits of the numbers from the least one on.
    fn width(&self) -> u32 {
        width(self.least, self.most)
    }
}

/// Bits of the difference between two values.
fn width(least: i64, most: i64) -> u32 {
    64 - (most.wrapping_sub(least) as u64).leading_zeros()
}

impl Plan {
    /// The shortest way to write what is left after so many differences.
    fn of(order: usize, left: &[i64]) -> Plan {
        let chunks: Vec<Spread> = left.chunks(CHUNK).map(Spread::of::<0>).collect();
        let Some(all) = chunks.iter().copied().reduce(Spread::and) else {
            return Plan { order, reference: 0, width: 0, exceptions: 0 };
        };
        let plain = Plan { order, reference: all.least, width: all.width(), exceptions: 0 };
        let bits: usize =
            chunks.iter().zip(left.chunks(CHUNK)).map(|(spread, of)| of.len() * spread.width() as usize).sum();
        // Where all chunks are as wide as the column, nothing stands out.
        if left.len() * plain.width as usize <= bits + left.len() {
            return plain;
        }
        references(&chunks, &all)
            .into_iter()
            .flatten()
            .map(|reference| plain.with_exceptions(reference, left))
            .min_by_key(|(_, bytes)| *bytes)
            .map_or(plain, |(plan, _)| plan)
    }

    /// The same with numbers counted from this value, and the best width for that; and the bytes of it.
    fn with_exceptions(self, reference: i64, left: &[i64]) -> (Plan, usize) {
        // How many numbers need each width.
        let mut needing = [0_usize; 65];
        for value in left {
            needing[width(reference, *value) as usize] += 1;
        }
        let (mut exceptions, mut extra) = (0, 0);
        let mut best = (Plan { reference, width: 64, ..self }, bits::bytes(left.len(), 64));
        for width in (0..=64_u32).rev() {
            let bytes = bits::bytes(left.len(), width) + extra;
            if bytes < best.1 {
                best = (Plan { reference, width, exceptions, ..self }, bytes);
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

    fn write(&self, first: &[i64], rest: &[i64], out: &mut Vec<u8>) {
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

/// What numbers may be counted from: the least value; the least one of the chunks that are spread little, so that one far below
/// the others is no reference; and below the chunk that is spread least, for where the others are of another level.
fn references(chunks: &[Spread], all: &Spread) -> [Option<i64>; 3] {
    let narrow = chunks.iter().min_by_key(|chunk| chunk.width()).unwrap_or(all);
    let little = chunks.iter().filter(|chunk| chunk.width() <= narrow.width() + 1);
    let low = little.map(|chunk| chunk.least).min();
    let below = narrow.least.wrapping_sub(narrow.most.wrapping_sub(narrow.least));
    let is_other = |reference: &i64| *reference > all.least;
    [Some(all.least), low.filter(is_other), Some(below).filter(is_other)]
}

/// Appends so many values, and takes their bytes off the front.
///
/// # Errors
/// [`Nonsense`] if there are not so many, or more than [`COUNT_MAX`] are asked for.
pub fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    if count > COUNT_MAX {
        return Err(Nonsense);
    }
    if bytes.first() == Some(&RUNS) { decode_runs(bytes, count, out) } else { decode_each(bytes, count, out) }
}

fn decode_runs(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    *bytes = bytes.strip_prefix(&[RUNS, 0]).ok_or(Nonsense)?;
    let runs = usize::try_from(numbers::take(bytes)?).ok().filter(|less_one| *less_one < count).ok_or(Nonsense)? + 1;
    let (mut of, mut lengths) = (Vec::new(), Vec::new());
    decode_each(bytes, runs, &mut of)?;
    decode_each(bytes, runs, &mut lengths)?;
    let mut left = count;
    for (value, length) in of.into_iter().zip(lengths) {
        let length = usize::try_from(length).ok().filter(|length| *length < left).ok_or(Nonsense)? + 1;
        out.resize(out.len() + length, value);
        left -= length;
    }
    if left == 0 { Ok(()) } else { Err(Nonsense) }
}

fn decode_each(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
    let ([order, width], rest) = bytes.split_first_chunk::<2>().ok_or(Nonsense)?;
    let (order, width) = (usize::from(*order), u32::from(*width));
    if order >= ORDERS || order > count {
        return Err(Nonsense);
    }
    *bytes = rest;
    let mut first = [0; ORDERS];
    for value in &mut first[..order] {
        *value = numbers::unfolded(numbers::take(bytes)?);
    }
    let reference = numbers::unfolded(numbers::take(bytes)?);
    let exceptions = take_exceptions(bytes, count - order)?;
    let begun = out.len();
    out.extend_from_slice(&first[..order]);
    bits::unpack(bytes, count - order, width, |number| reference.wrapping_add(number as i64), out)?;
    let mut at = begun + order;
    for (distance, above) in exceptions {
        at += distance;
        let value = out.get_mut(at).ok_or(Nonsense)?;
        *value = value.wrapping_add(above.checked_shl(width).ok_or(Nonsense)? as i64);
    }
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

/// Takes the bytes of so many values off the front and looks at none of them.
///
/// # Errors
/// As [`decode`], as far as it shows.
pub(crate) fn skip(bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
    if count > COUNT_MAX {
        return Err(Nonsense);
    }
    if bytes.first() != Some(&RUNS) {
        return skip_each(bytes, count);
    }
    *bytes = bytes.strip_prefix(&[RUNS, 0]).ok_or(Nonsense)?;
    let runs = usize::try_from(numbers::take(bytes)?).ok().filter(|less_one| *less_one < count).ok_or(Nonsense)? + 1;
    skip_each(bytes, runs)?;
    skip_each(bytes, runs)
}

fn skip_each(bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
    let ([order, width], rest) = bytes.split_first_chunk::<2>().ok_or(Nonsense)?;
    let (order, width) = (usize::from(*order), u32::from(*width));
    if order >= ORDERS || order > count || width > 64 {
        return Err(Nonsense);
    }
    *bytes = rest;
    (0..=order).try_for_each(|_| numbers::take(bytes).map(drop))?;
    take_exceptions(bytes, count - order)?;
    *bytes = bytes.get(bits::bytes(count - order, width)..).ok_or(Nonsense)?;
    Ok(())
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
