//! Numbers modulo p, the order of the field under the curve.
//!
//! A number x is held as x * 2^384 mod p in six words, least first: what `blst_fp` holds, so that points go to blst and
//! come back as they are. Every value is below p at all times, so equal numbers have equal words.

use super::inverse::inverse;
use alloc::vec::Vec;

/// A number modulo p.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Fp(pub [u64; 6]);

pub(crate) const P: [u64; 6] = [
    0xb9feffffffffaaab,
    0x1eabfffeb153ffff,
    0x6730d2a0f6b0f624,
    0x64774b84f38512bf,
    0x4b1ba7b6434bacd7,
    0x1a0111ea397fe69a,
];
/// -1 / p modulo 2^64.
const MINUS_INVERSE: u64 = 0x89f3fffcfffcfffd;
/// 2^768 and 2^1152 modulo p: they carry numbers into the form held here.
const SQUARED_RADIX: Fp = Fp([
    0xf4df1f341c341746,
    0x0a76e6a609d104f1,
    0x8de5476c4c95b6d5,
    0x67eb88a9939d83c0,
    0x9a793e85b519952d,
    0x11988fe592cae3aa,
]);
const CUBED_RADIX: Fp = Fp([
    0xed48ac6bd94ca1e0,
    0x315f831e03a7adf8,
    0x9a53352a615e29dd,
    0x34c04e5e921e1761,
    0x2512d43565724728,
    0x0aa6346091755d4d,
]);

/// 2^896 modulo p, for two high words.
const HIGH_RADIX: Fp = Fp([
    0x8a7ba1b15a97350a,
    0x0c7e74327197dea9,
    0xbf0ee5ad64fb514f,
    0x8f272f5425d59a08,
    0xe50279e5b0ead8e5,
    0x0bedea03f4608a4a,
]);

/// acc + a * b + carry, as low and high word.
#[inline(always)]
const fn multiply_add(acc: u64, a: u64, b: u64, carry: u64) -> (u64, u64) {
    let sum = acc as u128 + a as u128 * b as u128 + carry as u128;
    (sum as u64, (sum >> 64) as u64)
}

/// Whether the six words, least first, are below p.
fn is_below_p(words: &[u64; 6]) -> bool {
    subtract_p(words).1
}

/// words - p, and whether it borrowed.
#[inline(always)]
fn subtract_p(words: &[u64; 6]) -> ([u64; 6], bool) {
    subtract_words(words, &P)
}

/// a + b modulo 2^384.
#[inline(always)]
fn add_words(a: &[u64; 6], b: &[u64; 6]) -> [u64; 6] {
    let mut carry = false;
    core::array::from_fn(|i| {
        let (sum, first) = a[i].overflowing_add(b[i]);
        let (sum, second) = sum.overflowing_add(carry as u64);
        carry = first | second;
        sum
    })
}

/// a - b modulo 2^384, and whether it borrowed.
#[inline(always)]
fn subtract_words(a: &[u64; 6], b: &[u64; 6]) -> ([u64; 6], bool) {
    let mut borrow = false;
    let difference = core::array::from_fn(|i| {
        let (difference, first) = a[i].overflowing_sub(b[i]);
        let (difference, second) = difference.overflowing_sub(borrow as u64);
        borrow = first | second;
        difference
    });
    (difference, borrow)
}

impl Fp {
    pub(crate) const ZERO: Fp = Fp([0; 6]);
    pub(crate) const ONE: Fp = Fp([
        0x760900000002fffd,
        0xebf4000bc40c0002,
        0x5f48985753c758ba,
        0x77ce585370525745,
        0x5c071a97a256ec6d,
        0x15f65ec3fa80e493,
    ]);

    /// The number of 48 bytes, most significant first; None if it is not below p.
    pub(crate) fn from_bytes(bytes: &[u8; 48]) -> Option<Fp> {
        let words = words_of(bytes);
        is_below_p(&words).then(|| Fp(words).multiply(&SQUARED_RADIX))
    }

    pub(crate) fn to_bytes(self) -> [u8; 48] {
        let mut bytes = [0; 48];
        let words = self.plain();
        for (place, word) in bytes.chunks_exact_mut(8).zip(words.iter().rev()) {
            place.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// The number of 64 bytes, most significant first, modulo p.
    pub(crate) fn from_wide_bytes(bytes: &[u8; 64]) -> Fp {
        let word = |i: usize| u64::from_be_bytes(core::array::from_fn(|j| bytes[56 - 8 * i + j]));
        // The low words need not be below p: as the second factor, of which a word is taken at a time, they may be.
        let low = SQUARED_RADIX.multiply(&Fp(core::array::from_fn(word)));
        // Of the high ones there are two, so two rounds of six do.
        let first = multiply_round(&[0; 6], &HIGH_RADIX.0, word(6));
        low.add(&below_p(multiply_round(&first, &HIGH_RADIX.0, word(7))))
    }

    /// The number itself, in words, least first.
    fn plain(self) -> [u64; 6] {
        let [a, b, c, d, e, f] = self.0;
        reduce([a, b, c, d, e, f, 0, 0, 0, 0, 0, 0]).0
    }

    pub(crate) fn is_zero(&self) -> bool {
        *self == Fp::ZERO
    }

    /// sgn0 of RFC 9380.
    pub(crate) fn is_odd(&self) -> bool {
        self.plain()[0] & 1 == 1
    }

    #[inline]
    pub(crate) fn add(&self, other: &Fp) -> Fp {
        // p is below 2^381, so nothing is carried out.
        below_p(add_words(&self.0, &other.0))
    }

    #[inline]
    pub(crate) fn double(&self) -> Fp {
        self.add(self)
    }

    #[inline]
    pub(crate) fn subtract(&self, other: &Fp) -> Fp {
        let (difference, borrow) = subtract_words(&self.0, &other.0);
        let mask = 0u64.wrapping_sub(borrow as u64);
        Fp(add_words(&difference, &P.map(|word| word & mask)))
    }

    pub(crate) fn negate(&self) -> Fp {
        Fp::ZERO.subtract(self)
    }

    /// The product: a word of `other` at a time, reduced as it goes. What is held on the way stays below this + p, so
    /// the two carries of a round never overflow one word together as long as this is below p; `other` may be any six
    /// words.
    #[inline]
    pub(crate) fn multiply(&self, other: &Fp) -> Fp {
        let (a, b) = (&self.0, &other.0);
        let mut r = multiply_round(&[0; 6], a, b[0]);
        for word in &b[1..] {
            r = multiply_round(&r, a, *word);
        }
        below_p(r)
    }

    #[inline]
    pub(crate) fn square(&self) -> Fp {
        self.multiply(self)
    }

    /// This to the power of a number of six words, least first.
    fn power(&self, exponent: &[u64; 6]) -> Fp {
        let mut powers = [Fp::ONE; 16];
        for i in 1..16 {
            powers[i] = powers[i - 1].multiply(self);
        }
        let mut result = Fp::ONE;
        for i in (0..96).rev() {
            for _ in 0..4 {
                result = result.square();
            }
            let digit = exponent[i / 16] >> (4 * (i % 16)) & 15;
            if digit != 0 {
                result = result.multiply(&powers[digit as usize]);
            }
        }
        result
    }

    /// 1 / x, and 0 for 0.
    pub(crate) fn invert(&self) -> Fp {
        // What is inverted is x * 2^384; the product takes 2^384 twice and gives it once.
        CUBED_RADIX.multiply(&Fp(inverse(&self.0)))
    }

    /// x to the power of (p - 3) / 4: 1 / root(x) for a square x.
    pub(crate) fn inverse_root(&self) -> Fp {
        let mut exponent = [0; 6];
        for i in 0..6 {
            exponent[i] = P[i] >> 2 | P.get(i + 1).map_or(0, |above| above << 62);
        }
        self.power(&exponent)
    }
}

/// Inverts all numbers with one inversion. None may be 0; `scratch` is for the products on the way.
pub(crate) fn invert_all(numbers: &mut [Fp], scratch: &mut Vec<Fp>) {
    scratch.clear();
    let mut product = Fp::ONE;
    for number in numbers.iter() {
        scratch.push(product);
        product = product.multiply(number);
    }
    debug_assert!(!product.is_zero(), "a batch to invert holds no zero");
    let mut inverse = product.invert();
    for (number, before) in numbers.iter_mut().zip(scratch.iter()).rev() {
        let next = inverse.multiply(number);
        *number = inverse.multiply(before);
        inverse = next;
    }
}

/// (r + a * b + k * p) / 2^64, with the k that leaves no remainder. One carry at a time is what compilers do well: this
/// takes a tenth less than adding both products in one pass.
#[inline(always)]
fn multiply_round(r: &[u64; 6], a: &[u64; 6], b: u64) -> [u64; 6] {
    let mut carry = 0;
    let sum: [u64; 6] = core::array::from_fn(|i| {
        let word;
        (word, carry) = multiply_add(r[i], a[i], b, carry);
        word
    });
    let k = sum[0].wrapping_mul(MINUS_INVERSE);
    let (_, mut over) = multiply_add(sum[0], k, P[0], 0);
    core::array::from_fn(|i| {
        if i == 5 {
            return carry + over;
        }
        let word;
        (word, over) = multiply_add(sum[i + 1], k, P[i + 1], over);
        word
    })
}

/// A value below 2p, brought below p.
#[inline(always)]
fn below_p(words: [u64; 6]) -> Fp {
    let (reduced, borrow) = subtract_p(&words);
    Fp(if borrow { words } else { reduced })
}

/// words / 2^384 modulo p, for words below 2^384 * p.
fn reduce(mut words: [u64; 12]) -> Fp {
    let mut over = 0;
    for i in 0..6 {
        let (k, mut carry) = (words[i].wrapping_mul(MINUS_INVERSE), 0);
        for j in 0..6 {
            (words[i + j], carry) = multiply_add(words[i + j], k, P[j], carry);
        }
        (words[i + 6], over) = multiply_add(words[i + 6], over, 1, carry);
    }
    below_p(core::array::from_fn(|i| words[i + 6]))
}

fn words_of(bytes: &[u8; 48]) -> [u64; 6] {
    core::array::from_fn(|i| u64::from_be_bytes(core::array::from_fn(|j| bytes[40 - 8 * i + j])))
}
