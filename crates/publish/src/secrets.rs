//! What an owner keeps to itself.
//!
//! ```text
//! count and roots: public key (96), 00 or 01 and the secret (32); count and signing keys (32); salts' secret (32)
//! ```
//! A root without its secret is one that is kept elsewhere.

use counterfoil_proof::attributes::Salt;
use counterfoil_proof::bytes::Reader;
use counterfoil_proof::{Malformed, Manifest, PublicKey, SecretKey};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::error::Error;

/// The root keys, the signing keys, and the secret from which salts come.
#[derive(Clone)]
pub struct Secrets {
    pub(crate) roots: Vec<(PublicKey, Option<SecretKey>)>,
    signing: Vec<(PublicKey, SecretKey)>,
    salts: Zeroizing<[u8; 32]>,
}

pub(crate) fn key_of(entropy: &[u8]) -> Result<SecretKey, Error> {
    let wrong = |_| Error::Misuse("entropy from which no key can be made".into());
    SecretKey::from_entropy(entropy).map_err(wrong)
}

impl Secrets {
    /// From 96 bytes of entropy, no two owners' alike.
    ///
    /// # Errors
    /// [`Error::Misuse`]: bytes from which no key can be made.
    pub fn from_entropy(entropy: &[u8; 96]) -> Result<Self, Error> {
        let (root, signing) = (key_of(&entropy[..32])?, key_of(&entropy[32..64])?);
        let mut salts = Zeroizing::new([0; 32]);
        salts.copy_from_slice(&entropy[64..]);
        Ok(Self { roots: vec![(root.public(), Some(root))], signing: vec![(signing.public(), signing)], salts })
    }

    /// Of an owner whose root key is kept elsewhere, from 64 bytes of entropy, no two tables' alike.
    ///
    /// # Errors
    /// [`Error::Misuse`]: bytes from which no key can be made.
    pub fn under(root: &PublicKey, entropy: &[u8; 64]) -> Result<Self, Error> {
        let signing = key_of(&entropy[..32])?;
        let mut salts = Zeroizing::new([0; 32]);
        salts.copy_from_slice(&entropy[32..]);
        Ok(Self { roots: vec![(*root, None)], signing: vec![(signing.public(), signing)], salts })
    }

    /// The public keys, if there is one of each.
    pub(crate) fn publics(&self) -> Option<(PublicKey, PublicKey)> {
        match (&self.roots[..], &self.signing[..]) {
            ([(root, _)], [(signing, _)]) => Some((*root, *signing)),
            _ => None,
        }
    }

    pub(crate) fn to_bytes(&self) -> Zeroizing<Vec<u8>> {
        // As long as it becomes: a vector that grows leaves copies of secrets behind.
        let length = 2 + 129 * self.roots.len() + 32 * self.signing.len() + 32;
        let mut bytes = Zeroizing::new(Vec::with_capacity(length));
        bytes.push(self.roots.len() as u8);
        for (public, secret) in &self.roots {
            bytes.extend_from_slice(&public.to_bytes());
            bytes.push(u8::from(secret.is_some()));
            if let Some(secret) = secret {
                bytes.extend_from_slice(&*Zeroizing::new(secret.to_bytes()));
            }
        }
        bytes.push(self.signing.len() as u8);
        for (_, secret) in &self.signing {
            bytes.extend_from_slice(&*Zeroizing::new(secret.to_bytes()));
        }
        bytes.extend_from_slice(&self.salts[..]);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, Error> {
        let corrupt = || Error::Corrupt("its keys");
        let read = |bytes| -> Result<Self, Malformed> {
            let malformed = || Malformed("a key");
            let mut reader = Reader::new(bytes, "keys");
            let (mut roots, mut signing) = (Vec::new(), Vec::new());
            for _ in 0..reader.byte()? {
                let public = PublicKey::from_bytes(reader.raw(96)?).map_err(|_| malformed())?;
                let is_here = reader.byte()? == 1;
                let secret = is_here.then(|| reader.raw(32)).transpose()?;
                let secret = secret.map(SecretKey::from_bytes).transpose().map_err(|_| malformed())?;
                roots.push((public, secret));
            }
            for _ in 0..reader.byte()? {
                let secret = SecretKey::from_bytes(reader.raw(32)?).map_err(|_| malformed())?;
                signing.push((secret.public(), secret));
            }
            let mut salts = Zeroizing::new([0; 32]);
            salts.copy_from_slice(reader.raw(32)?);
            reader.end()?;
            Ok(Self { roots, signing, salts })
        };
        read(bytes).map_err(|_| corrupt())
    }

    /// The secret of a signing key.
    pub(crate) fn signing(&self, key: &PublicKey) -> Option<&SecretKey> {
        self.signing.iter().find(|(public, _)| public == key).map(|(_, secret)| secret)
    }

    /// Takes a signing key in.
    pub(crate) fn admit(&mut self, key: SecretKey) {
        self.signing.push((key.public(), key));
    }

    /// Forgets the signing keys that a manifest does not list.
    pub(crate) fn keep_listed(&mut self, manifest: &Manifest) {
        self.signing.retain(|(public, _)| manifest.keys.iter().any(|key| key.key == *public));
    }

    /// Begins salts that have nothing to do with those of before.
    pub(crate) fn salt_anew(&mut self, salts: &[u8; 32]) {
        self.salts.copy_from_slice(salts);
    }

    /// Signs a manifest by all that it lists: by roots that are here, or handed in.
    ///
    /// # Errors
    /// [`Error::RootNeeded`]: one of the roots is neither; [`Error::Misuse`]: no manifest that a reader takes.
    pub(crate) fn sign(&self, manifest: &Manifest, handed: &[SecretKey]) -> Result<Vec<u8>, Error> {
        let handed: Vec<_> = handed.iter().map(|key| (key.public(), key)).collect();
        let mut secrets = Vec::new();
        for root in &manifest.roots {
            let here = self.roots.iter().find(|(public, _)| public == root).and_then(|(_, secret)| secret.as_ref());
            let from_hand = || handed.iter().find(|(public, _)| public == root).map(|(_, secret)| *secret);
            secrets.push(here.or_else(from_hand).ok_or(Error::RootNeeded)?);
        }
        for key in &manifest.keys {
            secrets.push(self.signing(&key.key).ok_or(Error::Corrupt("a signing key"))?);
        }
        Ok(manifest.sign(&secrets)?)
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
