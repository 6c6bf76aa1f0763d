//! The name by which readers know an owner: `foilpub1` and 32 bytes, with a checksum against slips of the hand.

use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use bech32::primitives::decode::CheckedHrpstring;
use bech32::{Bech32m, Hrp};

use crate::digest::digest;
use crate::signature::PublicKey;

const PREFIX: Hrp = Hrp::parse_unchecked("foilpub");

/// The digest of an owner's root key. It is all that a reader needs to be told, once, by a way that can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Owner([u8; 32]);

/// A text that is no owner's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoOwner;

impl fmt::Display for NoOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an owner is foilpub1 and 58 letters and digits; one of them is wrong, or some are missing")
    }
}

impl core::error::Error for NoOwner {}

impl Owner {
    /// The owner with this root key.
    #[must_use]
    pub fn of(root: &PublicKey) -> Self {
        Self(digest("counterfoil/owner/1", &[&root.to_bytes()]))
    }

    /// The owner of these 32 bytes, such as another program kept them.
    #[must_use]
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The 32 bytes behind the name.
    #[must_use]
    pub fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: String = bech32::encode::<Bech32m>(PREFIX, &self.0).map_err(|_| fmt::Error)?;
        f.write_str(&text)
    }
}

impl FromStr for Owner {
    type Err = NoOwner;

    fn from_str(text: &str) -> Result<Self, NoOwner> {
        let parsed = CheckedHrpstring::new::<Bech32m>(text).map_err(|_| NoOwner)?;
        let mut bytes = parsed.byte_iter();
        let mut digest = [0; 32];
        for byte in &mut digest {
            *byte = bytes.next().ok_or(NoOwner)?;
        }
        if parsed.hrp() != PREFIX || bytes.next().is_some() { Err(NoOwner) } else { Ok(Self(digest)) }
    }
}
