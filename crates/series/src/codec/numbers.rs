//! Numbers of as few bytes as they need: seven bits in each byte, the lowest first, and a bit that says that more follow.

use alloc::vec::Vec;

use super::Nonsense;

/// Bytes of the longest.
const BYTES_MAX: usize = 10;

/// Appends a number.
pub(crate) fn put(number: u64, out: &mut Vec<u8>) {
    let mut rest = number;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Takes a number off the front.
pub(crate) fn take(bytes: &mut &[u8]) -> Result<u64, Nonsense> {
    let mut number = 0;
    for at in 0..BYTES_MAX {
        let byte = *bytes.get(at).ok_or(Nonsense)?;
        let bits = u64::from(byte & 0x7F);
        if at == BYTES_MAX - 1 && bits > 1 {
            return Err(Nonsense);
        }
        number |= bits << (7 * at);
        if byte < 0x80 {
            *bytes = &bytes[at + 1..];
            return Ok(number);
        }
    }
    Err(Nonsense)
}

/// Small numbers for integers that are near zero, whatever their sign.
pub(crate) fn folded(integer: i64) -> u64 {
    ((integer << 1) ^ (integer >> 63)) as u64
}

/// The integer that was folded.
pub(crate) fn unfolded(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u64::MAX / 2, u64::MAX] {
            let mut out = Vec::new();
            put(number, &mut out);
            let mut rest = &out[..];
            assert_eq!((take(&mut rest), rest), (Ok(number), &[][..]));
            assert_eq!(take(&mut &out[..out.len() - 1]), Err(Nonsense));
        }
        for integer in [0, -1, 1, i64::MIN, i64::MAX] {
            assert_eq!(unfolded(folded(integer)), integer);
        }
        assert_eq!(take(&mut &[0xFF; 12][..]), Err(Nonsense));
        assert_eq!(take(&mut &[255, 255, 255, 255, 255, 255, 255, 255, 255, 2][..]), Err(Nonsense));
    }
}
