//! What an owner says of a published table under its root key, and nothing else says.
//!
//! A manifest lists who may sign in which periods. Readers never take one with a lower serial than they have seen. It is
//! signed by each root key (two while the root changes, so that whoever knows the old one learns the new one) and by each
//! signing key, so that nobody can have a key certified that another made to fit.

use alloc::vec::Vec;

use crate::bytes::{Reader, Writer};
use crate::definition::Definition;
use crate::digest::{Digest, digest};
use crate::error::Malformed;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::signature::{GROUPS_MAX, Message, PublicKey, SecretKey, Signature, verify};

/// Bytes of a manifest at most.
pub const MANIFEST_BYTES_MAX: usize = 1 << 20;

const ROOTS_MAX: usize = 2;
/// As many as one answer may be signed with.
const KEYS_MAX: usize = GROUPS_MAX;

/// A key that may sign, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct SigningKey {
    /// The key.
    pub key: PublicKey,
    /// The first period that it signs.
    pub from_period: u64,
    /// The first period that it does not sign any more; `u64::MAX` while it signs.
    pub until_period: u64,
    /// Milliseconds since 1970 (UTC) from which on nothing that it signed counts.
    pub expires: u64,
}

/// What holds of a published table until the next manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// What never changes of it.
    pub definition: Definition,
    /// Grows with each manifest.
    pub serial: u64,
    /// Milliseconds since 1970 (UTC) when it was made.
    pub issued: u64,
    /// Milliseconds between the ends of two periods, as planned; 0: a period ends when the owner publishes.
    pub every: u64,
    /// Milliseconds after which signatures are renewed; 0: never.
    pub renew: u64,
    /// Milliseconds after which a signature does not count any more; `u64::MAX`: it always does.
    pub max_age: u64,
    /// Root keys: one, or two while the root changes.
    pub roots: Vec<PublicKey>,
    /// Keys that may sign; no two for one period.
    pub keys: Vec<SigningKey>,
}

impl Manifest {
    fn body(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        writer.byte(1).string(&self.definition.to_bytes());
        for number in [self.serial, self.issued, self.every, self.renew, self.max_age] {
            writer.number(number);
        }
        writer.number(self.roots.len() as u64);
        for root in &self.roots {
            writer.raw(&root.to_bytes());
        }
        writer.number(self.keys.len() as u64);
        for key in &self.keys {
            writer.raw(&key.key.to_bytes()).number(key.from_period).number(key.until_period).number(key.expires);
        }
        writer.0
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        if reader.byte()? != 1 {
            return Err(Malformed("a manifest of a version that is not known"));
        }
        let definition = Definition::from_bytes(reader.string()?)?;
        let mut numbers = [0; 5];
        for number in &mut numbers {
            *number = reader.number()?;
        }
        let [serial, issued, every, renew, max_age] = numbers;
        let mut roots = Vec::new();
        for _ in 0..reader.count()? {
            roots.push(read_key(reader)?);
            if roots.len() > ROOTS_MAX {
                return Err(reader.malformed());
            }
        }
        let mut keys: Vec<SigningKey> = Vec::new();
        for _ in 0..reader.count()? {
            let key = read_key(reader)?;
            let (from_period, until_period, expires) = (reader.number()?, reader.number()?, reader.number()?);
            keys.push(SigningKey { key, from_period, until_period, expires });
            if keys.len() > KEYS_MAX {
                return Err(reader.malformed());
            }
        }
        let manifest = Self { definition, serial, issued, every, renew, max_age, roots, keys };
        manifest.check()?;
        Ok(manifest)
    }

    fn check(&self) -> Result<(), Malformed> {
        let in_order = self.keys.windows(2).all(|pair| pair[0].until_period <= pair[1].from_period);
        let not_empty = self.keys.iter().all(|key| key.from_period < key.until_period);
        let is_twice = |at: usize| self.keys[..at].iter().any(|before| before.key == self.keys[at].key);
        let none = self.roots.is_empty() || self.keys.is_empty();
        if none || !in_order || !not_empty || (0..self.keys.len()).any(is_twice) {
            return Err(Malformed("a manifest without keys, with one of them twice, or with two keys for one period"));
        }
        if self.roots.len() > ROOTS_MAX || self.keys.len() > KEYS_MAX {
            return Err(Malformed("a manifest of more than two root keys or sixteen signing keys"));
        }
        self.definition.check()
    }

    fn message(body: &[u8]) -> Message {
        Message(digest("counterfoil/manifest/1", &[body]))
    }

    /// Signs it with the secret of each root and each signing key, in their order, and gives what a mirror serves.
    ///
    /// # Errors
    /// [`Malformed`]: not a manifest that a reader would accept, or other secrets than it lists keys.
    pub fn sign(&self, secrets: &[&SecretKey]) -> Result<Vec<u8>, Malformed> {
        self.check()?;
        let publics = self.roots.iter().chain(self.keys.iter().map(|key| &key.key));
        if secrets.len() != self.roots.len() + self.keys.len()
            || !publics.zip(secrets).all(|(public, secret)| secret.public() == *public)
        {
            return Err(Malformed("a manifest is signed by each of its keys"));
        }
        let body = self.body();
        let message = Self::message(&body);
        let mut writer = Writer::default();
        writer.string(&body);
        for secret in secrets {
            writer.raw(&secret.sign(&message).to_bytes());
        }
        Ok(writer.0)
    }

    /// What a manifest says that nobody has checked: for whoever wants to know what he is about to overwrite.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn unchecked(bytes: &[u8]) -> Result<Self, Malformed> {
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(Malformed("a manifest of more than a megabyte"));
        }
        let mut reader = Reader::new(bytes, "a manifest");
        let mut inner = Reader::new(reader.string()?, "a manifest");
        let manifest = Self::read(&mut inner)?;
        inner.end()?;
        Ok(manifest)
    }

    /// The key that signs `period`.
    #[must_use]
    pub fn key_of(&self, period: u64) -> Option<&SigningKey> {
        self.keys.iter().find(|key| (key.from_period..key.until_period).contains(&period))
    }
}

fn read_key(reader: &mut Reader<'_>) -> Result<PublicKey, Malformed> {
    PublicKey::from_bytes(&reader.array::<96>()?).map_err(|_| Malformed("a key in a manifest"))
}

/// A manifest that its owner signed. There is no other way to make one than to check it.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustedManifest {
    manifest: Manifest,
    digest: Digest,
}

impl TrustedManifest {
    /// Checks what a mirror serves against the owner that the reader knows and the highest serial that it has seen.
    ///
    /// # Errors
    /// [`Refusal::Malformed`], [`Refusal::Forged`]: not signed by this owner; [`Refusal::Stale`]: an older one than seen.
    pub fn check(bytes: &[u8], owner: &Owner, seen_serial: u64) -> Result<Self, Refusal> {
        if bytes.len() > MANIFEST_BYTES_MAX {
            return Err(Malformed("a manifest of more than a megabyte").into());
        }
        let mut reader = Reader::new(bytes, "a manifest");
        let body = reader.string()?;
        let mut inner = Reader::new(body, "a manifest");
        let manifest = Manifest::read(&mut inner)?;
        inner.end()?;
        if !manifest.roots.iter().any(|root| Owner::of(root) == *owner) {
            return Err(Refusal::Forged("the manifest is another owner's"));
        }
        let message = Manifest::message(body);
        for key in manifest.roots.iter().chain(manifest.keys.iter().map(|key| &key.key)) {
            let signature =
                Signature::from_bytes(reader.raw(48)?).map_err(|_| Malformed("a signature of a manifest"))?;
            verify(key, &[message], None, &signature)
                .map_err(|_| Refusal::Forged("the manifest does not carry its owner's signature"))?;
        }
        reader.end()?;
        if manifest.serial < seen_serial {
            return Err(Refusal::Stale("an older manifest than one that was seen already"));
        }
        Ok(Self { manifest, digest: message.0 })
    }

    /// What it says.
    #[must_use]
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The owner's current name: another one than the reader knows once the root has changed.
    #[must_use]
    pub fn owner(&self) -> Owner {
        Owner::of(&self.manifest.roots[0])
    }

    /// Tells two manifests apart.
    #[must_use]
    pub fn digest(&self) -> &Digest {
        &self.digest
    }
}
