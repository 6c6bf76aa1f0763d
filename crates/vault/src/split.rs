//! The volume key in shares: any `need` of them put it together, fewer tell nothing (Shamir 1979, over GF(2^8)).
//!
//! Each byte of the key is the value at 0 of a polynomial of degree `need - 1` whose other coefficients are random; share
//! number x has its values at x. The field is that of AES, x^8 + x^4 + x^3 + x + 1.
//!
//! ```text
//! counterfoil-share-1 NEED NUMBER DATABASE-ID(64 hex) VALUES(64 hex) CHECK(8 hex: SHA-256 of the line before it)
//! ```
//! 1. A share has a number from 1 to 255, never 0: at 0 stands the key.
//! 2. The check is against typing mistakes; whether the key is right, the header says.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use sha2::{Digest, Sha256};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{DatabaseId, Entropy, NoEntropy, VolumeKey};

const WORD: &str = "counterfoil-share-1";

/// A share of a volume key. As secret as a part of a key is.
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct Share {
    need: u8,
    number: u8,
    #[zeroize(skip)]
    id: DatabaseId,
    values: [u8; 32],
}

/// Why a key could not be split, or put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitError {
    /// From 2 to 255 shares, of which from 2 to all are needed.
    Numbers {
        /// Shares that would be needed.
        need: u8,
        /// Shares that would be made.
        of: u8,
    },
    /// This is no share, or one with a typing mistake.
    NoShare,
    /// The shares are of different databases, or of different splittings.
    Mixed,
    /// More shares are needed.
    TooFew {
        /// Different shares there are.
        found: usize,
        /// Shares that are needed.
        need: u8,
    },
    /// The random generator failed.
    NoEntropy,
}

impl From<NoEntropy> for SplitError {
    fn from(_: NoEntropy) -> Self {
        SplitError::NoEntropy
    }
}

impl fmt::Display for SplitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SplitError::Numbers { need, of } => {
                write!(f, "{need} of {of} shares is not possible: at least 2, and no more needed than made")
            }
            SplitError::NoShare => f.write_str("this is no share of a key, or it has a typing mistake"),
            SplitError::Mixed => f.write_str("the shares do not belong together"),
            SplitError::TooFew { found, need } => write!(f, "{need} shares are needed, and {found} are here"),
            SplitError::NoEntropy => NoEntropy.fmt(f),
        }
    }
}

impl core::error::Error for SplitError {}

/// Splits a volume key into `of` shares, of which any `need` put it together again.
///
/// # Errors
/// [`SplitError::Numbers`], [`SplitError::NoEntropy`].
pub fn split(
    key: &VolumeKey,
    id: DatabaseId,
    need: u8,
    of: u8,
    entropy: &mut dyn Entropy,
) -> Result<Vec<Share>, SplitError> {
    if need < 2 || need > of {
        return Err(SplitError::Numbers { need, of });
    }
    let mut coefficients = Zeroizing::new([[0; 32]; 255]);
    let coefficients = &mut coefficients[..usize::from(need)];
    coefficients[0] = *key.expose();
    coefficients[1..].iter_mut().try_for_each(|row| entropy.fill(row))?;
    let share = |number: u8| {
        let mut values = [0; 32];
        for (index, value) in values.iter_mut().enumerate() {
            *value = coefficients.iter().rev().fold(0, |sum, row| times(sum, number) ^ row[index]);
        }
        Share { need, number, id, values }
    };
    Ok((1..=of).map(share).collect())
}

/// Puts a volume key together. More shares than needed do no harm.
///
/// # Errors
/// [`SplitError::Mixed`], [`SplitError::TooFew`].
pub fn join(shares: &[Share]) -> Result<VolumeKey, SplitError> {
    let Some(first) = shares.first() else { return Err(SplitError::TooFew { found: 0, need: 2 }) };
    let mut chosen: Vec<&Share> = Vec::new();
    for share in shares {
        if share.id != first.id || share.need != first.need {
            return Err(SplitError::Mixed);
        }
        match chosen.iter().find(|known| known.number == share.number) {
            Some(known) if known.values != share.values => return Err(SplitError::Mixed),
            Some(_) => {}
            None => chosen.push(share),
        }
    }
    if chosen.len() < usize::from(first.need) {
        return Err(SplitError::TooFew { found: chosen.len(), need: first.need });
    }
    chosen.truncate(usize::from(first.need));
    let mut key = Zeroizing::new([0; 32]);
    for share in &chosen {
        // Lagrange at 0: the product of x / (x - own) over the others; in this field minus is plus.
        let others = chosen.iter().filter(|other| other.number != share.number);
        let weight =
            others.fold(1, |product, other| times(product, times(other.number, inverse(other.number ^ share.number))));
        key.iter_mut().zip(&share.values).for_each(|(byte, value)| *byte ^= times(*value, weight));
    }
    Ok(VolumeKey::from_bytes(&key))
}

impl Share {
    /// The database whose key it is a share of.
    pub fn id(&self) -> DatabaseId {
        self.id
    }

    /// The share as a line of text.
    pub fn text(&self) -> Zeroizing<String> {
        let mut text = format!("{WORD} {} {} {} ", self.need, self.number, self.id);
        text.reserve(80);
        self.values.iter().for_each(|value| push_hex(&mut text, *value));
        let check = check_of(&text);
        text.push(' ');
        check.iter().for_each(|byte| push_hex(&mut text, *byte));
        Zeroizing::new(text)
    }

    /// Understands what [`Share::text`] wrote.
    ///
    /// # Errors
    /// [`SplitError::NoShare`].
    pub fn parse(text: &str) -> Result<Share, SplitError> {
        Self::read(text.trim()).ok_or(SplitError::NoShare)
    }

    fn read(text: &str) -> Option<Share> {
        let (line, check) = text.rsplit_once(' ')?;
        let mut words = line.split(' ');
        if words.next()? != WORD || from_hex::<4>(check)? != check_of(line) {
            return None;
        }
        let need = words.next()?.parse().ok().filter(|need| *need >= 2)?;
        let number = words.next()?.parse().ok().filter(|number| *number != 0)?;
        let id = DatabaseId(from_hex(words.next()?)?);
        let values = from_hex(words.next()?)?;
        words.next().is_none().then_some(Share { need, number, id, values })
    }
}

fn check_of(line: &str) -> [u8; 4] {
    let digest = Sha256::digest(line.as_bytes());
    [digest[0], digest[1], digest[2], digest[3]]
}

fn push_hex(text: &mut String, byte: u8) {
    for digit in [byte >> 4, byte & 15] {
        text.push(char::from_digit(u32::from(digit), 16).unwrap_or('0'));
    }
}

fn from_hex<const BYTES: usize>(digits: &str) -> Option<[u8; BYTES]> {
    let digits = digits.as_bytes();
    if digits.len() != 2 * BYTES {
        return None;
    }
    let mut bytes = [0; BYTES];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high * 16 + low) as u8;
    }
    Some(bytes)
}

/// The product in GF(2^8), without a branch or a table that depends on the factors.
fn times(mut left: u8, mut right: u8) -> u8 {
    let mut product = 0;
    for _ in 0..8 {
        product ^= left & (right & 1).wrapping_neg();
        let carried = (left >> 7).wrapping_neg();
        left = left << 1 ^ carried & 0x1B;
        right >>= 1;
    }
    product
}

/// The inverse: the 254th power. That of 0 is 0, which no caller asks for.
fn inverse(value: u8) -> u8 {
    (0..7)
        .fold((1, value), |(product, power), _| {
            let square = times(power, power);
            (times(product, square), square)
        })
        .0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DangerFixedEntropy;

    fn shares(need: u8, of: u8) -> (VolumeKey, Vec<Share>) {
        let entropy = &mut DangerFixedEntropy::seeded(5);
        let key = VolumeKey::generate(entropy).unwrap();
        let shares = split(&key, DatabaseId([9; 32]), need, of, entropy).unwrap();
        (key, shares)
    }

    fn copy(share: &Share) -> Share {
        Share::parse(&share.text()).unwrap()
    }

    #[test]
    fn the_field_is_a_field() {
        for value in 1..=255 {
            assert_eq!(times(value, inverse(value)), 1, "{value}");
            assert_eq!(times(value, 1), value);
        }
        // FIPS 197, section 4.2.
        assert_eq!(times(0x57, 0x83), 0xC1);
    }

    #[test]
    fn any_that_are_needed_and_no_fewer() {
        for (need, of) in [(2, 2), (2, 3), (3, 5), (5, 5)] {
            let (key, shares) = shares(need, of);
            for chosen in 0_u32..1 << of {
                let some: Vec<Share> =
                    shares.iter().filter(|share| chosen >> (share.number - 1) & 1 == 1).map(copy).collect();
                match join(&some) {
                    Ok(joined) => {
                        assert!(some.len() >= usize::from(need));
                        assert_eq!(joined.expose(), key.expose());
                    }
                    Err(error) => {
                        assert!(some.len() < usize::from(need), "{error}");
                    }
                }
            }
        }
        let (key, shares) = shares(200, 255);
        assert_eq!(join(&shares[55..]).map(|key| *key.expose()), Ok(*key.expose()));
    }

    #[test]
    fn mistakes_are_noticed() {
        let (_, shares) = shares(2, 3);
        let text = shares[0].text();
        for place in 0..text.len() {
            let mut wrong = String::from(text.as_str());
            let letter = if wrong.as_bytes()[place] == b'7' { "8" } else { "7" };
            wrong.replace_range(place..=place, letter);
            assert_eq!(Share::parse(&wrong).err(), Some(SplitError::NoShare), "{wrong}");
        }
        for wrong in ["", "x", "counterfoil-share-1 2 1", "\u{fffd}"] {
            assert_eq!(Share::parse(wrong).err(), Some(SplitError::NoShare));
        }
        let entropy = &mut DangerFixedEntropy::seeded(6);
        let other = split(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([8; 32]), 2, 3, entropy).unwrap();
        assert_eq!(join(&[copy(&shares[0]), copy(&other[1])]).err(), Some(SplitError::Mixed));
        assert_eq!(join(&[copy(&shares[0]), copy(&shares[0])]).err(), Some(SplitError::TooFew { found: 1, need: 2 }));
        for (need, of) in [(0, 3), (1, 3), (4, 3)] {
            let key = VolumeKey::from_bytes(&[1; 32]);
            assert!(split(&key, DatabaseId([8; 32]), need, of, entropy).is_err());
        }
    }
}
