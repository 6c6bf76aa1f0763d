//! Numbers as Paillier ciphertexts: one provider alone adds them up, and learns nothing of them (Paillier, "Public-Key Cryptosystems
//! Based on Composite Degree Residuosity Classes", 1999, with g = n + 1).
//!
//! ```text
//! c = (1 + m n) h^x modulo n^2        m: a number below n, those above a half of n being negative; or several of them, in slots
//! c1 c2 modulo n^2 = the ciphertext of m1 + m2
//! ```
//! 1. Whoever holds ciphertexts learns how many there are, and which of them were added up: nothing of the numbers, however few they
//!    are, as long as no multiples of n's primes can be told from others (the decisional composite residuosity assumption).
//! 2. Whoever holds them can also change them: `c (1 + d n)` is the ciphertext of m + d. A sum is what the provider says it is, and
//!    `unverified`, unless others who hold the same say the same. Shares ([`super::shares`]) are checked; they need several providers.
//! 3. Nothing is told that was not encrypted so: a sum of other than the additions asked for, one that leaves a slot, and a number that
//!    n has a divisor in common with are errors, each of its own kind.
//! 4. Secrets (primes, exponents, numbers) choose no branch and no address; divisions and inverses of the primes, once for a key, are
//!    the library's.
//!
//! [`PrivateKey`] reads, [`Encryptor`] encrypts, [`Slots`] says how numbers share one, [`Adding`] adds up what it cannot read.

use std::fmt;

mod digits;
mod encrypt;
mod key;
mod packing;
mod sum;

pub use encrypt::{Encryptor, Exponents};
pub use key::{KEY_BITS_DEFAULT, KEY_BITS_MAX, KEY_BITS_MIN, PrivateKey, PublicKey};
pub use packing::Slots;
pub use sum::{ADDITIONS_MAX, Adding, Ciphertext};

/// Bits of magnitude of a number that has a ciphertext of its own, at most.
pub const NUMBER_BITS: u32 = 126;

/// Why a key, a number, a ciphertext or a sum cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unusable {
    /// A key of so many bits.
    KeyBits(usize),
    /// Bytes that are no key.
    Key,
    /// Short exponents under a key that is not made for them.
    ShortExponents,
    /// So many bytes that are no ciphertext under the key.
    Ciphertext(usize),
    /// A ciphertext under a key of another size.
    OtherKey,
    /// A number that has a divisor in common with n: nobody encrypted it.
    NotEncrypted,
    /// More additions than there is room for.
    Additions {
        /// How many.
        additions: u64,
        /// How many there may be.
        most: u64,
    },
    /// The sum of others than were asked for.
    OtherAdditions {
        /// How many were asked for.
        asked: u64,
        /// How many it says that there are.
        found: u64,
    },
    /// A value with more bits of magnitude.
    Magnitude {
        /// How many it may have.
        bits: u32,
    },
    /// More values than a number has slots.
    Slots {
        /// How many values.
        values: usize,
        /// How many slots.
        slots: usize,
    },
    /// A sum that so many values cannot have.
    Sum,
}

impl PrivateKey {
    /// The number of a ciphertext, or the sum of as many as were asked for.
    ///
    /// # Errors
    /// [`Unusable`]: of another key, of other additions, of nothing that was encrypted, or greater than so many numbers can be.
    pub fn open(&self, ciphertext: &Ciphertext, additions: u64) -> Result<i128, Unusable> {
        let number = self.decrypt_sum(ciphertext, additions)?;
        let modulus = &self.public().modulus;
        let negative = modulus.negative(&number);
        // What is nearer to n than to nought is negative.
        let is_negative = digits::is_less(&negative, &number);
        let magnitude = if is_negative { negative } else { number };
        let low = u128::from(magnitude[0]) | u128::from(magnitude[1]) << 64;
        let fits = magnitude[2..].iter().all(|limb| *limb == 0)
            && low.div_ceil((1 << NUMBER_BITS) - 1) <= u128::from(additions);
        let number = i128::try_from(low).ok().filter(|_| fits).ok_or(Unusable::Sum)?;
        Ok(if is_negative { -number } else { number })
    }

    /// The values of a ciphertext of several, or their sums over as many as were asked for. Slots that were not filled are nought.
    ///
    /// # Errors
    /// [`Unusable`], as [`PrivateKey::open`].
    pub fn open_packed(&self, slots: &Slots, ciphertext: &Ciphertext, additions: u64) -> Result<Vec<i128>, Unusable> {
        slots.unpack(&self.decrypt_sum(ciphertext, additions)?, additions)
    }

    fn decrypt_sum(&self, ciphertext: &Ciphertext, asked: u64) -> Result<digits::Limbs, Unusable> {
        match ciphertext.additions() {
            found if found == asked => self.decrypt(ciphertext),
            found => Err(Unusable::OtherAdditions { asked, found }),
        }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KeyBits(bits) => write!(
                f,
                "a Paillier key of {bits} bits: take {KEY_BITS_DEFAULT}, or a multiple of 128 from {KEY_BITS_MIN} to {KEY_BITS_MAX}"
            ),
            Self::Key => f.write_str("these bytes are no Paillier key: take those of the key that was kept"),
            Self::ShortExponents => f.write_str(
                "this Paillier key is not made for short exponents: use full ones, or a key that was generated here",
            ),
            Self::Ciphertext(bytes) => write!(f, "{bytes} bytes that are no ciphertext under this Paillier key"),
            Self::OtherKey => f.write_str("a ciphertext under a Paillier key of another size"),
            Self::NotEncrypted => f.write_str("a number that was never encrypted under this Paillier key"),
            Self::Additions { additions, most } => {
                write!(
                    f,
                    "a sum of {additions} ciphertexts, where {most} have room: add up fewer, or declare more rows"
                )
            }
            Self::OtherAdditions { asked, found } => {
                write!(f, "a sum of {found} ciphertexts, where one of {asked} was asked for")
            }
            Self::Magnitude { bits } => write!(f, "a value with more than {bits} bits, which is what was declared"),
            Self::Slots { values, slots } => write!(f, "{values} values for the {slots} slots of a number"),
            Self::Sum => f.write_str("a sum that so many values of the declared size cannot have"),
        }
    }
}

impl std::error::Error for Unusable {}

#[cfg(test)]
mod tests;
