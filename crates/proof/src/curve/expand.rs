//! hash_to_field of RFC 9380 (expand_message_xmd over SHA-256) for messages of 32 bytes.
//!
//! All messages have one length and one domain, so the padded blocks are laid out once and only what differs is filled
//! in: ten compressions a message, the first block (64 zero bytes) being hashed once for all.
//!
//! ```text
//! b0 = SHA-256(64 zeros | message 32 | 0x0080 | 0x00 | domain 43 | 43)       two blocks after the first
//! bi = SHA-256(b0 ^ b(i-1) (b0 alone for i = 1) | i | domain 43 | 43)        two blocks, i = 1 to 4
//! u0 = b1 | b2 mod p, u1 = b3 | b4 mod p
//! ```

use sha2::block_api::compress256;

use super::field::Fp;

/// The domain of the signature suite: basic scheme, signatures in G1.
pub(crate) const DOMAIN: &[u8; 43] = b"BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_";

const START: [u32; 8] =
    [0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19];

/// Hashes messages to the field.
pub(crate) struct Expander {
    /// The state after 64 zero bytes.
    zeros: [u32; 8],
    /// What follows them, but for the message in front.
    message: [[u8; 64]; 2],
    /// What b1 to b4 hash, but for the 32 bytes in front and the number after them.
    digest: [[u8; 64]; 2],
}

impl Expander {
    pub(crate) fn new() -> Expander {
        let mut zeros = START;
        compress256(&mut zeros, &[[0; 64]]);
        Expander { zeros, message: tail(&[0, 128, 0], 64), digest: tail(&[0], 0) }
    }

    /// The two field elements of a message.
    pub(crate) fn field_elements(&self, message: &[u8; 32]) -> [Fp; 2] {
        let mut blocks = self.message;
        blocks[0][..32].copy_from_slice(message);
        let mut first = self.zeros;
        compress256(&mut first, &blocks);
        let (mut blocks, mut before, mut uniform) = (self.digest, [0; 8], [[0; 64]; 2]);
        for i in 0..4 {
            let mixed: [u32; 8] = core::array::from_fn(|j| first[j] ^ before[j]);
            put_words(&mut blocks[0][..32], &mixed);
            blocks[0][32] = i as u8 + 1;
            before = START;
            compress256(&mut before, &blocks);
            put_words(&mut uniform[i / 2][32 * (i % 2)..][..32], &before);
        }
        uniform.map(|bytes| Fp::from_wide_bytes(&bytes))
    }
}

/// Two blocks with 32 bytes left open, then `between`, the domain and the padding of SHA-256, `before` bytes having
/// been hashed already.
fn tail(between: &[u8], before: usize) -> [[u8; 64]; 2] {
    let mut bytes = [0; 128];
    let domain = 32 + between.len();
    bytes[32..domain].copy_from_slice(between);
    bytes[domain..domain + 43].copy_from_slice(DOMAIN);
    bytes[domain + 43] = 43;
    bytes[domain + 44] = 0x80;
    let bits = 8 * (before + domain + 44) as u64;
    bytes[120..].copy_from_slice(&bits.to_be_bytes());
    let [mut first, mut second] = [[0; 64]; 2];
    first.copy_from_slice(&bytes[..64]);
    second.copy_from_slice(&bytes[64..]);
    [first, second]
}

fn put_words(place: &mut [u8], words: &[u32; 8]) {
    for (four, word) in place.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_be_bytes());
    }
}
