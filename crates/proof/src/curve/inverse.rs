//! Inverses modulo p by the steps of Bernstein and Yang ("Fast constant-time gcd computation and modular inversion",
//! 2019), in the form that stops early, 62 steps at a time on one word of each number.
//!
//! f = p and g = x are halved step by step until g = 0 and f = 1 or -1, while f = d x and g = e x (mod p) hold: then x's
//! inverse is d or -d. A tenth of the time of the power p - 2.

use super::field::P;

/// Seven digits of 62 bits, least first; the last has the sign.
type Digits = [i64; 7];

const LOW: u64 = u64::MAX >> 2;
const MODULUS: Digits = digits(&P);
/// 1 / p modulo 2^62.
const INVERSE: u64 = {
    // Newton: each step doubles the bits that are right, 3 at first.
    let (mut inverse, mut i) = (P[0], 0);
    while i < 5 {
        inverse = inverse.wrapping_mul(2u64.wrapping_sub(P[0].wrapping_mul(inverse)));
        i += 1;
    }
    inverse & LOW
};
/// (49 * 381 + 57) / 17 steps are enough for any number below p (Theorem 11.2 of the paper).
const ROUNDS_MAX: usize = (49 * 381 + 57) / 17 / 62 + 1;

/// What 62 steps do to f and g, times 2^62: f' = u f + v g, g' = q f + r g.
struct Steps {
    u: i64,
    v: i64,
    q: i64,
    r: i64,
}

/// 1 / x modulo p for x below p, in words, least first; 0 for 0.
pub(super) fn inverse(x: &[u64; 6]) -> [u64; 6] {
    let (mut f, mut g) = (MODULUS, digits(x));
    let (mut d, mut e) = ([0; 7], [1, 0, 0, 0, 0, 0, 0]);
    let mut eta = -1;
    for _ in 0..ROUNDS_MAX {
        if g == [0; 7] {
            break;
        }
        let steps = steps(&mut eta, f[0] as u64, g[0] as u64);
        apply_modulo_p(&steps, &mut d, &mut e);
        apply(&steps, &mut f, &mut g);
    }
    debug_assert_eq!(g, [0; 7], "the steps are enough");
    words(&normal(d, f[6] < 0))
}

/// Takes 62 steps, on the low words alone. `eta` is the negative of the paper's delta.
fn steps(eta: &mut i64, mut f: u64, mut g: u64) -> Steps {
    let (mut u, mut v, mut q, mut r) = (1u64, 0u64, 0u64, 1u64);
    let mut left = 62;
    loop {
        let zeros = (g | u64::MAX << left).trailing_zeros();
        g >>= zeros;
        u <<= zeros;
        v <<= zeros;
        *eta -= i64::from(zeros);
        left -= zeros;
        if left == 0 {
            return Steps { u: u as i64, v: v as i64, q: q as i64, r: r as i64 };
        }
        if *eta < 0 {
            *eta = -*eta;
            (f, g) = (g, f.wrapping_neg());
            (u, q) = (q, u.wrapping_neg());
            (v, r) = (r, v.wrapping_neg());
        }
        // As many bits of g may go at once as eta allows before the next swap, up to the six that `multiple` knows.
        let bits = (*eta + 1).min(i64::from(left)).min(6) as u32;
        let multiple = f.wrapping_mul(g).wrapping_mul(f.wrapping_mul(f).wrapping_sub(2)) & (u64::MAX >> (64 - bits));
        g = g.wrapping_add(f.wrapping_mul(multiple));
        q = q.wrapping_add(u.wrapping_mul(multiple));
        r = r.wrapping_add(v.wrapping_mul(multiple));
    }
}

/// (f, g) after the steps.
fn apply(steps: &Steps, f: &mut Digits, g: &mut Digits) {
    let (mut to_f, mut to_g) = (0i128, 0i128);
    for i in 0..7 {
        to_f += product(steps.u, f[i]) + product(steps.v, g[i]);
        to_g += product(steps.q, f[i]) + product(steps.r, g[i]);
        if i > 0 {
            (f[i - 1], g[i - 1]) = (low(to_f) as i64, low(to_g) as i64);
        }
        (to_f, to_g) = (to_f >> 62, to_g >> 62);
    }
    (f[6], g[6]) = (to_f as i64, to_g as i64);
}

/// (d, e) after the steps, modulo p: multiples of p make them divisible by 2^62 and keep both between -2p and p.
fn apply_modulo_p(steps: &Steps, d: &mut Digits, e: &mut Digits) {
    let (negative_d, negative_e) = (d[6] >> 63, e[6] >> 63);
    let mut of_d = (steps.u & negative_d) + (steps.v & negative_e);
    let mut of_e = (steps.q & negative_d) + (steps.r & negative_e);
    let (mut to_d, mut to_e) = (0i128, 0i128);
    for i in 0..7 {
        to_d += product(steps.u, d[i]) + product(steps.v, e[i]);
        to_e += product(steps.q, d[i]) + product(steps.r, e[i]);
        if i == 0 {
            of_d -= (INVERSE.wrapping_mul(low(to_d)).wrapping_add(of_d as u64) & LOW) as i64;
            of_e -= (INVERSE.wrapping_mul(low(to_e)).wrapping_add(of_e as u64) & LOW) as i64;
        }
        to_d += product(MODULUS[i], of_d);
        to_e += product(MODULUS[i], of_e);
        if i > 0 {
            (d[i - 1], e[i - 1]) = (low(to_d) as i64, low(to_e) as i64);
        }
        (to_d, to_e) = (to_d >> 62, to_e >> 62);
    }
    (d[6], e[6]) = (to_d as i64, to_e as i64);
}

/// d, or -d, brought from between -2p and p to between 0 and p.
fn normal(mut d: Digits, negate: bool) -> Digits {
    if d[6] < 0 {
        d = sum(&d, &MODULUS);
    }
    if negate {
        d = sum(&[0; 7], &d.map(|digit| -digit));
    }
    if d[6] < 0 { sum(&d, &MODULUS) } else { d }
}

fn sum(a: &Digits, b: &Digits) -> Digits {
    let mut carry = 0;
    core::array::from_fn(|i| {
        let digit = a[i] + b[i] + carry;
        carry = digit >> 62;
        if i == 6 { digit } else { digit & LOW as i64 }
    })
}

#[inline(always)]
fn product(a: i64, b: i64) -> i128 {
    i128::from(a) * i128::from(b)
}

fn low(number: i128) -> u64 {
    number as u64 & LOW
}

const fn digits(words: &[u64; 6]) -> Digits {
    let (mut digits, mut i) = ([0; 7], 0);
    while i < 7 {
        let (word, bit) = (62 * i / 64, 62 * i % 64);
        let mut digit = words[word] >> bit;
        if bit > 2 && word < 5 {
            digit |= words[word + 1] << (64 - bit);
        }
        digits[i] = (digit & LOW) as i64;
        i += 1;
    }
    digits
}

fn words(digits: &Digits) -> [u64; 6] {
    core::array::from_fn(|i| {
        let (digit, bit) = (64 * i / 62, 64 * i % 62);
        (digits[digit] as u64) >> bit | (digits[digit + 1] as u64) << (62 - bit)
    })
}
