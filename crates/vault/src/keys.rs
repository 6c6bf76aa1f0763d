//! The volume key, the database's name, and the derivation of every other key from the two.
//!
//! ```text
//! volume key (32 random bytes) --HKDF-Extract, salt = database id--> root
//! root --HKDF-Expand, info--> one key per purpose, epoch and allocation
//!
//! info:  0 "counterfoil/key\0" | 16 suite u8 | 17 format u16 | 19 purpose u8
//!       20 epoch number u64    | 28 allocation u64 | 36 epoch salt [16], or synthetic value [32]
//! ```
//! 1. Every field has a fixed width and the label a fixed length, so no two inputs spell the same info; the two
//!    lengths of info (52 and 68 bytes) keep opening keys apart from all others.
//! 2. A purpose number is given once and never again.

use core::fmt;

use hkdf::Hkdf;
use hmac::{Hmac, KeyInit};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

use crate::{Entropy, Epoch, Kind, NoEntropy, Suite};

/// The version of the byte layouts of this crate.
pub const FORMAT: u16 = 1;

const LABEL: &[u8; 16] = b"counterfoil/key\0";
const CATALOGUE_LABEL: &[u8] = b"counterfoil/catalogue\0";
const INFO_HEAD_BYTES: usize = 36;

/// The secret that seals a database. Never printed, never cloned by accident, overwritten when dropped.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_vault::VolumeKey>();
/// ```
/// ```compile_fail
/// fn needs_clone<T: Clone>() {}
/// needs_clone::<counterfoil_vault::VolumeKey>();
/// ```
#[derive(Zeroize, ZeroizeOnDrop)]
pub struct VolumeKey([u8; 32]);

impl VolumeKey {
    /// Draws a new key.
    ///
    /// # Errors
    /// [`NoEntropy`]: a key is never made without a generator.
    pub fn generate(entropy: &mut dyn Entropy) -> Result<VolumeKey, NoEntropy> {
        let mut bytes = Zeroizing::new([0; 32]);
        entropy.fill(&mut *bytes)?;
        Ok(VolumeKey(*bytes))
    }

    /// A key from its bytes: shares put together again, a device's erasable slot.
    pub fn from_bytes(bytes: &[u8; 32]) -> VolumeKey {
        VolumeKey(*bytes)
    }

    /// What seals the catalogue of dispersed tables at clouds. Whoever brings a database back has its shares alone, and does not know its
    /// cipher: so it does not depend on that.
    pub fn catalogue_secret(&self, id: DatabaseId) -> Zeroizing<[u8; 32]> {
        let mut secret = Zeroizing::new([0; 32]);
        let wide_enough = Hkdf::<Sha256>::new(Some(&id.0), &self.0).expand(CATALOGUE_LABEL, &mut *secret);
        assert!(wide_enough.is_ok(), "HKDF-SHA-256 gives up to 8160 bytes");
        secret
    }

    /// A second owner of the same secret, made on purpose.
    pub fn duplicate(&self) -> VolumeKey {
        VolumeKey(self.0)
    }

    /// The secret itself, for whoever wraps or splits it.
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }
}

/// The name of a database: 32 random bytes, no secret.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DatabaseId(pub [u8; 32]);

impl DatabaseId {
    /// Draws a new name.
    ///
    /// # Errors
    /// [`NoEntropy`].
    pub fn generate(entropy: &mut dyn Entropy) -> Result<DatabaseId, NoEntropy> {
        let mut bytes = [0; 32];
        entropy.fill(&mut bytes)?;
        Ok(DatabaseId(bytes))
    }
}

impl fmt::Display for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for DatabaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseId({self})")
    }
}

/// What a derived key is for (SPEC, "vault: purposes"). Page kinds stand for themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    Page(Kind),
    /// The committing check of the header.
    Header,
    /// The synthetic value of opening pages.
    OpeningValue,
    /// The MAC of a file counter's slots.
    #[cfg(feature = "std")]
    Counter,
    /// The blocks of small cells, their tweaks, and the MAC of a page of them.
    #[cfg(feature = "cells")]
    CellBlock,
    #[cfg(feature = "cells")]
    CellTweak,
    #[cfg(feature = "cells")]
    CellMac,
    /// The secret of a counter in a TPM.
    #[cfg(feature = "tpm")]
    TpmCounter,
}

impl Purpose {
    pub(crate) fn number(self) -> u8 {
        match self {
            Purpose::Page(kind) => kind.number(),
            Purpose::Header => 16,
            Purpose::OpeningValue => 17,
            #[cfg(feature = "std")]
            Purpose::Counter => 18,
            #[cfg(feature = "cells")]
            Purpose::CellBlock => 19,
            #[cfg(feature = "cells")]
            Purpose::CellTweak => 20,
            #[cfg(feature = "cells")]
            Purpose::CellMac => 21,
            #[cfg(feature = "tpm")]
            Purpose::TpmCounter => 24,
        }
    }
}

/// The root of all keys of one database, ready to derive.
pub(crate) struct Root {
    hkdf: Hkdf<Sha256>,
    suite: Suite,
}

impl Root {
    pub(crate) fn new(volume_key: &VolumeKey, id: DatabaseId, suite: Suite) -> Root {
        Root { hkdf: Hkdf::new(Some(&id.0), &volume_key.0), suite }
    }

    pub(crate) fn suite(&self) -> Suite {
        self.suite
    }

    /// The key for `purpose` in this epoch and allocation; 16-byte keys are the first half.
    pub(crate) fn derive(&self, purpose: Purpose, allocation: u64, epoch: &Epoch) -> Zeroizing<[u8; 32]> {
        self.expand(&self.info_head(purpose, epoch.number, allocation), &epoch.salt)
    }

    /// A key that holds for the whole life of the database.
    pub(crate) fn derive_fixed(&self, purpose: Purpose) -> Zeroizing<[u8; 32]> {
        self.derive(purpose, 0, &Epoch { number: 0, salt: [0; 16] })
    }

    /// The key of one opening page, told apart by its synthetic value.
    pub(crate) fn derive_opening(&self, allocation: u64, version: u64, value: &[u8; 32]) -> Zeroizing<[u8; 32]> {
        self.expand(&self.info_head(Purpose::Page(Kind::Opening), version, allocation), value)
    }

    fn info_head(&self, purpose: Purpose, epoch: u64, allocation: u64) -> [u8; INFO_HEAD_BYTES] {
        let mut info = [0; INFO_HEAD_BYTES];
        info[..16].copy_from_slice(LABEL);
        info[16] = self.suite.number();
        info[17..19].copy_from_slice(&FORMAT.to_le_bytes());
        info[19] = purpose.number();
        info[20..28].copy_from_slice(&epoch.to_le_bytes());
        info[28..36].copy_from_slice(&allocation.to_le_bytes());
        info
    }

    fn expand(&self, head: &[u8; INFO_HEAD_BYTES], tail: &[u8]) -> Zeroizing<[u8; 32]> {
        let mut key = Zeroizing::new([0; 32]);
        let wide_enough = self.hkdf.expand_multi_info(&[head, tail], &mut *key);
        assert!(wide_enough.is_ok(), "HKDF-SHA-256 gives up to 8160 bytes");
        key
    }
}

/// HMAC-SHA-256 under a 32-byte key.
pub(crate) fn mac_under(key: &[u8; 32]) -> Hmac<Sha256> {
    // The MAC's own key block is 64 bytes; HMAC fills shorter keys with zeros.
    let mut block = Zeroizing::new([0; 64]);
    block[..32].copy_from_slice(key);
    Hmac::new(&(*block).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_secret_of_the_catalogue_is_that_of_the_specification() {
        let key = VolumeKey(core::array::from_fn(|at| at as u8));
        let secret = key.catalogue_secret(DatabaseId([0x33; 32]));
        let hex: alloc::string::String = secret.iter().map(|byte| alloc::format!("{byte:02x}")).collect();
        assert!(include_str!("../../../SPEC.md").contains(&alloc::format!("secret `{hex}`")), "{hex}");
    }

    /// `name = value` lines in paragraphs; the first is a comment.
    #[test]
    fn keys_are_those_of_the_vectors() {
        let purposes = [
            Purpose::Page(Kind::Frame),
            Purpose::Page(Kind::Container),
            Purpose::Header,
            Purpose::OpeningValue,
            #[cfg(feature = "std")]
            Purpose::Counter,
            #[cfg(feature = "cells")]
            Purpose::CellBlock,
            #[cfg(feature = "cells")]
            Purpose::CellTweak,
            #[cfg(feature = "cells")]
            Purpose::CellMac,
            #[cfg(feature = "tpm")]
            Purpose::TpmCounter,
        ];
        let mut compared = 0;
        for vector in include_str!("../tests/vectors/keys.txt").split("\n\n").skip(1) {
            let text = |name: &str| {
                let line = vector.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
                line.unwrap_or_else(|| panic!("{name} in {vector}"))
            };
            let number = |name: &str| text(name).parse::<u64>().unwrap();
            let byte =
                |name: &str, index: usize| u8::from_str_radix(&text(name)[2 * index..2 * index + 2], 16).unwrap();
            let volume_key = VolumeKey::from_bytes(&core::array::from_fn(|index| byte("volume_key", index)));
            let id = DatabaseId(core::array::from_fn(|index| byte("database", index)));
            let root = Root::new(&volume_key, id, Suite::from_number(number("suite") as u8).unwrap());
            let epoch = Epoch { number: number("epoch"), salt: core::array::from_fn(|index| byte("salt", index)) };
            for purpose in purposes.iter().filter(|purpose| u64::from(purpose.number()) == number("purpose")) {
                let expected: [u8; 32] = core::array::from_fn(|index| byte("key", index));
                assert_eq!(*root.derive(*purpose, number("allocation"), &epoch), expected, "{vector}");
                compared += 1;
            }
        }
        assert_eq!(compared, 5 * purposes.len());
    }
}
