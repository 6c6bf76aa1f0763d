//! Numbers modulo n^2 as two digits to the base n, in the manner of Montgomery.
//!
//! ```text
//! number = low + high n,   low, high < n < R = 2^(64 limbs) < 2n            limbs: the lowest first; low | high in one slice
//! x y / R  modulo n^2:     low  = (x.low y.low + u n) / R                    u: what makes it whole, kept from row to row
//!                          high = (x.low y.high + x.high y.low - u) / R      modulo n
//! ```
//! 1. Ordinary Montgomery multiplication modulo n^2 takes 8 products of a digit's width (four to multiply, four to reduce); this
//!    takes 5. So a sum of ciphertexts costs five eighths, and powers modulo the squares of both primes do likewise.
//! 2. What happens depends on widths and never on values: no branch and no address comes from them.
//! 3. Every result is below n in both digits.

use std::hint::black_box;

use crypto_bigint::{BoxedUint, ConcatenatingMul as _, NonZero};
use zeroize::Zeroizing;

/// Bits that an exponent is worked off by.
pub(super) const WINDOW_BITS: usize = 4;
/// Powers that are kept for a window.
pub(super) const WINDOW: usize = 1 << WINDOW_BITS;

/// Limbs that are a secret, or may be.
pub(super) type Limbs = Zeroizing<Vec<u64>>;

/// An odd number whose highest limb begins with a one, and what arithmetic modulo it and its square needs.
pub(super) struct Modulus {
    n: Limbs,
    /// What times n is -1 modulo 2^64.
    inverse: u64,
    /// R modulo n^2: one, as it is multiplied.
    one: Limbs,
    /// R^2 modulo n^2: its product with a number is the number as it is multiplied. Its low digit does that modulo n.
    square: Limbs,
}

impl Modulus {
    /// Of limbs, the lowest first; none: it is even, or does not fill them.
    pub(super) fn new(n: &[u64]) -> Option<Self> {
        let (first, last) = (*n.first()?, *n.last()?);
        if first & 1 == 0 || last >> 63 == 0 {
            return None;
        }
        let mut modulus = Self {
            n: Zeroizing::new(n.to_vec()),
            inverse: negative_inverse(first),
            one: Limbs::default(),
            square: Limbs::default(),
        };
        // R is n and a rest, since it is less than two of it.
        let mut one = vec![0; 2 * n.len()];
        let mut borrow = false;
        for (to, own) in one.iter_mut().zip(n) {
            (*to, borrow) = 0_u64.borrowing_sub(*own, borrow);
        }
        one[n.len()] = 1;
        modulus.one = Zeroizing::new(one);
        modulus.square = modulus.square_of_r()?;
        Some(modulus)
    }

    /// How many limbs a digit has.
    pub(super) fn width(&self) -> usize {
        self.n.len()
    }

    /// The modulus itself.
    pub(super) fn limbs(&self) -> &[u64] {
        &self.n
    }

    /// See the field.
    pub(super) fn square(&self) -> &[u64] {
        &self.square
    }

    fn square_of_r(&self) -> Option<Limbs> {
        let width = self.width();
        let n = boxed(&self.n);
        let mut whole = vec![0; 2 * width + 1];
        whole[2 * width] = 1;
        let squared = Option::<NonZero<BoxedUint>>::from(NonZero::new(n.concatenating_mul(&n)))?;
        self.split(&boxed(&whole).rem(&squared))
    }

    /// A number as digits; none: it is not below n^2.
    pub(super) fn split(&self, number: &BoxedUint) -> Option<Limbs> {
        let n = Option::<NonZero<BoxedUint>>::from(NonZero::new(boxed(&self.n)))?;
        let (high, low) = number.div_rem(&n);
        let mut digits = Zeroizing::new(vec![0; 2 * self.width()]);
        let (to_low, to_high) = digits.split_at_mut(self.width());
        let fits = copy(low.as_words(), to_low) && copy(high.as_words(), to_high) && is_less(to_high, &self.n);
        fits.then_some(digits)
    }

    /// `x y / R` modulo n, where x may be any number of the width and y is below n.
    pub(super) fn product(&self, x: &[u64], y: &[u64]) -> Limbs {
        let mut sum = vec![0; self.width() + 1];
        self.lower(x, y, &mut sum, |_, _| {});
        sum.truncate(self.width());
        Zeroizing::new(sum)
    }

    /// `x y / R` modulo n in `sum`, which is nought before and has one limb more; and whether n was taken away at the end.
    fn lower(&self, x: &[u64], y: &[u64], sum: &mut [u64], mut quotient: impl FnMut(usize, u64)) -> u64 {
        for (at, x) in x.iter().enumerate() {
            let first = sum[0].wrapping_add(x.wrapping_mul(y[0]));
            let own = first.wrapping_mul(self.inverse);
            quotient(at, own);
            row([*x, own], [y, &self.n], sum);
        }
        self.subtract_once(sum)
    }

    /// `x y / R` modulo n^2.
    pub(super) fn multiply(&self, x: &[u64], y: &[u64], work: &mut Work) {
        let width = self.width();
        let ((x_low, x_high), (y_low, y_high)) = (x.split_at(width), y.split_at(width));
        work.sum.fill(0);
        let over = {
            let Work { sum, quotients, .. } = work;
            self.lower(x_low, y_low, sum, |at, own| quotients[at] = own)
        };
        work.product[..width].copy_from_slice(&work.sum[..width]);
        self.begin_high(over, work);
        let sum = &mut work.sum[..];
        for (low, high) in x_low.iter().zip(x_high) {
            let first = sum[0].wrapping_add(low.wrapping_mul(y_high[0])).wrapping_add(high.wrapping_mul(y_low[0]));
            row([*low, *high, first.wrapping_mul(self.inverse)], [y_high, y_low, &self.n], sum);
        }
        // Less than three times n.
        self.subtract_once(sum);
        self.subtract_once(sum);
        work.product[width..].copy_from_slice(&sum[..width]);
    }

    /// What the low digit leaves for the high one, and never less than nought: `2n - u`, and R if n was taken away.
    fn begin_high(&self, over: u64, work: &mut Work) {
        let (mut carry, mut borrow) = (0, false);
        for ((to, n), own) in work.sum.iter_mut().zip(self.n.iter()).zip(work.quotients.iter()) {
            let twice = n << 1 | carry;
            carry = n >> 63;
            (*to, borrow) = twice.borrowing_sub(*own, borrow);
        }
        work.sum[self.width()] = carry.wrapping_sub(u64::from(borrow)).wrapping_add(over);
    }

    /// Takes n away if that leaves something; whether it did, 1 or 0.
    fn subtract_once(&self, sum: &mut [u64]) -> u64 {
        let mut borrow = false;
        for (own, n) in sum.iter().zip(self.n.iter()) {
            (_, borrow) = own.borrowing_sub(*n, borrow);
        }
        let (_, less) = sum[self.width()].borrowing_sub(0, borrow);
        let taken = black_box(u64::from(!less));
        let mask = taken.wrapping_neg();
        borrow = false;
        for (own, n) in sum.iter_mut().zip(self.n.iter()) {
            (*own, borrow) = own.borrowing_sub(n & mask, borrow);
        }
        sum[self.width()] = sum[self.width()].wrapping_sub(u64::from(borrow));
        taken
    }

    /// What is left of a number of one width, or of two.
    pub(super) fn remainder(&self, number: &[u64]) -> Limbs {
        let width = self.width();
        let (low, high) = number.split_at(width.min(number.len()));
        let low = self.product(low, &self.one[..width]);
        if high.is_empty() { low } else { self.add(&low, &self.product(high, &self.square[..width])) }
    }

    /// The sum of two numbers below n, modulo it.
    pub(super) fn add(&self, x: &[u64], y: &[u64]) -> Limbs {
        let mut sum = vec![0; self.width() + 1];
        let mut carry = false;
        for ((to, x), y) in sum.iter_mut().zip(x).zip(y) {
            (*to, carry) = x.carrying_add(*y, carry);
        }
        sum[self.width()] = u64::from(carry);
        self.subtract_once(&mut sum);
        sum.truncate(self.width());
        Zeroizing::new(sum)
    }

    /// What a number below n lacks to n, or nought for nought.
    pub(super) fn negative(&self, x: &[u64]) -> Limbs {
        let mut difference = vec![0; self.width() + 1];
        let mut borrow = false;
        for ((to, n), x) in difference.iter_mut().zip(self.n.iter()).zip(x) {
            (*to, borrow) = n.borrowing_sub(*x, borrow);
        }
        self.subtract_once(&mut difference);
        difference.truncate(self.width());
        Zeroizing::new(difference)
    }

    /// The power of a number, which like the power is as it is multiplied. The exponent's width shows, and nothing else of it.
    pub(super) fn power(&self, base: &[u64], exponent: &[u64]) -> Limbs {
        let mut work = Work::new(self.width());
        let powers = self.powers(base, &mut work);
        let (mut power, mut chosen) = (self.one.clone(), Zeroizing::new(vec![0; base.len()]));
        for window in windows(exponent).rev() {
            for _ in 0..WINDOW_BITS {
                self.multiply(&power, &power, &mut work);
                power.copy_from_slice(&work.product);
            }
            select(&powers, window, &mut chosen);
            self.multiply(&power, &chosen, &mut work);
            power.copy_from_slice(&work.product);
        }
        power
    }

    /// The powers of a number from 0 on, a window full, one behind the other.
    pub(super) fn powers(&self, base: &[u64], work: &mut Work) -> Limbs {
        let mut powers = Zeroizing::new(Vec::with_capacity(WINDOW * base.len()));
        powers.extend_from_slice(&self.one);
        for at in 1..WINDOW {
            self.multiply(&powers[(at - 1) * base.len()..], base, work);
            powers.extend_from_slice(&work.product);
        }
        powers
    }
}

/// Where a multiplication works, and what it leaves.
pub(super) struct Work {
    sum: Limbs,
    quotients: Limbs,
    /// The product.
    pub(super) product: Limbs,
}

impl Work {
    /// For digits of a width.
    pub(super) fn new(width: usize) -> Self {
        let zeros = |limbs| Zeroizing::new(vec![0; limbs]);
        Self { sum: zeros(width + 1), quotients: zeros(width), product: zeros(2 * width) }
    }
}

/// Adds products to a sum and moves it one limb down: the caller chose the scalars so that the lowest limb becomes nought.
#[inline(always)]
fn row<const PRODUCTS: usize>(scalars: [u64; PRODUCTS], vectors: [&[u64]; PRODUCTS], sum: &mut [u64]) {
    let Some(top) = sum.len().checked_sub(1) else { return };
    let vectors = vectors.map(|vector| &vector[..top]);
    // Each product carries for itself, so that none waits for another. The first limb becomes nought, but for what it carries.
    let mut carries = [0_u64; PRODUCTS];
    let mut limb = sum[0];
    for product in 0..PRODUCTS {
        (limb, carries[product]) = scalars[product].carrying_mul_add(vectors[product][0], limb, 0);
    }
    for at in 1..top {
        let mut limb = sum[at];
        for product in 0..PRODUCTS {
            (limb, carries[product]) = scalars[product].carrying_mul_add(vectors[product][at], limb, carries[product]);
        }
        sum[at - 1] = limb;
    }
    let last = u128::from(sum[top]) + carries.iter().map(|carry| u128::from(*carry)).sum::<u128>();
    (sum[top - 1], sum[top]) = (last as u64, (last >> 64) as u64);
}

/// The entry of a window, whose place in the table shows nowhere: all are read.
pub(super) fn select(entries: &[u64], chosen: usize, to: &mut [u64]) {
    to.fill(0);
    for (at, entry) in entries.chunks_exact(to.len()).enumerate() {
        let differs = (at ^ chosen) as u64;
        // All ones where nothing differs.
        let mask = black_box(((differs | differs.wrapping_neg()) >> 63).wrapping_sub(1));
        to.iter_mut().zip(entry).for_each(|(to, own)| *to |= own & mask);
    }
}

/// The windows of an exponent, the lowest first.
pub(super) fn windows(exponent: &[u64]) -> impl DoubleEndedIterator<Item = usize> {
    let windows_of_limb = 64 / WINDOW_BITS;
    (0..exponent.len() * windows_of_limb)
        .map(move |at| (exponent[at / windows_of_limb] >> (at % windows_of_limb * WINDOW_BITS)) as usize & (WINDOW - 1))
}

/// `x y + z`, which has as many limbs as x and y together.
pub(super) fn multiply_add(x: &[u64], y: &[u64], z: &[u64]) -> Limbs {
    let mut sum = Zeroizing::new(vec![0; x.len() + y.len()]);
    sum[..z.len()].copy_from_slice(z);
    for (at, x) in x.iter().enumerate() {
        let mut carry = 0;
        for (to, y) in sum[at..].iter_mut().zip(y.iter().chain(std::iter::repeat(&0))) {
            (*to, carry) = x.carrying_mul_add(*y, *to, carry);
        }
    }
    sum
}

/// Limbs as a number of the library.
pub(super) fn boxed(limbs: &[u64]) -> BoxedUint {
    BoxedUint::from_words(limbs.iter().copied())
}

/// Copies a number into as many limbs or more; whether it fits.
pub(super) fn copy(from: &[u64], to: &mut [u64]) -> bool {
    let width = from.len().min(to.len());
    to.fill(0);
    to[..width].copy_from_slice(&from[..width]);
    from[width..].iter().all(|limb| *limb == 0)
}

/// Limbs of bytes, the highest first; none unless they are whole limbs.
pub(super) fn from_bytes(bytes: &[u8]) -> Option<Limbs> {
    let (limbs, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| Zeroizing::new(limbs.iter().rev().map(|limb| u64::from_be_bytes(*limb)).collect()))
}

/// The bytes of limbs, the highest first.
pub(super) fn to_bytes(limbs: &[u64], bytes: &mut Vec<u8>) {
    limbs.iter().rev().for_each(|limb| bytes.extend_from_slice(&limb.to_be_bytes()));
}

/// Whether a number is less than another one of the same width. Of what is no secret.
pub(super) fn is_less(x: &[u64], y: &[u64]) -> bool {
    x.iter().rev().lt(y.iter().rev())
}

/// What times an odd number is -1 modulo 2^64, by Newton: each step doubles the bits that are right.
fn negative_inverse(odd: u64) -> u64 {
    let mut inverse = odd;
    for _ in 0..5 {
        inverse = inverse.wrapping_mul(2_u64.wrapping_sub(odd.wrapping_mul(inverse)));
    }
    inverse.wrapping_neg()
}
