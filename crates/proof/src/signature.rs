//! What an owner signs with and what readers check by: BLS signatures over BLS12-381, 48 bytes in G1, keys in G2.
//!
//! The suite is `BLS_SIG_BLS12381G1_XMD:SHA-256_SSWU_RO_NUL_`. Signatures over different messages add up to one of the
//! same size; [`verify`] checks it against a strictly increasing list of messages, so that none counts twice.
//!
//! ```
//! use counterfoil_proof::{Hint, Message, SecretKey, SignatureSum, verify};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let key = SecretKey::from_entropy(&[7; 32])?; // from the system's randomness, in earnest
//! let messages = [Message([1; 32]), Message([2; 32])];
//! let signature = SignatureSum::sum_of(&messages.map(|message| key.sign(&message))).finish().ok_or("at infinity")?;
//! verify(&key.public(), &messages, None, &signature)?;
//! verify(&key.public(), &messages, Some(&messages.map(|message| Hint::of(&message))), &signature)?;
//! # Ok(()) }
//! ```

mod sum;
mod verify;

use alloc::vec::Vec;
use core::fmt;

use blst::{BLST_ERROR, blst_p1_affine, blst_p2_affine, min_sig};

use crate::curve::{Affine, DOMAIN, roots, spread};

pub use sum::SignatureSum;
pub use verify::{GROUPS_MAX, Group, SignatureError, verify, verify_groups};

/// As many messages are signed at a time by one thread.
const SIGNED_AT_ONCE: usize = 16;

/// The digest that is signed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Message(pub [u8; 32]);

/// The two roots of a message's map to the curve, 48 bytes each, most significant first.
///
/// An untrusted server may bring it: [`verify`] accepts the right one alone, and a thousand messages
/// take a sixteenth of the time with it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Hint(pub [u8; 96]);

impl Hint {
    /// The only hint that is right for the message.
    pub fn of(message: &Message) -> Hint {
        let mut bytes = [0; 96];
        for (place, root) in bytes.chunks_exact_mut(48).zip(roots(&message.0)) {
            place.copy_from_slice(&root);
        }
        Hint(bytes)
    }

    /// Both roots.
    pub(crate) fn roots(&self) -> &[[u8; 48]] {
        self.0.as_chunks().0
    }
}

/// Why bytes are no key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum KeyError {
    /// There are this many bytes, not as many as a key (or its entropy) needs.
    Length(usize),
    /// The bytes are not the one encoding of a point of the curve, or of a secret key.
    Encoding,
    /// The key is the point at infinity: anyone can sign for it.
    Infinity,
    /// The point is not in the group of keys.
    Subgroup,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyError::Length(bytes) => write!(f, "{bytes} bytes are no key"),
            KeyError::Encoding => f.write_str("the bytes are not the encoding of a key"),
            KeyError::Infinity => f.write_str("the key is the point at infinity"),
            KeyError::Subgroup => f.write_str("the key is not in the group of keys"),
        }
    }
}

impl core::error::Error for KeyError {}

/// An owner's public key: a point of G2 that is not at infinity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PublicKey(min_sig::PublicKey);

impl PublicKey {
    /// A key from its 96 bytes, the compressed form.
    pub fn from_bytes(bytes: &[u8]) -> Result<PublicKey, KeyError> {
        if bytes.len() != 96 {
            return Err(KeyError::Length(bytes.len()));
        }
        match min_sig::PublicKey::key_validate(bytes) {
            Ok(key) if key.to_bytes() == bytes => Ok(PublicKey(key)),
            Err(BLST_ERROR::BLST_PK_IS_INFINITY) => Err(KeyError::Infinity),
            Err(BLST_ERROR::BLST_POINT_NOT_IN_GROUP) => Err(KeyError::Subgroup),
            _ => Err(KeyError::Encoding),
        }
    }

    /// The compressed form.
    pub fn to_bytes(&self) -> [u8; 96] {
        self.0.to_bytes()
    }

    pub(crate) fn point(&self) -> &blst_p2_affine {
        (&self.0).into()
    }
}

/// A signature, or a sum of signatures: a point of the curve that is not at infinity.
///
/// Whether it is in the group of signatures is known once it was verified.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Signature(Affine);

impl Signature {
    /// A signature from 48 bytes (compressed) or 96 (uncompressed, ten times faster).
    pub fn from_bytes(bytes: &[u8]) -> Result<Signature, SignatureError> {
        if bytes.len() != 48 && bytes.len() != 96 {
            return Err(SignatureError::Malformed("a signature has 48 or 96 bytes"));
        }
        let point = min_sig::Signature::from_bytes(bytes)
            .map_err(|_| SignatureError::Malformed("these bytes are not the encoding of a point of the curve"))?;
        let point = Affine::from(blst_p1_affine::from(point));
        if point.x.is_zero() && point.y.is_zero() {
            return Err(SignatureError::Malformed("the signature is the point at infinity"));
        }
        Ok(Signature(point))
    }

    /// The compressed form.
    pub fn to_bytes(&self) -> [u8; 48] {
        self.with_blst().compress()
    }

    /// Both coordinates: twice the bytes, and no root to compute when they are read.
    pub fn to_uncompressed(&self) -> [u8; 96] {
        let mut bytes = [0; 96];
        bytes[..48].copy_from_slice(&self.0.x.to_bytes());
        bytes[48..].copy_from_slice(&self.0.y.to_bytes());
        bytes
    }

    fn with_blst(&self) -> min_sig::Signature {
        blst_p1_affine::from(self.0).into()
    }
}

/// An owner's secret key. It shows itself to nobody, and is overwritten when dropped.
#[derive(Clone)]
pub struct SecretKey(min_sig::SecretKey);

impl SecretKey {
    /// The key of at least 32 bytes that nobody can guess (KeyGen of the BLS draft).
    pub fn from_entropy(entropy: &[u8]) -> Result<SecretKey, KeyError> {
        min_sig::SecretKey::key_gen(entropy, &[]).map(SecretKey).map_err(|_| KeyError::Length(entropy.len()))
    }

    /// A key from its 32 bytes: a number from 1 to the group's order less one, most significant first.
    pub fn from_bytes(bytes: &[u8]) -> Result<SecretKey, KeyError> {
        if bytes.len() != 32 {
            return Err(KeyError::Length(bytes.len()));
        }
        min_sig::SecretKey::from_bytes(bytes).map(SecretKey).map_err(|_| KeyError::Encoding)
    }

    /// The key itself: to be sealed, and overwritten by who asked for it.
    pub fn to_bytes(&self) -> [u8; 32] {
        self.0.to_bytes()
    }

    /// What readers check by.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.sk_to_pk())
    }

    /// Signs a message.
    pub fn sign(&self, message: &Message) -> Signature {
        Signature(Affine::from(blst_p1_affine::from(self.0.sign(&message.0, DOMAIN, &[]))))
    }

    /// Signs messages on all cores, and gives each its hint.
    pub fn sign_all(&self, messages: &[Message]) -> Vec<(Signature, Hint)> {
        let parts: Vec<&[Message]> = messages.chunks(SIGNED_AT_ONCE).collect();
        let signed = spread(parts.len(), |part| -> Vec<_> {
            parts[part].iter().map(|message| (self.sign(message), Hint::of(message))).collect()
        });
        signed.into_iter().flatten().collect()
    }
}
