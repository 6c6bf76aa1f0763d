//! The one place where the five suites are five: a page cipher with its key schedule.

use aead::inout::InOutBuf;
use aead::{AeadInOut, Key, KeyInit, Nonce};

use crate::page::wiped;
use crate::{Suite, Tag};

/// The table of ciphers: the feature that brings one, its suite, its type.
macro_rules! ciphers {
    ($($feature:literal: $suite:ident($cipher:ty);)*) => {
        pub(crate) enum Cipher {
            $(#[cfg(feature = $feature)] $suite($cipher),)*
        }

        impl Cipher {
            pub(crate) fn new(suite: Suite, key: &[u8; 32]) -> Cipher {
                match suite {
                    $(#[cfg(feature = $feature)] Suite::$suite => Cipher::$suite(keyed(key)),)*
                }
            }

            /// Seals `text` in place. The nonce is `number`, little-endian, followed by zeros to the suite's length.
            pub(crate) fn seal(&self, number: u64, associated: &[u8], text: &mut [u8]) -> Tag {
                match self {
                    $(#[cfg(feature = $feature)] Cipher::$suite(cipher) => seal_with(cipher, number, associated, text),)*
                }
            }

            /// Opens `text` in place; whether it authenticated. What `text` holds after a failure is nobody's business.
            #[must_use]
            pub(crate) fn open(&self, number: u64, associated: &[u8], text: &mut [u8], tag: &Tag) -> bool {
                match self {
                    $(#[cfg(feature = $feature)] Cipher::$suite(cipher) => open_with(cipher, number, associated, text, tag),)*
                }
            }
        }
    };
}

ciphers! {
    "aes-256-gcm-siv": Aes256GcmSiv(aes_gcm_siv::Aes256GcmSiv);
    "aes-256-gcm": Aes256Gcm(aes_gcm::Aes256Gcm);
    "chacha20-poly1305": ChaCha20Poly1305(chacha20poly1305::ChaCha20Poly1305);
    "ascon-aead128": AsconAead128(ascon_aead::AsconAead128);
    "aes-128-ocb3": Aes128Ocb3(Aes128Ocb3);
}

/// AES-128-OCB3 with 12-byte nonces and 16-byte tags; 13 precomputed offsets reach past the largest page (64 KiB).
#[cfg(feature = "aes-128-ocb3")]
type Aes128Ocb3 = ocb3::Ocb3<aes::Aes128, ocb3::consts::U12, ocb3::consts::U16, 13>;

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
    crate::blocks::count_text(text.len(), 2);
    let sealed = cipher.encrypt_inout_detached(&nonce::<A>(number), associated, InOutBuf::from(&mut *text));
    let mut tag = Tag::default();
    match sealed {
        Ok(found) => tag.copy_from_slice(&found),
        // Suites refuse only texts of a gigabyte and more; a page has at most 64 KiB.
        Err(_) => wiped(text, "a page is never too long for its suite"),
    }
    tag
}

fn open_with<A: AeadInOut>(cipher: &A, number: u64, associated: &[u8], text: &mut [u8], tag: &Tag) -> bool {
    crate::blocks::count_text(text.len(), 2);
    let Ok(tag) = aead::Tag::<A>::try_from(&tag[..]) else { return false };
    cipher.decrypt_inout_detached(&nonce::<A>(number), associated, InOutBuf::from(text), &tag).is_ok()
}
