//! Numbers as codes in the same order (Boldyreva, Chenette, Lee and O'Neill, "Order-Preserving Symmetric Encryption", 2009). `danger`:
//! the whole order shows at rest, and much of the numbers with it.
//!
//! ```text
//! code      = a number of 96 bits, 12 bytes, the highest first: its bytes are ordered as the numbers of 64 bits are
//! node      = how many of all codes begin so: 2^(96 - level); and how many numbers have theirs among them
//! at a node = of its numbers, so many have codes in the lower half as a hypergeometric draw says; then the half where the number is
//! at last   = one number: its code is any of those that are left
//! coins     = AES-256(key of column; level u8 (with 80 at last) | first code of the node [12] | counter u24), ...
//! ```
//! 1. Draws are integers between nought and as many as there are, whatever the coins: so codes are in order always, and every code
//!    leads back to its number. Nothing is a floating-point number: they are the same everywhere.
//! 2. Draws of up to 1024 numbers (or gaps between codes) are exact, one by one; of more they are of the normal distribution, rounded,
//!    which is within about a ten-thousandth of the hypergeometric one there. Order does not depend on it, nor does any claim.
//! 3. Whoever holds codes learns the order of all values, which are equal, how often each comes, and about the upper half of each
//!    number's bits (Boldyreva, Chenette and O'Neill, 2011). The first 64 bits of a code are the number but for some noise, least at
//!    the ends: one key has 1e5 hexadecimal there for 500, which is 1f4. Ages and the like are read off (Naveed and others, 2015). [`super::orders`] shows none of that at rest. So this is never taken unless somebody says `danger`.
//! 4. The code is of the whole number, at each provider that has it: of a number cut in fragments the code of a narrow one is that fragment.

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};

use crate::keys::Secret;

/// Bits of a code.
const CODE_BITS: u32 = 96;
/// Bytes of a code.
pub const CODE_BYTES: usize = 12;
/// So many draws are made one by one.
const EXACT_MAX: u128 = 1024;
/// Draws of one kind that fail before the next best is taken: each fails less than every other time.
const DRAWS_MAX: usize = 128;

/// A code.
pub type Code = [u8; CODE_BYTES];

/// Bytes that are no code of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoCode;

/// What makes codes of a column that are in the order of its numbers.
pub struct DangerOrders {
    cipher: Aes256,
}

/// Codes that begin alike, and the numbers that have theirs among them.
#[derive(Clone, Copy)]
struct Node {
    level: u32,
    first_code: u128,
    first_number: u64,
    numbers: u128,
}

impl DangerOrders {
    /// Codes under a column's key.
    #[must_use]
    pub fn new(key: &Secret) -> Self {
        Self { cipher: Aes256::new(&Array(*key.expose())) }
    }

    /// The code of a number.
    #[must_use]
    pub fn code(&self, number: u64) -> Code {
        let mut node = Node::root();
        while node.numbers > 1 {
            let (lower, upper) = self.halves(node);
            node = if u128::from(number) < u128::from(lower.first_number) + lower.numbers { lower } else { upper };
        }
        let code = self.last(node).to_be_bytes();
        std::array::from_fn(|at| code[16 - CODE_BYTES + at])
    }

    /// The number of a code.
    ///
    /// # Errors
    /// [`NoCode`].
    pub fn number(&self, code: &Code) -> Result<u64, NoCode> {
        let mut whole = [0; 16];
        whole[16 - CODE_BYTES..].copy_from_slice(code);
        let whole = u128::from_be_bytes(whole);
        let mut node = Node::root();
        while node.numbers > 1 {
            let (lower, upper) = self.halves(node);
            node = if whole < upper.first_code { lower } else { upper };
        }
        if node.numbers == 1 && self.last(node) == whole { Ok(node.first_number) } else { Err(NoCode) }
    }

    fn halves(&self, node: Node) -> (Node, Node) {
        let half = node.codes() / 2;
        let lower_numbers = self.lower(node, half);
        let level = node.level + 1;
        // Of all numbers none is behind the last: where the upper half has none, it does not matter which is its first.
        let first_number = (u128::from(node.first_number) + lower_numbers) as u64;
        let lower = Node { level, numbers: lower_numbers, ..node };
        let upper =
            Node { level, first_code: node.first_code + half, first_number, numbers: node.numbers - lower_numbers };
        (lower, upper)
    }

    /// How many numbers have codes in the lower half: never more than there are, nor than it has codes, and never so few that the upper
    /// half has fewer codes than numbers.
    fn lower(&self, node: Node, half: u128) -> u128 {
        let mut coins = Coins::new(&self.cipher, node, 0);
        let gaps = node.codes() - node.numbers;
        if gaps < node.numbers {
            half - drawn(&mut coins, node.codes(), gaps)
        } else {
            drawn(&mut coins, node.codes(), node.numbers)
        }
    }

    /// The code of the one number of a node.
    fn last(&self, node: Node) -> u128 {
        node.first_code + Coins::new(&self.cipher, node, 0x80).below(node.codes())
    }
}

impl Node {
    fn root() -> Self {
        Self { level: 0, first_code: 0, first_number: 0, numbers: 1 << 64 }
    }

    /// How many codes it has.
    fn codes(self) -> u128 {
        1 << (CODE_BITS - self.level)
    }
}

/// Of so many things among `of` places, at most half as many, how many are in the first half of the places.
fn drawn(coins: &mut Coins, of: u128, things: u128) -> u128 {
    if things > EXACT_MAX {
        return normal(coins, of, things);
    }
    let (mut left, mut places, mut drawn) = (of / 2, of, 0);
    for _ in 0..things {
        let is_lower = coins.below(places) < left;
        drawn += u128::from(is_lower);
        left -= u128::from(is_lower);
        places -= 1;
    }
    drawn
}

/// The same for many things: their mean and a normal number of standard deviations, rounded.
fn normal(coins: &mut Coins, of: u128, things: u128) -> u128 {
    // The variance is things / 4 (of - things) / (of - 1). Shifted up as far as it goes, the quotient loses nothing that shows.
    let shift = (of - things).leading_zeros();
    let variance = things * (((of - things) << shift) / (of - 1));
    // In units of 2^-64, so that its root is in units of 2^-32.
    let variance = if shift + 2 > 64 { variance >> (shift + 2 - 64) } else { variance << (64 - 2 - shift) };
    let deviation = variance.isqrt() as i128;
    // Units of 2^-72, of which a half more rounds; the mean is a half of all things.
    let moved = deviation * coins.normal() + ((things as i128 & 1) << 71) + (1 << 71);
    let number = (things / 2) as i128 + (moved >> 72);
    number.clamp(0, things as i128) as u128
}

/// What is drawn at a node.
struct Coins<'c> {
    cipher: &'c Aes256,
    node: u128,
    counter: u32,
    blocks: [Array<u8, aes::cipher::consts::U16>; 8],
    used: usize,
}

impl<'c> Coins<'c> {
    fn new(cipher: &'c Aes256, node: Node, kind: u32) -> Self {
        let node = u128::from(node.level | kind) << 120 | node.first_code << 24;
        Self { cipher, node, counter: 0, blocks: [Array([0; 16]); 8], used: 8 }
    }

    fn next(&mut self) -> u128 {
        if self.used == self.blocks.len() {
            for block in &mut self.blocks {
                *block = Array((self.node | u128::from(self.counter & 0xFF_FFFF)).to_be_bytes());
                self.counter += 1;
            }
            self.cipher.encrypt_blocks(&mut self.blocks);
            self.used = 0;
        }
        self.used += 1;
        u128::from_be_bytes(self.blocks[self.used - 1].0)
    }

    /// A number below a bound, each as likely.
    fn below(&mut self, bound: u128) -> u128 {
        let bits = u128::BITS - (bound - 1).leading_zeros();
        let mut number = 0;
        for _ in 0..DRAWS_MAX {
            number = self.next().checked_shr(u128::BITS - bits).unwrap_or(0);
            if number < bound {
                return number;
            }
        }
        number % bound
    }

    /// A normal number in units of 2^-40, by the ratio of uniform ones (Kinderman and Monahan, 1977), at most 14.
    fn normal(&mut self) -> i128 {
        for _ in 0..DRAWS_MAX {
            let block = self.next();
            let (low, high) = (block as u64, (block >> 64) as u64);
            if low == 0 {
                continue;
            }
            // Between the roots of 2 / e, in units of 2^-62; over the lower one, in units of 2^-64.
            let wide = ((i128::from(high) - (1 << 63)) * ROOT_OF_2_OVER_E) >> 63;
            let ratio = (wide << 42) / i128::from(low);
            if ratio.abs() < 14 << 40 && ratio * ratio <= i128::from(negative_log2(low)) * FOUR_LN_2 {
                return ratio;
            }
        }
        0
    }
}

/// The root of 2 / e in units of 2^-62.
const ROOT_OF_2_OVER_E: i128 = 3_955_737_715_385_249_921;
/// Four natural logarithms of 2 in units of 2^-40.
const FOUR_LN_2: i128 = 3_048_493_539_143;

/// What the logarithm to the base 2 of a number in units of 2^-64 lacks to nought, in units of 2^-40.
fn negative_log2(number: u64) -> u64 {
    let zeros = number.leading_zeros();
    // Between one and two, in units of 2^-63: each squaring gives a bit.
    let mut mantissa = number << zeros;
    let mut fraction = 0_u64;
    for _ in 0..40 {
        let square = (u128::from(mantissa) * u128::from(mantissa)) >> 63;
        let is_two = square >> 64 != 0;
        mantissa = (square >> u32::from(is_two)) as u64;
        fraction = fraction << 1 | u64::from(is_two);
    }
    (u64::from(zeros + 1) << 40) - fraction
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{Coins, DangerOrders, NoCode, Node, drawn, negative_log2, normal};
    use crate::keys::Secret;

    fn orders() -> DangerOrders {
        DangerOrders::new(&Secret::new([71; 32]))
    }

    fn coins(orders: &DangerOrders, seed: u64) -> Coins<'_> {
        Coins::new(&orders.cipher, Node { level: 1, first_code: u128::from(seed), first_number: 0, numbers: 0 }, 0)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn codes_are_in_order_always_and_lead_back(one in any::<u64>(), other in any::<u64>(), shared in 0_u32..64, key in any::<[u8; 32]>()) {
            let orders = DangerOrders::new(&Secret::new(key));
            for other in [other, one ^ (other >> shared), one.wrapping_add(1), one.wrapping_sub(1)] {
                prop_assert_eq!(orders.code(one).cmp(&orders.code(other)), one.cmp(&other));
            }
            prop_assert_eq!(orders.number(&orders.code(one)), Ok(one));
        }

        #[test]
        fn noise_is_no_code(code in any::<[u8; 12]>()) {
            // One code in 2^32 is of a number.
            prop_assert_eq!(orders().number(&code), Err(NoCode));
        }

        #[test]
        fn draws_stay_among_what_there_is(bits in 1_u32..=96, share in any::<u64>(), seed in any::<u64>()) {
            let of = 1_u128 << bits;
            let things = (of / 2).min(1 << 64).min(u128::from(share) >> (u64::BITS - bits.min(64)));
            let orders = orders();
            let lower = drawn(&mut coins(&orders, seed), of, things);
            prop_assert!(lower <= things && lower <= of / 2);
        }

        #[test]
        fn no_half_has_more_numbers_than_codes(level in 32_u32..96, gaps in any::<u64>()) {
            let codes = 1_u128 << (96 - level);
            // Where there are hardly any gaps, each draw is close to having too many.
            for (first, gaps) in (0..32).map(|first| (first, first % 4)).chain([(0, u128::from(gaps) % codes)]) {
                let numbers = codes.saturating_sub(gaps);
                let (lower, upper) = orders().halves(Node { level, first_code: first, first_number: 0, numbers });
                prop_assert!(lower.numbers <= codes / 2 && upper.numbers <= codes / 2);
                prop_assert_eq!(lower.numbers + upper.numbers, numbers);
            }
        }
    }

    #[test]
    fn the_ends_have_codes() {
        let orders = orders();
        let numbers = [0, 1, 2, u64::MAX / 2, u64::MAX / 2 + 1, u64::MAX - 1, u64::MAX];
        let codes = numbers.map(|number| orders.code(number));
        assert!(codes.is_sorted());
        assert_eq!(codes.map(|code| orders.number(&code)), numbers.map(Ok));
        assert_ne!(codes, numbers.map(|number| DangerOrders::new(&Secret::new([72; 32])).code(number)));
    }

    #[test]
    fn exact_draws_are_hypergeometric() {
        // Of 3 things in 8 places, the first four have 0, 1, 2, 3 in 4, 24, 24, 4 of 56 cases.
        let (orders, mut counts) = (orders(), [0_u32; 4]);
        (0..56_000).for_each(|seed| counts[drawn(&mut coins(&orders, seed), 8, 3) as usize] += 1);
        for (count, mean) in counts.into_iter().zip([4000_u32, 24_000, 24_000, 4000]) {
            // Six standard deviations.
            assert!(count.abs_diff(mean) < 6 * mean.isqrt(), "{counts:?}");
        }
    }

    #[test]
    fn great_draws_have_the_mean_and_the_spread_of_exact_ones() {
        // Of 1024 things in 4096 places: mean 512, variance 1024 / 4 x 3072 / 4095 = 192.
        let orders = orders();
        for draw in [drawn, normal] {
            let draws: Vec<i64> =
                (0..4000).map(|seed| draw(&mut coins(&orders, seed), 4096, 1024) as i64 - 512).collect();
            let (sum, squares) = (draws.iter().sum::<i64>(), draws.iter().map(|draw| draw * draw).sum::<i64>());
            assert!(sum.abs() < 6 * 877, "{sum}");
            assert!((4000 * 192_i64).abs_diff(squares) < 6 * 17_200, "{squares}");
            let beyond = draws.iter().filter(|draw| draw.abs() > 27).count();
            assert!((120..280).contains(&beyond), "beyond two deviations: {beyond}");
        }
    }

    #[test]
    fn logarithms_are_right() {
        for number in [1, 2, 3, 1 << 20, u64::MAX / 3, u64::MAX - 1, u64::MAX] {
            let log = 64.0 - (number as f64).log2();
            let found = negative_log2(number) as f64 / (1_u64 << 40) as f64;
            assert!((log - found).abs() < 1e-9, "{number}: {log} {found}");
        }
    }
}
