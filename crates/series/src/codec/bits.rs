//! Numbers of so many bits each, one after another, the lowest bit first.

use alloc::vec::Vec;

use super::Nonsense;

/// Numbers of so many bits at most lie in the eight bytes from the one in which they begin.
const NARROW: u32 = 57;

/// Bytes that so many numbers of this width take.
pub(crate) fn bytes(count: usize, width: u32) -> usize {
    (count * width as usize).div_ceil(8)
}

fn mask(width: u32) -> u64 {
    if width == 64 { u64::MAX } else { (1 << width) - 1 }
}

/// Appends the lowest `width` bits of each number.
pub(crate) fn pack(numbers: impl Iterator<Item = u64>, width: u32, out: &mut Vec<u8>) {
    if width == 0 {
        return;
    }
    let (mut held, mut bits, mask) = (0_u64, 0, mask(width));
    for number in numbers {
        let number = number & mask;
        held |= number << bits;
        bits += width;
        if bits >= 64 {
            out.extend_from_slice(&held.to_le_bytes());
            bits -= 64;
            // What of the number did not fit: nothing, if it ended there.
            held = number.checked_shr(width - bits).unwrap_or(0);
        }
    }
    out.extend_from_slice(&held.to_le_bytes()[..(bits as usize).div_ceil(8)]);
}

/// Appends so many numbers, each made what `of` makes of it, and takes their bytes off the front.
pub(crate) fn unpack(
    bytes: &mut &[u8],
    count: usize,
    width: u32,
    of: impl Fn(u64) -> i64,
    out: &mut Vec<i64>,
) -> Result<(), Nonsense> {
    if width > 64 {
        return Err(Nonsense);
    }
    let (packed, rest) = bytes.split_at_checked(self::bytes(count, width)).ok_or(Nonsense)?;
    *bytes = rest;
    out.reserve(count);
    match width {
        // As are the second differences of times that come regularly.
        0 => out.resize(out.len() + count, of(0)),
        1..=NARROW => unpack_narrow(packed, count, width, of, out),
        _ => unpack_wide(packed, count, width, of, out),
    }
    Ok(())
}

fn unpack_narrow(packed: &[u8], count: usize, width: u32, of: impl Fn(u64) -> i64, out: &mut Vec<i64>) {
    let inner = if packed.len() < 8 { 0 } else { count.min((packed.len() - 8) * 8 / width as usize + 1) };
    let mask = mask(width);
    out.extend((0..inner).map(|at| {
        let bit = at * width as usize;
        let word = packed[bit / 8..].first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word));
        of(word >> (bit % 8) & mask)
    }));
    out.extend((inner..count).map(|at| of(last(packed, at * width as usize) & mask)));
}

/// The bits from this one on, near the end.
fn last(packed: &[u8], bit: usize) -> u64 {
    let mut word = [0; 8];
    let tail = packed.get(bit / 8..).unwrap_or_default();
    let length = tail.len().min(8);
    word[..length].copy_from_slice(&tail[..length]);
    u64::from_le_bytes(word) >> (bit % 8)
}

fn unpack_wide(packed: &[u8], count: usize, width: u32, of: impl Fn(u64) -> i64, out: &mut Vec<i64>) {
    let (mut held, mut bits, mut next) = (0_u128, 0, packed.iter());
    for _ in 0..count {
        while bits < width {
            held |= u128::from(*next.next().unwrap_or(&0)) << bits;
            bits += 8;
        }
        out.push(of(held as u64 & mask(width)));
        (held, bits) = (held >> width, bits - width);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_every_width_come_back() {
        for width in 0..=64 {
            for count in [0, 1, 7, 8, 9, 100] {
                let numbers: Vec<u64> =
                    (0..count as u64).map(|at| (at + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) & mask(width)).collect();
                let mut packed = Vec::new();
                pack(numbers.iter().copied(), width, &mut packed);
                assert_eq!(packed.len(), bytes(count, width), "{count} of {width} bits");
                packed.push(0xAB);
                let (mut rest, mut found) = (&packed[..], Vec::new());
                unpack(&mut rest, count, width, |number| number as i64, &mut found).expect("there");
                let found: Vec<u64> = found.into_iter().map(|number| number as u64).collect();
                assert_eq!((found, rest), (numbers, &[0xAB][..]), "{count} of {width} bits");
            }
        }
        assert_eq!(unpack(&mut &[0; 3][..], 4, 7, |_| 0, &mut Vec::new()), Err(Nonsense));
        assert_eq!(unpack(&mut &[0; 100][..], 1, 65, |_| 0, &mut Vec::new()), Err(Nonsense));
    }
}
