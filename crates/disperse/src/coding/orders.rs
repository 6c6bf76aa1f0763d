//! Numbers as codes that can be compared with a question, and not with one another (Lewi and Wu, "Order-Revealing Encryption: New
//! Constructions, Applications, and Lower Bounds", 2016, section 4, with blocks of four bits).
//!
//! ```text
//! number  = 16 blocks of 4 bits, highest first; p = the blocks before block i
//! stored  = nonce [16] = AES-256(K; 03 | 0 ... | row u64) | for each block 16 trits of 2 bits, the first in the highest bits, 4 bytes            80 bytes
//!           trit j of block i = cmp(inverse(i, p, j), block i) + trit(label(i, p, j), nonce)   modulo 3
//! asked   = for each block: j = permuted(i, p, block i) u8 | label(i, p, j) [16]                               272 bytes
//! label   = AES-256(K; 01 | i | j | 0 ... | p u64)          permuted = Fisher-Yates by AES-256(K; 02 | i | 0 ... | p u64)
//! trit(label, nonce) = first 7 bytes of SHA-256(label | nonce) modulo 3           cmp: 0 equal, 1 less, 2 greater
//! ```
//! 1. Stored codes say nothing of one another: each trit is hidden by a hash under its own nonce. So at rest nothing is leaked. The row of a
//!    nonce is its number with a part of its epoch, as in its place (places.rs): of a database that was put back a number comes again.
//! 2. A question shows, of each stored number, whether it is less, equal or greater, and the first block in which they differ. Whoever
//!    keeps questions learns the order between all that was asked for, and the numbers' order in between.
//! 3. The hash is one that SQL servers have, so that they can compare by themselves.
//! 4. Permutations are shuffles of sixteen, not ciphers of a small domain, which are weak (Bogatov and others, 2018).

use std::cmp::Ordering;
use std::slice;

use aes::Aes256;
use aes::cipher::{Array, BlockCipherEncrypt as _, KeyInit as _};
use sha2::block_api::compress256;

use crate::keys::Secret;

/// Blocks of a number.
pub const BLOCKS: usize = 16;
/// Values of a block.
const VALUES: usize = 16;
/// Bytes of a stored code.
pub const STORED_BYTES: usize = 16 + BLOCKS * VALUES / 4;
/// Orders of a block's values: sixteen factorial.
const SHUFFLES: u128 = 20_922_789_888_000;
/// What SHA-256 begins with (FIPS 180-4, 5.3.3).
const BEGINNING: [u32; 8] =
    [0x6A09_E667, 0xBB67_AE85, 0x3C6E_F372, 0xA54F_F53A, 0x510E_527F, 0x9B05_688C, 0x1F83_D9AB, 0x5BE0_CD19];
/// Bytes of a question.
pub const ASKED_BYTES: usize = BLOCKS * 17;

/// A stored code.
pub type Stored = [u8; STORED_BYTES];
/// What is asked for.
pub type Asked = [u8; ASKED_BYTES];

/// What makes the codes of a column.
pub struct Orders {
    cipher: Aes256,
}

impl Orders {
    /// Codes under a column's key.
    #[must_use]
    pub fn new(key: &Secret) -> Self {
        Self { cipher: Aes256::new(&Array(*key.expose())) }
    }

    /// The column's function of many inputs: together they take a fraction of what each alone does.
    fn functions<const N: usize>(&self, inputs: impl Fn(usize) -> [u8; 16]) -> [[u8; 16]; N] {
        let mut blocks = std::array::from_fn(|at| Array(inputs(at)));
        self.cipher.encrypt_blocks(&mut blocks);
        blocks.map(|block| block.0)
    }

    /// For each block of a number, what each of its values becomes behind what is before it.
    fn permutations(&self, number: u64) -> [[u8; VALUES]; BLOCKS] {
        self.functions(|block| input(2, block, 0, before(number, block))).map(shuffled)
    }

    /// What a provider keeps of a row's number.
    #[must_use]
    pub fn stored(&self, row: u64, number: u64) -> Stored {
        let mut stored = [0; STORED_BYTES];
        let [nonce] = self.functions(|_| input(3, 0, 0, row));
        stored[..16].copy_from_slice(&nonce);
        let mut hiding = Hiding::new(&nonce);
        for (block, permutation) in self.permutations(number).into_iter().enumerate() {
            let (before, own) = (before(number, block), value(number, block));
            let labels: [_; VALUES] = self.functions(|permuted| input(1, block, permuted as u8, before));
            for (plain, permuted) in (0..).zip(permutation) {
                let hidden = hiding.trit(&labels[usize::from(permuted)]);
                let compared = match u8::cmp(&plain, &own) {
                    Ordering::Equal => 0,
                    Ordering::Less => 1,
                    Ordering::Greater => 2,
                };
                let at = block * VALUES + usize::from(permuted);
                stored[16 + at / 4] |= ((compared + hidden) % 3) << (6 - 2 * (at % 4));
            }
        }
        stored
    }

    /// What a provider is asked with.
    #[must_use]
    pub fn asked(&self, number: u64) -> Asked {
        let mut asked = [0; ASKED_BYTES];
        let permutations = self.permutations(number);
        let permuted = |block: usize| permutations[block][usize::from(value(number, block))];
        let labels: [_; BLOCKS] = self.functions(|block| input(1, block, permuted(block), before(number, block)));
        for (block, to) in asked.chunks_exact_mut(17).enumerate() {
            to[0] = permuted(block);
            to[1..].copy_from_slice(&labels[block]);
        }
        asked
    }
}

fn value(number: u64, block: usize) -> u8 {
    (number >> (60 - 4 * block)) as u8 & 15
}

fn before(number: u64, block: usize) -> u64 {
    number.checked_shr(64 - 4 * block as u32).unwrap_or(0)
}

fn input(kind: u8, block: usize, value: u8, before: u64) -> [u8; 16] {
    let mut input = [0; 16];
    (input[0], input[1], input[2]) = (kind, block as u8, value);
    input[8..].copy_from_slice(&before.to_be_bytes());
    input
}

/// The values of a block in one of their orders.
fn shuffled(random: [u8; 16]) -> [u8; VALUES] {
    let mut values = std::array::from_fn(|at| at as u8);
    // Sixteen factorial is 2^44: what is left over of 128 bits makes no order likelier that anybody could see.
    let mut random = (u128::from_be_bytes(random) % SHUFFLES) as u64;
    for last in (1..VALUES).rev() {
        values.swap(last, (random % (last as u64 + 1)) as usize);
        random /= last as u64 + 1;
    }
    values
}

/// What hides the trits of a row: a label and its nonce are one block with its padding, of which the label alone changes. A hasher, which
/// takes any length, takes half as long again over it.
struct Hiding([u8; 64]);

impl Hiding {
    fn new(nonce: &[u8]) -> Self {
        let mut block = [0; 64];
        block[16..32].copy_from_slice(nonce);
        (block[32], block[62]) = (0x80, 1); // behind 256 bits
        Self(block)
    }

    fn trit(&mut self, label: &[u8]) -> u8 {
        self.0[..16].copy_from_slice(label);
        let mut hash = BEGINNING;
        compress256(&mut hash, slice::from_ref(&self.0));
        let first_bytes = u64::from(hash[0]) << 24 | u64::from(hash[1]) >> 8;
        (first_bytes % 3) as u8
    }
}

/// How what is asked for compares with what is stored: needs no key, and is what providers do.
#[must_use]
pub fn compare(asked: &Asked, stored: &Stored) -> Ordering {
    let (nonce, trits) = stored.split_at(16);
    let mut hiding = Hiding::new(nonce);
    for (block, own) in asked.chunks_exact(17).enumerate() {
        // A question of somebody else may name a value that there is not.
        let at = block * VALUES + usize::from(own[0]) % VALUES;
        let found = trits[at / 4] >> (6 - 2 * (at % 4)) & 3;
        match (found + 3 - hiding.trit(&own[1..])) % 3 {
            0 => {}
            1 => return Ordering::Less,
            _ => return Ordering::Greater,
        }
    }
    Ordering::Equal
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use sha2::{Digest as _, Sha256};

    use super::{BLOCKS, Hiding, Orders, STORED_BYTES, VALUES, compare, shuffled};
    use crate::keys::Secret;

    fn orders() -> Orders {
        Orders::new(&Secret::new([11; 32]))
    }

    proptest! {
        #[test]
        fn what_hides_is_what_others_hash_to(label in any::<[u8; 16]>(), nonce in any::<[u8; 16]>()) {
            let hash = Sha256::new().chain_update(label).chain_update(nonce).finalize();
            let first_bytes = hash[..7].iter().fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
            prop_assert_eq!(u64::from(Hiding::new(&nonce).trit(&label)), first_bytes % 3);
        }

        #[test]
        fn a_shuffle_is_that_of_all_its_bits(random in any::<[u8; 16]>()) {
            let mut values: [u8; VALUES] = std::array::from_fn(|at| at as u8);
            let mut left = u128::from_be_bytes(random);
            for last in (1..VALUES).rev() {
                values.swap(last, (left % (last as u128 + 1)) as usize);
                left /= last as u128 + 1;
            }
            prop_assert_eq!(shuffled(random), values);
        }

        #[test]
        fn a_question_compares_as_its_number_does(one in any::<u64>(), other in any::<u64>(), shared in 0_u32..=64) {
            // Numbers that agree in their highest bits are where blocks matter.
            let other = if shared == 0 { other } else { one ^ other.checked_shr(shared).unwrap_or(0) };
            prop_assert_eq!(compare(&orders().asked(one), &orders().stored(77, other)), one.cmp(&other));
            prop_assert_eq!(compare(&orders().asked(one), &orders().stored(78, one)), std::cmp::Ordering::Equal);
        }
    }

    #[test]
    fn what_is_stored_says_nothing_of_its_number() {
        // Of one number under many nonces, each trit is each value about as often; and so of another number.
        for number in [0, u64::MAX] {
            let mut counts = [[0_u32; 3]; BLOCKS * 16];
            for row in 0..3000 {
                let stored: [u8; STORED_BYTES] = orders().stored(row, number);
                for (at, count) in counts.iter_mut().enumerate() {
                    count[usize::from(stored[16 + at / 4] >> (6 - 2 * (at % 4)) & 3)] += 1;
                }
            }
            // Six standard deviations of 26.
            assert!(counts.iter().flatten().all(|count| (845..1155).contains(count)), "{number}");
        }
    }

    #[test]
    fn questions_of_another_column_are_answered_at_random() {
        let others = Orders::new(&Secret::new([12; 32]));
        let asked = others.asked(500);
        let less = (0..300).filter(|row| compare(&asked, &orders().stored(*row, 500)).is_lt()).count();
        assert!((90..210).contains(&less), "{less}");
    }
}
