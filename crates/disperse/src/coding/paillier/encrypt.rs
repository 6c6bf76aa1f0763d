//! What the owner makes of numbers: `(1 + m n) h^x` modulo n^2, worked out modulo the squares of both primes.
//!
//! ```text
//! h = the square of a number that the key of the epoch gives, to the power of p modulo p^2, of q modulo q^2: an n-th power
//! x = bytes of AES-256(key of the epoch; row u64 | 1 u64), (row u64 | 2 u64) ...
//!     full:  the first (bits of p + 64) of them modulo p^2, as many behind them modulo q^2
//!     short: the first 256 bits modulo both
//! ```
//! 1. Exponents are pseudo-random instead of drawn: a retry sends the same bytes. A row's number belongs to one value for ever, as with
//!    shares; two values under one row show their difference.
//! 2. Powers of h are products of powers that are kept, one for each four bits of the exponent. All entries of a window are read, so that
//!    which one was meant shows in no address.
//! 3. A full exponent leaves a power of h that is as good as drawn from all of them. They are squares, where the textbook's r^n is any
//!    n-th power: who could read under squares could read the textbook's, by squaring ciphertexts. A short exponent takes an assumption
//!    more: that nobody tells short powers of h from others (Damgard, Jurik and Nielsen, 2010), so it is an option.

use std::sync::Arc;

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};
use zeroize::Zeroizing;

use super::Unusable;
use super::digits::{self, Limbs, WINDOW, WINDOW_BITS, Work};
use super::key::{Half, PrivateKey, expand};
use super::packing::Slots;
use super::sum::Ciphertext;
use crate::keys::Secret;

/// Limbs of a short exponent: twice the 128 bits of security that a key of 3072 bits gives.
const SHORT_LIMBS: usize = 4;

/// How long the exponents are that hide numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exponents {
    /// As long as the primes and 64 bits: nothing is assumed that Paillier does not.
    Full,
    /// 256 bits: about six times as fast, under an assumption of its own.
    Short,
}

/// The owner's, for the rows of an epoch.
pub struct Encryptor {
    key: Arc<PrivateKey>,
    cipher: Aes256,
    exponents: Exponents,
    p: Powers,
    q: Powers,
}

/// Powers of h modulo the square of a prime: for each window of an exponent all that it may say.
struct Powers(Limbs);

impl Encryptor {
    /// Under the key of an epoch. Works the powers out, which takes some tens of milliseconds and megabytes.
    ///
    /// # Errors
    /// [`Unusable::ShortExponents`]: the key is none that takes them.
    pub fn new(key: Arc<PrivateKey>, secret: &Secret, exponents: Exponents) -> Result<Self, Unusable> {
        if exponents == Exponents::Short && !key.takes_short_exponents() {
            return Err(Unusable::ShortExponents);
        }
        let bytes = Zeroizing::new(expand(secret, &[b"base"], key.public().bits() / 8));
        let base = digits::from_bytes(&bytes).ok_or(Unusable::Key)?;
        let limbs = exponents.limbs(key.p.modulus.width());
        let (p, q) = (Powers::new(&key.p, &base, limbs), Powers::new(&key.q, &base, limbs));
        let own = Zeroizing::new(expand(secret, &[b"exponents"], 32));
        let Some(own) = own.first_chunk::<32>() else { unreachable!("32 bytes were asked for") };
        Ok(Self { cipher: Aes256::new(&Array(*own)), key, exponents, p, q })
    }

    /// Encrypts the number of a row, of at most 126 bits of magnitude.
    ///
    /// # Errors
    /// [`Unusable::Magnitude`].
    pub fn encrypt(&self, row: u64, number: i128) -> Result<Ciphertext, Unusable> {
        let width = self.key.public().modulus.width();
        if number.unsigned_abs() >> super::NUMBER_BITS > 0 {
            return Err(Unusable::Magnitude { bits: super::NUMBER_BITS });
        }
        let magnitude = number.unsigned_abs();
        let mut limbs = Zeroizing::new(vec![0; width]);
        (limbs[0], limbs[1]) = (magnitude as u64, (magnitude >> 64) as u64);
        if number < 0 {
            limbs = self.key.public().modulus.negative(&limbs);
        }
        Ok(self.hidden(row, &limbs))
    }

    /// Encrypts values that share a number: those of a row of a packed column.
    ///
    /// # Errors
    /// [`Unusable::Slots`], [`Unusable::Magnitude`].
    pub fn encrypt_packed(&self, row: u64, slots: &Slots, values: &[i128]) -> Result<Ciphertext, Unusable> {
        let packed = slots.pack(values, self.key.public().modulus.width())?;
        Ok(self.hidden(row, &packed))
    }

    /// The key.
    #[must_use]
    pub fn key(&self) -> &PrivateKey {
        &self.key
    }

    /// `(1 + m n) h^x`, put together from what it is modulo both squares.
    fn hidden(&self, row: u64, number: &[u64]) -> Ciphertext {
        let (p, q) = (&self.key.p, &self.key.q);
        let [of_p, of_q] = self.drawn(row);
        let (own_p, own_q) = (self.p.hide(p, number, &of_p), self.q.hide(q, number, &of_q));
        let ((low_p, high_p), (low_q, high_q)) = (own_p.split_at(p.modulus.width()), own_q.split_at(q.modulus.width()));
        let low = self.key.join(low_p, low_q);
        // What low has of p beside its remainder is not the high digit's: high p is the rest, over the other prime.
        let high = |half: &Half, high: &[u64], carried: Limbs| {
            let carried = half.modulus.negative(&half.modulus.remainder(&carried));
            half.over_other(&half.modulus.add(high, &carried))
        };
        let of_p = high(p, high_p, q.quotient(low_q, low_p));
        let of_q = high(q, high_q, p.quotient(low_p, low_q));
        Ciphertext::new(&low, &self.key.join(&of_p, &of_q), 1)
    }

    /// The exponents of a row, modulo p and q.
    fn drawn(&self, row: u64) -> [Limbs; 2] {
        let limbs = self.exponents.limbs(self.key.p.modulus.width());
        let count = if self.exponents == Exponents::Full { 2 * limbs } else { limbs };
        let mut bytes = Zeroizing::new(Vec::with_capacity(count * 8 + 16));
        for counter in (1_u64..).take(count.div_ceil(2)) {
            let mut block = Array((u128::from(row) << 64 | u128::from(counter)).to_be_bytes());
            self.cipher.encrypt_block(&mut block);
            bytes.extend_from_slice(&block);
        }
        let exponent = |at: usize| {
            let Some(limbs) = digits::from_bytes(&bytes[at * 8..(at + limbs) * 8]) else { unreachable!("whole limbs") };
            limbs
        };
        [exponent(0), exponent(count - limbs)]
    }
}

impl Exponents {
    fn limbs(self, limbs_of_prime: usize) -> usize {
        match self {
            Self::Full => limbs_of_prime + 1,
            Self::Short => SHORT_LIMBS,
        }
    }
}

impl Powers {
    fn new(half: &Half, base: &[u64], exponent_limbs: usize) -> Self {
        let modulus = &half.modulus;
        let mut work = Work::new(modulus.width());
        let mut number = Zeroizing::new(vec![0; 2 * modulus.width()]);
        number[..modulus.width()].copy_from_slice(&modulus.remainder(base));
        modulus.multiply(&number, modulus.square(), &mut work);
        number.copy_from_slice(&work.product);
        modulus.multiply(&number, &number, &mut work);
        let mut step = modulus.power(&work.product, modulus.limbs());
        let windows = exponent_limbs * 64 / WINDOW_BITS;
        // As large as it will be: what outgrew its place would leave a copy there.
        let mut entries = Zeroizing::new(Vec::with_capacity(windows * WINDOW * step.len()));
        for _ in 0..windows {
            let window = modulus.powers(&step, &mut work);
            modulus.multiply(&window[(WINDOW - 1) * step.len()..], &step, &mut work);
            step.copy_from_slice(&work.product);
            entries.extend_from_slice(&window);
        }
        Self(entries)
    }

    /// `(1 + m n) h^x` modulo the square of the prime.
    fn hide(&self, half: &Half, number: &[u64], exponent: &[u64]) -> Limbs {
        let modulus = &half.modulus;
        let digits = 2 * modulus.width();
        let (mut work, mut power) = (Work::new(modulus.width()), Zeroizing::new(vec![0; digits]));
        let mut product = Zeroizing::new(vec![0; digits]);
        // 1 + m n: the product with it ends without R.
        product[0] = 1;
        product[modulus.width()..].copy_from_slice(&half.times_other(number));
        for (window, chosen) in self.0.chunks_exact(WINDOW * digits).zip(digits::windows(exponent)) {
            digits::select(window, chosen, &mut power);
            modulus.multiply(&product, &power, &mut work);
            product.copy_from_slice(&work.product);
        }
        product
    }
}
