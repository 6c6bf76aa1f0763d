//! The keys: n, which whoever adds has, and its primes, which the owner keeps.

use crypto_bigint::{BoxedUint, Gcd as _, Limb, NonZero, Odd};
use crypto_primes::{Flavor, is_prime};
use hmac::Mac as _;
use zeroize::Zeroizing;

use super::Unusable;
use super::digits::{self, Limbs, Modulus, Work};
use super::sum::Ciphertext;
use crate::keys::Secret;

/// Bits of a key unless others are asked for.
pub const KEY_BITS_DEFAULT: usize = 3072;
/// Bits of the smallest key that is taken.
pub const KEY_BITS_MIN: usize = 2048;
/// Bits of the greatest key that is taken.
pub const KEY_BITS_MAX: usize = 4096;

/// Primes below this number are tried before anything dearer is.
const TRIED_BELOW: u64 = 1 << 12;

/// What adds ciphertexts and reads none.
pub struct PublicKey {
    pub(super) modulus: Modulus,
}

/// What encrypts and reads: the owner's. Never printed, overwritten when dropped.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_disperse::coding::paillier::PrivateKey>();
/// ```
pub struct PrivateKey {
    public: PublicKey,
    pub(super) p: Half,
    pub(super) q: Half,
}

/// One of the primes, and what is asked of the other modulo it.
pub(super) struct Half {
    pub(super) modulus: Modulus,
    /// The other prime, as it is multiplied, and that times R once more.
    other: [Limbs; 2],
    /// What times the other prime is one, as it is multiplied.
    inverse: Limbs,
}

impl PublicKey {
    /// From the bytes of n, the highest first: from anybody.
    ///
    /// # Errors
    /// [`Unusable::KeyBits`], [`Unusable::Key`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unusable> {
        check_bits(bytes.len().saturating_mul(8))?;
        let limbs = digits::from_bytes(bytes).ok_or(Unusable::Key)?;
        Ok(Self { modulus: Modulus::new(&limbs).ok_or(Unusable::Key)? })
    }

    /// The bytes of n, the highest first.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bits() / 8);
        digits::to_bytes(self.modulus.limbs(), &mut bytes);
        bytes
    }

    /// How many bits n has.
    #[must_use]
    pub fn bits(&self) -> usize {
        self.modulus.width() * 64
    }
}

impl PrivateKey {
    /// The key that a secret gives: the same each time, so that who has the secret can have the key again. Takes about a second.
    ///
    /// # Errors
    /// [`Unusable::KeyBits`].
    pub fn generate(secret: &Secret, bits: usize) -> Result<Self, Unusable> {
        check_bits(bits)?;
        let p = primes(secret, 0, bits / 2).next().ok_or(Unusable::Key)?;
        // With no factor but 2 in common, powers of squares run through as many numbers as can be.
        let fits = |q: &Limbs| **q != *p && is_common_two(&p, q);
        let q = primes(secret, 1, bits / 2).find(fits).ok_or(Unusable::Key)?;
        Self::of(&p, &q)
    }

    /// From bytes that [`PrivateKey::to_bytes`] gave, or from primes of another program: p, then as many bytes of q.
    ///
    /// # Errors
    /// [`Unusable::KeyBits`], [`Unusable::Key`]: they are not two primes that fit.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Unusable> {
        check_bits(bytes.len().saturating_mul(8))?;
        let (p, q) = bytes.split_at(bytes.len() / 2);
        let (p, q) = (digits::from_bytes(p).ok_or(Unusable::Key)?, digits::from_bytes(q).ok_or(Unusable::Key)?);
        if *p == *q || !is_prime(Flavor::Any, &digits::boxed(&p)) || !is_prime(Flavor::Any, &digits::boxed(&q)) {
            return Err(Unusable::Key);
        }
        Self::of(&p, &q)
    }

    /// The primes, for whoever keeps them sealed.
    #[must_use]
    pub fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let mut bytes = Zeroizing::new(Vec::with_capacity(self.public.bits() / 8));
        digits::to_bytes(self.p.modulus.limbs(), &mut bytes);
        digits::to_bytes(self.q.modulus.limbs(), &mut bytes);
        bytes
    }

    /// What is given to whoever adds.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Whether exponents may be short: squares of the key run through as many numbers as such exponents count on.
    pub(super) fn takes_short_exponents(&self) -> bool {
        let (p, q) = (self.p.modulus.limbs(), self.q.modulus.limbs());
        p[0] & 3 == 3 && q[0] & 3 == 3 && is_common_two(p, q)
    }

    fn of(p: &[u64], q: &[u64]) -> Result<Self, Unusable> {
        let n = digits::multiply_add(p, q, &[]);
        let public = PublicKey { modulus: Modulus::new(&n).ok_or(Unusable::Key)? };
        Ok(Self { public, p: Half::new(p, q)?, q: Half::new(q, p)? })
    }

    /// The number of a ciphertext, below n.
    ///
    /// # Errors
    /// [`Unusable::NotEncrypted`], [`Unusable::OtherKey`].
    pub(super) fn decrypt(&self, ciphertext: &Ciphertext) -> Result<Limbs, Unusable> {
        if ciphertext.digits().len() != 2 * self.public.modulus.width() {
            return Err(Unusable::OtherKey);
        }
        let (low, high) = ciphertext.digits().split_at(self.public.modulus.width());
        let (low_p, low_q) = (self.p.modulus.remainder(low), self.q.modulus.remainder(low));
        let p = self.p.decrypt(&low_p, &self.q.quotient(&low_q, &low_p), high)?;
        let q = self.q.decrypt(&low_q, &self.p.quotient(&low_p, &low_q), high)?;
        Ok(self.join(&p, &q))
    }

    /// The number below n that leaves these modulo p and q.
    pub(super) fn join(&self, p: &[u64], q: &[u64]) -> Limbs {
        digits::multiply_add(self.q.modulus.limbs(), &self.p.quotient(p, q), q)
    }
}

impl Half {
    fn new(own: &[u64], other: &[u64]) -> Result<Self, Unusable> {
        let modulus = Modulus::new(own).ok_or(Unusable::Key)?;
        let to_form = &modulus.square()[..own.len()];
        let rest = modulus.remainder(other);
        let odd = Option::<Odd<BoxedUint>>::from(Odd::new(digits::boxed(own))).ok_or(Unusable::Key)?;
        let inverse = Option::<BoxedUint>::from(digits::boxed(&rest).invert_odd_mod(&odd)).ok_or(Unusable::Key)?;
        let inverse = modulus.product(inverse.as_words(), to_form);
        let once = modulus.product(&rest, to_form);
        let twice = modulus.product(&once, to_form);
        Ok(Self { modulus, other: [once, twice], inverse })
    }

    /// A number of two widths, times the other prime, modulo this one.
    pub(super) fn times_other(&self, number: &[u64]) -> Limbs {
        let (low, high) = number.split_at(self.modulus.width());
        let [once, twice] = &self.other;
        self.modulus.add(&self.modulus.product(low, once), &self.modulus.product(high, twice))
    }

    /// `(own - other) / the other prime`, modulo this one, of what a number leaves modulo both: how often the other prime is in it.
    pub(super) fn quotient(&self, own: &[u64], other: &[u64]) -> Limbs {
        let other = self.modulus.negative(&self.modulus.remainder(other));
        self.over_other(&self.modulus.add(own, &other))
    }

    /// A number below this prime, divided by the other one.
    pub(super) fn over_other(&self, number: &[u64]) -> Limbs {
        self.modulus.product(number, &self.inverse)
    }

    /// The number of a ciphertext `low + high n` modulo this prime, where low is `own + carried` times this prime.
    fn decrypt(&self, own: &[u64], carried: &[u64], high: &[u64]) -> Result<Limbs, Unusable> {
        let modulus = &self.modulus;
        let width = modulus.width();
        // n is both primes: modulo this one's square, high n is high times the other prime, a digit up.
        let mut number = Zeroizing::new(own.to_vec());
        number.extend_from_slice(&modulus.add(&modulus.remainder(carried), &self.times_other(high)));
        let mut work = Work::new(width);
        modulus.multiply(&number, modulus.square(), &mut work);
        let mut exponent = Zeroizing::new(modulus.limbs().to_vec());
        exponent[0] -= 1;
        let power = modulus.power(&work.product, &exponent);
        let mut one = vec![0; 2 * width];
        one[0] = 1;
        modulus.multiply(&power, &one, &mut work);
        // (1 + m n)^(p - 1) = 1 - m n modulo the square, and what hid it has become one.
        let (unit, shown) = work.product.split_at(width);
        if unit != &one[..width] {
            return Err(Unusable::NotEncrypted);
        }
        Ok(self.over_other(&modulus.negative(shown)))
    }
}

fn check_bits(bits: usize) -> Result<(), Unusable> {
    // Each prime has whole limbs.
    let is_taken = (KEY_BITS_MIN..=KEY_BITS_MAX).contains(&bits) && bits.is_multiple_of(128);
    if is_taken { Ok(()) } else { Err(Unusable::KeyBits(bits)) }
}

/// The primes of so many bits that a secret gives, in the order in which they come: of the number `of`, first or second.
fn primes(secret: &Secret, of: u8, bits: usize) -> impl Iterator<Item = Limbs> {
    let sieve = Sieve::new();
    let candidates = (0..=u32::MAX).map(move |at| candidate(secret, of, at, bits / 64));
    candidates.filter(move |candidate| sieve.passes(candidate) && is_prime(Flavor::Any, &digits::boxed(candidate)))
}

/// A number that is pseudo-random but for its two highest bits, so that n fills its own, and for its two lowest: it is 3 modulo 4.
fn candidate(secret: &Secret, of: u8, at: u32, limbs: usize) -> Limbs {
    let mut bytes = Zeroizing::new(expand(secret, &[b"prime", &[of], &at.to_be_bytes()], limbs * 8));
    bytes[0] |= 0xC0;
    bytes[limbs * 8 - 1] |= 3;
    let Some(candidate) = digits::from_bytes(&bytes) else { unreachable!("whole limbs") };
    candidate
}

/// So many bytes that a secret gives for a label: HMAC-SHA256 of the label and a counter of one byte, one behind the other.
pub(super) fn expand(secret: &Secret, label: &[&[u8]], count: usize) -> Vec<u8> {
    let block = |counter: u8| {
        let mut mac = secret.mac();
        label.iter().for_each(|part| mac.update(part));
        mac.update(&[counter]);
        mac.finalize().into_bytes()
    };
    let mut bytes: Vec<u8> = (0..=u8::MAX).take(count.div_ceil(32)).flat_map(block).collect();
    bytes.truncate(count);
    bytes
}

/// Whether p - 1 and q - 1 have no factor but 2 in common.
fn is_common_two(p: &[u64], q: &[u64]) -> bool {
    let less_one = |prime: &[u64]| {
        let mut limbs = Zeroizing::new(prime.to_vec());
        limbs[0] -= 1;
        digits::boxed(&limbs)
    };
    less_one(p).gcd(&less_one(q)) == BoxedUint::from(2_u64)
}

/// Small primes, multiplied as far as a limb goes: one long division tries several.
struct Sieve(Vec<(NonZero<Limb>, Vec<u64>)>);

impl Sieve {
    fn new() -> Self {
        let mut groups: Vec<(u64, Vec<u64>)> = Vec::new();
        for prime in
            (3..TRIED_BELOW).step_by(2).filter(|number| (3..64).step_by(2).all(|of| of >= *number || number % of > 0))
        {
            match groups.last_mut().and_then(|(product, primes)| Some((product.checked_mul(prime)?, product, primes))) {
                Some((whole, product, primes)) => {
                    *product = whole;
                    primes.push(prime);
                }
                None => groups.push((prime, vec![prime])),
            }
        }
        let divisor = |product: u64| Option::from(NonZero::new(Limb(product)));
        Self(groups.into_iter().filter_map(|(product, primes)| Some((divisor(product)?, primes))).collect())
    }

    /// Whether no small prime divides a number.
    fn passes(&self, number: &[u64]) -> bool {
        let number = digits::boxed(number);
        self.0.iter().all(|(product, primes)| {
            let rest = number.rem_limb(*product).0;
            primes.iter().all(|prime| !rest.is_multiple_of(*prime))
        })
    }
}
