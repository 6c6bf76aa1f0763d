//! Opening roots: pages whose nonce is made from their contents.
//!
//! A power cut can make an opening be written twice at one place with other contents, before anything told the two
//! apart. So the key of such a page is derived from a MAC of its place and contents, the *synthetic value*, which
//! stands in the page: equal key then means equal bytes, and no random bytes are needed to open it.
//!
//! ```text
//! page:  0 .......... payload .......... page-48 | synthetic value [32] | tag [16]
//! synthetic value = HMAC-SHA-256(key of its own, associated data || payload)
//! key   = HKDF-Expand(root, info head of (opening, version, allocation) || synthetic value)
//! nonce = position;  associated data = as of every page, with the version in the place of the epoch
//! ```
//! 1. A page opens only if the contents found give the synthetic value that it carries.

use hmac::Mac;
use subtle::ConstantTimeEq;

use crate::cipher::Cipher;
use crate::keys::{Purpose, mac_under};
use crate::page::{OPENING_BYTES, Opened, Plain, Sealed, TAG_BYTES, Tag, unsealable};
use crate::place::associated_data;
use crate::{Kind, Tampered, Vault};

/// Bytes of a synthetic value.
const VALUE_BYTES: usize = OPENING_BYTES - TAG_BYTES;

impl Vault {
    /// Seals an opening root of this `version`. The last [`OPENING_BYTES`] bytes of the page are not payload.
    ///
    /// # Panics
    /// With `std` (without it the page is wiped) on a page without room for synthetic value and tag.
    pub fn seal_opening<'a>(&self, allocation: u64, position: u32, version: u64, page: Plain<'a>) -> Sealed<'a> {
        let Some((payload, tail)) = page.0.split_last_chunk_mut::<OPENING_BYTES>() else {
            return unsealable(page, "a page has room for its synthetic value and tag");
        };
        let associated = associated_data(Kind::Opening, allocation, position, version);
        let value = self.synthetic_value(&associated, payload);
        let key = self.root.derive_opening(allocation, version, &value);
        #[cfg(feature = "witness")]
        crate::witness::observe_synthetic(&*key, u64::from(position), payload);
        let tag = Cipher::new(self.suite(), &key).seal(u64::from(position), &associated, payload);
        tail[..VALUE_BYTES].copy_from_slice(&value);
        tail[VALUE_BYTES..].copy_from_slice(&tag);
        Sealed(page.0)
    }

    /// Opens a page that should be the opening root of this `version` at this place.
    ///
    /// # Errors
    /// [`Tampered`] if it is not.
    pub fn open_opening<'a>(
        &self,
        allocation: u64,
        position: u32,
        version: u64,
        page: Sealed<'a>,
    ) -> Result<Opened<'a>, Tampered> {
        let tampered = Tampered { kind: Kind::Opening, allocation, position };
        let page = page.0;
        let (payload, tail) = page.split_last_chunk_mut::<OPENING_BYTES>().ok_or(tampered)?;
        let (Some(value), Some(tag)) = (tail.first_chunk::<VALUE_BYTES>(), tail.last_chunk::<TAG_BYTES>()) else {
            return Err(tampered);
        };
        let tag: Tag = *tag;
        let associated = associated_data(Kind::Opening, allocation, position, version);
        let key = self.root.derive_opening(allocation, version, value);
        if !Cipher::new(self.suite(), &key).open(u64::from(position), &associated, payload, &tag) {
            return Err(tampered);
        }
        if !bool::from(self.synthetic_value(&associated, payload).ct_eq(value)) {
            return Err(tampered);
        }
        let payload_bytes = page.len() - OPENING_BYTES;
        Ok(Opened { page, payload_bytes })
    }

    fn synthetic_value(&self, associated: &[u8], payload: &[u8]) -> [u8; VALUE_BYTES] {
        let mut mac = mac_under(&self.root.derive_fixed(Purpose::OpeningValue));
        mac.update(associated);
        mac.update(payload);
        mac.finalize().into_bytes().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{DatabaseId, Suite, VolumeKey};

    #[test]
    fn contents_that_do_not_give_the_value_are_refused_even_under_a_good_tag() {
        let vault = Vault::new(&VolumeKey::from_bytes(&[1; 32]), DatabaseId([2; 32]), Suite::Aes256Gcm);
        let (mut page, value) = ([7; 128], [9; VALUE_BYTES]);
        let payload_bytes = page.len() - OPENING_BYTES;
        let associated = associated_data(Kind::Opening, 3, 4, 5);
        let cipher = Cipher::new(vault.suite(), &vault.root.derive_opening(3, 5, &value));
        let tag = cipher.seal(4, &associated, &mut page[..payload_bytes]);
        page[payload_bytes..payload_bytes + VALUE_BYTES].copy_from_slice(&value);
        page[payload_bytes + VALUE_BYTES..].copy_from_slice(&tag);
        assert!(vault.open_opening(3, 4, 5, Sealed::from_medium(&mut page)).is_err());
    }
}
