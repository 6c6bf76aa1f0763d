//! What an owner keeps to itself.

use counterfoil_proof::SecretKey;
use counterfoil_proof::attributes::Salt;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::Error;

/// The root key, the signing key, and the secret from which salts come.
pub struct Secrets {
    pub(crate) root: SecretKey,
    pub(crate) signing: SecretKey,
    salts: Zeroizing<[u8; 32]>,
}

impl Secrets {
    /// From 96 bytes of entropy, no two owners' alike.
    ///
    /// # Errors
    /// [`Error::Misuse`]: bytes from which no key can be made.
    pub fn from_entropy(entropy: &[u8; 96]) -> Result<Self, Error> {
        let key = |part: &[u8]| {
            let bytes = Zeroizing::new(<[u8; 32]>::try_from(part).unwrap_or_default());
            SecretKey::from_entropy(&*bytes).map_err(|_| Error::Misuse("entropy from which no key can be made".into()))
        };
        let mut salts = Zeroizing::new([0; 32]);
        salts.copy_from_slice(&entropy[64..]);
        Ok(Self { root: key(&entropy[..32])?, signing: key(&entropy[32..64])?, salts })
    }

    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        let keys = [self.root.to_bytes(), self.signing.to_bytes()];
        Zeroizing::new([&keys[0][..], &keys[1][..], &self.salts[..]].concat())
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = || Error::Corrupt("its keys");
        if bytes.len() != 96 {
            return Err(corrupt());
        }
        let key = |part: &[u8]| SecretKey::from_bytes(part).map_err(|_| corrupt());
        let mut salts = Zeroizing::new([0; 32]);
        salts.copy_from_slice(&bytes[64..]);
        Ok(Self { root: key(&bytes[..32])?, signing: key(&bytes[32..64])?, salts })
    }

    /// The seed of the salts of a version of a record's values: another one for each, so that an unchanged value does not
    /// show as such.
    pub(crate) fn seed(&self, table: &[u8; 16], rid: u64, version: u64) -> Salt {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.salts[..]).expect("any length is a key");
        mac.update(table);
        mac.update(&rid.to_be_bytes());
        mac.update(&version.to_be_bytes());
        let mut seed = [0; 16];
        seed.copy_from_slice(&mac.finalize().into_bytes()[..16]);
        seed
    }
}
