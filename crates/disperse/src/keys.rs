//! The keys of a dispersed table, all from one secret.
//!
//! ```text
//! key = HMAC-SHA256(table's secret, "counterfoil/disperse\0" | purpose u8 | column u16 | part u8 | epoch [16] or nought | place u16)
//! ```
//! 1. Every field has a fixed width: no two uses spell the same key.
//! 2. What hides a value by being used once (sealing, shares, exponents, pads) has a key per epoch. An epoch is begun by each process that
//!    opens the table to write, under 16 bytes of the system's generator: a database that was put back, or copied, goes on under
//!    another one, and no row number of the two meets under one key.
//! 3. What is to be compared between rows (tags, orders) has one key for all epochs: that it can be compared is what it leaks. What of it
//!    is a row's own (nonces of orders, tags of NULL) is of the row's number with a part of its epoch.
//! 4. A purpose's number is given once and never again.

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const LABEL: &[u8] = b"counterfoil/disperse\0";

/// What a key is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Purpose {
    /// Seals cells.
    Seal = 1,
    /// Draws the coefficients of shares.
    Shares = 2,
    /// Makes tags of values that are equal.
    Tag = 3,
    /// Makes codes that can be ordered.
    Order = 4,
    /// Gives rows their places.
    Places = 5,
    /// Gives tables and columns their names.
    Names = 6,
    /// Tells the owner's files from others.
    Files = 8,
    /// Seals an entry of the catalogue, whose salt stands for an epoch.
    Catalogue = 9,
    /// Marks a key of which shares were made.
    Split = 10,
    /// Gives the primes of a Paillier key.
    Primes = 20,
    /// Draws what hides numbers in Paillier ciphertexts.
    Exponents = 21,
    /// Draws pads.
    Pads = 22,
    /// Makes codes that are in order.
    Preserving = 23,
    /// Seals values under keys of their own.
    Convergence = 24,
}

/// The epoch of whoever writes: 16 bytes that no other one has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Epoch(pub [u8; 16]);

impl Epoch {
    /// The epoch of what all epochs share.
    pub const ALL: Self = Self([0; 16]);
}

/// Of what a key is, beside its purpose.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scope {
    /// The column's number; `u16::MAX`: the table.
    pub column: u16,
    /// Of a column in several parts (limbs, blocks of an order), the part.
    pub part: u8,
    /// Who wrote.
    pub epoch: Epoch,
    /// The provider's number, where providers have different keys.
    pub provider: u16,
}

impl Scope {
    /// A whole column, in all epochs, at all providers.
    #[must_use]
    pub fn column(column: u16) -> Self {
        Self { column, part: 0, epoch: Epoch::ALL, provider: 0 }
    }

    /// The table, in all epochs, at all providers.
    #[must_use]
    pub fn table() -> Self {
        Self::column(u16::MAX)
    }

    /// The table at one provider.
    #[must_use]
    pub fn provider(provider: u16) -> Self {
        Self { provider, ..Self::table() }
    }
}

/// 32 bytes that are a secret: never printed, overwritten when dropped.
///
/// ```compile_fail
/// fn needs_debug<T: core::fmt::Debug>() {}
/// needs_debug::<counterfoil_disperse::Secret>();
/// ```
#[derive(Clone, Zeroize, ZeroizeOnDrop)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A secret from 32 bytes of the system's generator, or of what was kept of it.
    #[must_use]
    pub fn new(bytes: [u8; 32]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self(*bytes)
    }

    /// The secret itself, for whoever keeps it sealed.
    #[must_use]
    pub fn expose(&self) -> &[u8; 32] {
        &self.0
    }

    /// The key of a use.
    #[must_use]
    pub fn derive(&self, purpose: Purpose, scope: &Scope) -> Self {
        let mut mac = self.mac();
        mac.update(LABEL);
        mac.update(&[purpose as u8]);
        mac.update(&scope.column.to_be_bytes());
        mac.update(&[scope.part]);
        mac.update(&scope.epoch.0);
        mac.update(&scope.provider.to_be_bytes());
        Self(mac.finalize().into_bytes().into())
    }

    /// HMAC-SHA256 under this secret.
    pub(crate) fn mac(&self) -> Hmac<Sha256> {
        Hmac::new_from_slice(&self.0).expect("any length is a key")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::{Epoch, Purpose, Scope, Secret};

    #[test]
    fn no_two_uses_share_a_key() {
        let secret = Secret::new([7; 32]);
        let mut keys = HashSet::new();
        let mut scopes = 0;
        for purpose in [Purpose::Seal, Purpose::Shares, Purpose::Tag, Purpose::Order, Purpose::Places, Purpose::Pads] {
            for column in [0, 1, 256, u16::MAX] {
                for part in [0, 1] {
                    for epoch in [Epoch::ALL, Epoch([1; 16])] {
                        for provider in [0, 1, 256] {
                            let scope = Scope { column, part, epoch, provider };
                            keys.insert(*secret.derive(purpose, &scope).expose());
                            scopes += 1;
                        }
                    }
                }
            }
        }
        assert_eq!(keys.len(), scopes);
        assert!(!keys.contains(Secret::new([8; 32]).derive(Purpose::Seal, &Scope::column(0)).expose()));
    }
}
