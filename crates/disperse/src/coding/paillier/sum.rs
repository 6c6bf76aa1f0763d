//! Ciphertexts, and what whoever holds them adds up without a key.
//!
//! ```text
//! ciphertext = additions u64 | high | low            each as long as n: the number low + high n, see digits.rs
//! ```
//! 1. A ciphertext says how many it is the sum of, since nothing else in it does. Who has the key asked for a number of them, and
//!    takes no other.
//! 2. To add is one multiplication, whose divisor R is made good at the end, once for all. No common divisor is looked for: a number
//!    that has one with n does not open, and who found one would have the key.

use super::Unusable;
use super::digits::{self, Work};
use super::key::PublicKey;

/// Additions that a ciphertext may stand for, at most.
pub const ADDITIONS_MAX: u64 = 1 << 48;

/// An encrypted number, or the sum of several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ciphertext {
    /// Two digits, the low one first.
    digits: Vec<u64>,
    additions: u64,
}

impl Ciphertext {
    pub(super) fn new(low: &[u64], high: &[u64], additions: u64) -> Self {
        Self { digits: [low, high].concat(), additions }
    }

    pub(super) fn digits(&self) -> &[u64] {
        &self.digits
    }

    /// How many encrypted numbers it is the sum of: so it says.
    #[must_use]
    pub fn additions(&self) -> u64 {
        self.additions
    }

    /// How many bytes a ciphertext under a key takes.
    #[must_use]
    pub fn bytes_of(key: &PublicKey) -> usize {
        8 + key.bits() / 4
    }

    /// Appends its bytes.
    pub fn write(&self, bytes: &mut Vec<u8>) {
        bytes.extend_from_slice(&self.additions.to_be_bytes());
        let (low, high) = self.digits.split_at(self.digits.len() / 2);
        digits::to_bytes(high, bytes);
        digits::to_bytes(low, bytes);
    }

    /// From bytes, of anybody.
    ///
    /// # Errors
    /// [`Unusable::Ciphertext`], [`Unusable::Additions`].
    pub fn read(key: &PublicKey, bytes: &[u8]) -> Result<Self, Unusable> {
        let (additions, numbers) = bytes.split_first_chunk::<8>().ok_or(Unusable::Ciphertext(bytes.len()))?;
        if bytes.len() != Self::bytes_of(key) {
            return Err(Unusable::Ciphertext(bytes.len()));
        }
        let additions = u64::from_be_bytes(*additions);
        if additions > ADDITIONS_MAX {
            return Err(Unusable::Additions { additions, most: ADDITIONS_MAX });
        }
        let (high, low) = numbers.split_at(numbers.len() / 2);
        let limbs = |half| digits::from_bytes(half).filter(|limbs| digits::is_less(limbs, key.modulus.limbs()));
        match (limbs(low), limbs(high)) {
            (Some(low), Some(high)) => Ok(Self::new(&low, &high, additions)),
            _ => Err(Unusable::Ciphertext(bytes.len())),
        }
    }

    /// The number itself, the highest byte first, as other programs have it.
    #[must_use]
    pub fn to_number(&self, key: &PublicKey) -> Vec<u8> {
        let (low, high) = self.digits.split_at(self.digits.len() / 2);
        let mut bytes = Vec::with_capacity(self.digits.len() * 8);
        digits::to_bytes(&digits::multiply_add(key.modulus.limbs(), high, low), &mut bytes);
        bytes
    }

    /// One encrypted number as other programs have it, the highest byte first.
    ///
    /// # Errors
    /// [`Unusable::Ciphertext`].
    pub fn from_number(key: &PublicKey, bytes: &[u8]) -> Result<Self, Unusable> {
        let refused = || Unusable::Ciphertext(bytes.len());
        if bytes.len() > key.bits() / 4 {
            return Err(refused());
        }
        let mut whole = vec![0; key.bits() / 4 - bytes.len()];
        whole.extend_from_slice(bytes);
        let number = digits::from_bytes(&whole).ok_or_else(refused)?;
        let digits = key.modulus.split(&digits::boxed(&number)).ok_or_else(refused)?;
        Ok(Self { digits: digits.to_vec(), additions: 1 })
    }
}

/// A sum that is being added up.
pub struct Adding<'k> {
    key: &'k PublicKey,
    /// The product of all, divided by R once for each but the first.
    product: Option<Vec<u64>>,
    factors: u64,
    additions: u64,
    work: Work,
}

impl<'k> Adding<'k> {
    /// Of nothing yet.
    #[must_use]
    pub fn new(key: &'k PublicKey) -> Self {
        Self { key, product: None, factors: 0, additions: 0, work: Work::new(key.modulus.width()) }
    }

    /// Adds a ciphertext under the same key.
    ///
    /// # Errors
    /// [`Unusable::OtherKey`], [`Unusable::Additions`]; the sum is as it was.
    pub fn add(&mut self, other: &Ciphertext) -> Result<(), Unusable> {
        if other.digits.len() != 2 * self.key.modulus.width() {
            return Err(Unusable::OtherKey);
        }
        let additions = self.additions.saturating_add(other.additions);
        if additions > ADDITIONS_MAX || self.factors == ADDITIONS_MAX {
            return Err(Unusable::Additions { additions, most: ADDITIONS_MAX });
        }
        match &mut self.product {
            None => self.product = Some(other.digits.clone()),
            Some(product) => {
                self.key.modulus.multiply(product, &other.digits, &mut self.work);
                product.copy_from_slice(&self.work.product);
                self.factors += 1;
            }
        }
        self.additions = additions;
        Ok(())
    }

    /// The sum; of nothing, nought that hides nothing.
    #[must_use]
    pub fn finish(mut self) -> Ciphertext {
        let modulus = &self.key.modulus;
        let width = modulus.width();
        let Some(product) = self.product.take() else {
            let mut digits = vec![0; 2 * width];
            digits[0] = 1;
            return Ciphertext { digits, additions: 0 };
        };
        // R to the number of divisions, and once more for the multiplication that makes them good.
        let divisors = modulus.power(modulus.square(), &[self.factors]);
        modulus.multiply(&product, &divisors, &mut self.work);
        Ciphertext { digits: self.work.product.to_vec(), additions: self.additions }
    }
}
