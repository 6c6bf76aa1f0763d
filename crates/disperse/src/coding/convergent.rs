//! Values sealed under keys that they give themselves: equal values have equal cells, so that a store keeps one of them (convergent
//! encryption with a convergence secret, as Tahoe-LAFS has it). `danger`: that they are equal shows, wherever and whenever they come.
//!
//! ```text
//! key    = HMAC-SHA256(convergence secret, 00 | value)
//! cell   = wrapped key [48] | AES-256-GCM-SIV(key; nonce nought, no associated data; padded value)             16 bytes longer than that
//! wrapped = AES-256-GCM-SIV(HMAC-SHA256(convergence secret, 01); nonce nought, no associated data; key)
//! padded = the value | 80 | 00 ..., up to the next class of cells
//! ```
//! 1. Whoever holds cells learns which values are equal, how often each comes, and the class of their lengths; across columns, tables and
//!    epochs too, where they have one secret. Who can have a value stored, and sees whether its cell was there before, has guessed it.
//!    So it is never the coding of a column of few values, nor one that is taken unless somebody says `danger`.
//! 2. Without the secret nobody makes a cell of a guess: a plain hash as the key would let everybody.
//! 3. A value's key opens its cell alone, and can be given away for that.
//! 4. A cell opens if its value gives its key; no other bytes do, and it does not matter where it lies. It names no row: whoever holds cells
//!    can put one in another's place, and only what is kept beside it tells.

use aead::{AeadInOut as _, KeyInit as _};
use aes_gcm_siv::{Aes256GcmSiv, Nonce, Tag};
use hmac::Mac as _;
use zeroize::Zeroizing;

use crate::coding::cells::{NotSealedHere, class};
use crate::keys::Secret;

const TAG_BYTES: usize = 16;
/// Bytes of a key as a cell has it.
const WRAPPED_BYTES: usize = 32 + TAG_BYTES;

/// What seals and opens cells that show which values are equal.
pub struct DangerConvergent {
    secret: Secret,
    wrapping: Aes256GcmSiv,
}

impl DangerConvergent {
    /// Under a convergence secret: what has the same one shows equal values to whoever holds cells.
    #[must_use]
    pub fn new(secret: Secret) -> Self {
        let wrapping = derived(&secret, 1, &[]);
        Self { secret, wrapping: Aes256GcmSiv::new(wrapping.expose().into()) }
    }

    /// The key that a value gives.
    #[must_use]
    pub fn key(&self, value: &[u8]) -> Secret {
        derived(&self.secret, 0, value)
    }

    /// Appends the cell of a value.
    pub fn seal(&self, value: &[u8], cell: &mut Vec<u8>) {
        let key = self.key(value);
        let start = cell.len();
        cell.extend_from_slice(key.expose());
        seal(&self.wrapping, cell, start);
        let start = cell.len();
        cell.extend_from_slice(value);
        cell.push(0x80);
        cell.resize(start + class(value.len() + 1), 0);
        seal(&Aes256GcmSiv::new(key.expose().into()), cell, start);
    }

    /// The value of a cell.
    ///
    /// # Errors
    /// [`NotSealedHere`]: nobody with this secret sealed it.
    pub fn open(&self, cell: &[u8]) -> Result<Vec<u8>, NotSealedHere> {
        let wrapped = cell.get(..WRAPPED_BYTES).ok_or(NotSealedHere)?;
        let key = Zeroizing::new(opened(&self.wrapping, wrapped)?);
        let key = Secret::new(*key.first_chunk().ok_or(NotSealedHere)?);
        let value = open_with(&key, cell)?;
        // Somebody who was given a key can seal another value under it.
        let is_own = self.key(&value).expose() == key.expose();
        if is_own { Ok(value) } else { Err(NotSealedHere) }
    }
}

/// The value of a cell of which the key was given.
///
/// # Errors
/// [`NotSealedHere`].
pub fn open_with(key: &Secret, cell: &[u8]) -> Result<Vec<u8>, NotSealedHere> {
    let sealed = cell.get(WRAPPED_BYTES..).ok_or(NotSealedHere)?;
    let mut value = opened(&Aes256GcmSiv::new(key.expose().into()), sealed)?;
    let end = value.iter().rposition(|byte| *byte != 0).filter(|end| value[*end] == 0x80);
    value.truncate(end.ok_or(NotSealedHere)?);
    Ok(value)
}

fn derived(secret: &Secret, kind: u8, value: &[u8]) -> Secret {
    let mut mac = secret.mac();
    mac.update(&[kind]);
    mac.update(value);
    Secret::new(mac.finalize().into_bytes().into())
}

fn seal(cipher: &Aes256GcmSiv, cell: &mut Vec<u8>, start: usize) {
    let sealed = cipher.encrypt_inout_detached(&Nonce::default(), &[], (&mut cell[start..]).into());
    let Ok(tag) = sealed else { unreachable!("a value is shorter than what a cipher takes") };
    cell.extend_from_slice(&tag);
}

fn opened(cipher: &Aes256GcmSiv, sealed: &[u8]) -> Result<Vec<u8>, NotSealedHere> {
    let (sealed, tag) = sealed.split_last_chunk::<TAG_BYTES>().ok_or(NotSealedHere)?;
    let mut plain = sealed.to_vec();
    let tag = Tag::from(*tag);
    let opened = cipher.decrypt_inout_detached(&Nonce::default(), &[], plain.as_mut_slice().into(), &tag);
    opened.map(|()| plain).map_err(|_| NotSealedHere)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{DangerConvergent, open_with, seal};
    use crate::coding::cells::NotSealedHere;
    use crate::keys::Secret;
    use aead::KeyInit as _;

    fn convergent(secret: u8) -> DangerConvergent {
        DangerConvergent::new(Secret::new([secret; 32]))
    }

    fn cell(of: &DangerConvergent, value: &[u8]) -> Vec<u8> {
        let mut cell = Vec::new();
        of.seal(value, &mut cell);
        cell
    }

    proptest! {
        #[test]
        fn equal_values_have_equal_cells_that_open_whole_or_not_at_all(
            value in prop::collection::vec(any::<u8>(), 0..300),
            other in prop::collection::vec(any::<u8>(), 0..300),
            bit in any::<prop::sample::Index>(),
            noise in prop::collection::vec(any::<u8>(), 0..200),
        ) {
            let (own, others) = (convergent(61), convergent(62));
            let mut sealed = cell(&own, &value);
            prop_assert_eq!(own.open(&sealed), Ok(value.clone()));
            prop_assert_eq!(open_with(&own.key(&value), &sealed), Ok(value.clone()));
            prop_assert_eq!(cell(&own, &value) == cell(&own, &other), value == other);
            prop_assert_ne!(&cell(&others, &value), &sealed);
            prop_assert_eq!(others.open(&sealed), Err(NotSealedHere));
            let bit = bit.index(sealed.len() * 8);
            sealed[bit / 8] ^= 1 << (bit % 8);
            prop_assert_eq!(own.open(&sealed), Err(NotSealedHere));
            prop_assert_eq!(own.open(&noise), Err(NotSealedHere));
        }
    }

    #[test]
    fn values_of_one_class_have_cells_of_one_length() {
        let own = convergent(61);
        assert_eq!(cell(&own, b"").len(), cell(&own, &[7; 15]).len());
        assert_ne!(cell(&own, b"").len(), cell(&own, &[7; 16]).len());
    }

    #[test]
    fn who_was_given_a_key_puts_no_other_value_under_it() {
        let own = convergent(61);
        let mut forged = cell(&own, b"what was said")[..48].to_vec();
        let start = forged.len();
        forged.extend_from_slice(b"and never was\x80\0\0");
        seal(&aes_gcm_siv::Aes256GcmSiv::new(own.key(b"what was said").expose().into()), &mut forged, start);
        assert_eq!(open_with(&own.key(b"what was said"), &forged), Ok(b"and never was".to_vec()));
        assert_eq!(own.open(&forged), Err(NotSealedHere));
    }
}
