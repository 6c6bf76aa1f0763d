//! The one place where the five suites are five: a page cipher with its key schedule.

use aes_gcm::Aes256Gcm;
use aes_gcm_siv::Aes256GcmSiv;
use aes_gcm_siv::aead::inout::InOutBuf;
use aes_gcm_siv::aead::{AeadInOut, Key, KeyInit, Nonce};
use ascon_aead::AsconAead128;
use chacha20poly1305::ChaCha20Poly1305;
use ocb3::Ocb3;
use ocb3::consts::{U12, U16};

use crate::{Suite, Tag};

/// AES-128-OCB3 with 12-byte nonces and 16-byte tags; 13 precomputed offsets reach past the largest page (64 KiB).
type Aes128Ocb3 = Ocb3<aes::Aes128, U12, U16, 13>;

pub(crate) enum Cipher {
    Aes256GcmSiv(Aes256GcmSiv),
    Aes256Gcm(Aes256Gcm),
    ChaCha20Poly1305(ChaCha20Poly1305),
    AsconAead128(AsconAead128),
    Aes128Ocb3(Aes128Ocb3),
}

impl Cipher {
    pub(crate) fn new(suite: Suite, key: &[u8; 32]) -> Cipher {
        match suite {
            Suite::Aes256GcmSiv => Cipher::Aes256GcmSiv(keyed(key)),
            Suite::Aes256Gcm => Cipher::Aes256Gcm(keyed(key)),
            Suite::ChaCha20Poly1305 => Cipher::ChaCha20Poly1305(keyed(key)),
            Suite::AsconAead128 => Cipher::AsconAead128(keyed(key)),
            Suite::Aes128Ocb3 => Cipher::Aes128Ocb3(keyed(key)),
        }
    }

    /// Seals `text` in place. The nonce is `number`, little-endian, followed by zeros to the suite's length.
    pub(crate) fn seal(&self, number: u64, associated: &[u8], text: &mut [u8]) -> Tag {
        match self {
            Cipher::Aes256GcmSiv(cipher) => seal_with(cipher, number, associated, text),
            Cipher::Aes256Gcm(cipher) => seal_with(cipher, number, associated, text),
            Cipher::ChaCha20Poly1305(cipher) => seal_with(cipher, number, associated, text),
            Cipher::AsconAead128(cipher) => seal_with(cipher, number, associated, text),
            Cipher::Aes128Ocb3(cipher) => seal_with(cipher, number, associated, text),
        }
    }

    /// Opens `text` in place; whether it authenticated. What `text` holds after a failure is nobody's business.
    #[must_use]
    pub(crate) fn open(&self, number: u64, associated: &[u8], text: &mut [u8], tag: &Tag) -> bool {
        match self {
            Cipher::Aes256GcmSiv(cipher) => open_with(cipher, number, associated, text, tag),
            Cipher::Aes256Gcm(cipher) => open_with(cipher, number, associated, text, tag),
            Cipher::ChaCha20Poly1305(cipher) => open_with(cipher, number, associated, text, tag),
            Cipher::AsconAead128(cipher) => open_with(cipher, number, associated, text, tag),
            Cipher::Aes128Ocb3(cipher) => open_with(cipher, number, associated, text, tag),
        }
    }
}

fn keyed<A: KeyInit>(key: &[u8; 32]) -> A {
    let mut exact = Key::<A>::default();
    let bytes = exact.len();
    exact.copy_from_slice(&key[..bytes]);
    let cipher = A::new(&exact);
    zeroize::Zeroize::zeroize(exact.as_mut_slice());
    cipher
}

fn nonce<A: AeadInOut>(number: u64) -> Nonce<A> {
    let mut nonce = Nonce::<A>::default();
    nonce[..8].copy_from_slice(&number.to_le_bytes());
    nonce
}

fn seal_with<A: AeadInOut>(cipher: &A, number: u64, associated: &[u8], text: &mut [u8]) -> Tag {
    let sealed = cipher.encrypt_inout_detached(&nonce::<A>(number), associated, InOutBuf::from(text));
    let mut tag = Tag::default();
    match sealed {
        Ok(found) => tag.copy_from_slice(&found),
        // Suites refuse only texts of a gigabyte and more; a page has at most 64 KiB.
        Err(_) => panic!("a page is never too long for its suite"),
    }
    tag
}

fn open_with<A: AeadInOut>(cipher: &A, number: u64, associated: &[u8], text: &mut [u8], tag: &Tag) -> bool {
    let Ok(tag) = aes_gcm_siv::aead::Tag::<A>::try_from(&tag[..]) else { return false };
    cipher.decrypt_inout_detached(&nonce::<A>(number), associated, InOutBuf::from(text), &tag).is_ok()
}
