//! A column of integers without anything repeated or common: differences above a reference, in as few bits as most of them need.
//! What the bytes are is told in [`super::integers`].

use alloc::borrow::Cow;
use alloc::vec::Vec;

use super::integers::COUNT_MAX;
use super::{Nonsense, bits, numbers};

/// Differences that may be taken.
const ORDERS: usize = 3;

/// Values whose spread is looked at together: a single one that is far away spoils no more than these.
const CHUNK: usize = 64;

/// Of a column of more chunks than these only one in so many is looked at to tell its order; no power of two, since what comes
/// round again mostly does so after one.
const CHUNKS_LOOKED_AT: usize = 16;
const CHUNK_STEP: usize = 5;
/// How a column is written.
#[derive(Clone, Copy)]
struct Plan {
    order: usize,
    reference: i64,
    width: u32,
    exceptions: usize,
}

/// Appends the values.
pub(crate) fn encode(values: &[i64], out: &mut Vec<u8>) {
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
pub(crate) fn decode(bytes: &mut &[u8], count: usize, out: &mut Vec<i64>) -> Result<(), Nonsense> {
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

/// Takes the bytes of so many values off the front.
pub(crate) fn skip(bytes: &mut &[u8], count: usize) -> Result<(), Nonsense> {
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
