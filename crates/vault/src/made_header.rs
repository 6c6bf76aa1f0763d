//! A header that was made elsewhere, in the hands of a device that only puts it in its place: nothing here needs an allocator,
//! and no slot is opened.
//!
//! The bytes are those of `header`. A device has its volume key otherwise; a header of that key lets a host open what the device
//! wrote, with a secret of its own.

use hmac::Mac;
use sha2::{Digest, Sha256};

use crate::keys::{Purpose, Root, mac_under};
use crate::{CounterKind, DatabaseId, FORMAT, SlotsDigest, Suite, VolumeKey};

/// Bytes of one copy of the header; smaller pages hold it in several.
pub const HEADER_BYTES: usize = 2048;
/// What every header begins with.
pub const MAGIC: [u8; 8] = *b"\x89CFOIL\r\n";
pub(crate) const LEAST_COMMIT_AT: usize = 96;
pub(crate) const CHECK_AT: usize = 1920;
pub(crate) const CHECK_END: usize = CHECK_AT + 32;

/// What a header must say of the volume that it is put on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeaderShape {
    /// The database's name.
    pub id: DatabaseId,
    /// The page cipher.
    pub suite: Suite,
    /// Bytes in a page.
    pub page_bytes: u32,
    /// Pages in an extent.
    pub extent_pages: u32,
    /// The first extent of the record window, and how many there are.
    pub record_extents: (u64, u64),
    /// Bytes of the whole volume.
    pub size_limit: u64,
}

/// A header that the holder of the volume key made.
pub struct MadeHeader<'b> {
    bytes: &'b [u8; HEADER_BYTES],
}

impl<'b> MadeHeader<'b> {
    /// Takes a header; none if these are no bytes of one, or not made under this key.
    pub fn new(bytes: &'b [u8], volume_key: &VolumeKey) -> Option<Self> {
        let bytes: &[u8; HEADER_BYTES] = bytes.try_into().ok()?;
        let (id, suite) = (DatabaseId(field(bytes, 16)), Suite::from_number(bytes[12])?);
        let is_header = bytes[..8] == MAGIC && u16::from_le_bytes(field(bytes, 8)) == FORMAT;
        let check = check_value(&bytes[..CHECK_AT], volume_key, id, suite);
        let holds = check.verify_slice(&bytes[CHECK_AT..CHECK_END]).is_ok();
        (is_header && holds).then_some(MadeHeader { bytes })
    }

    /// Whether it is one for a volume of this shape, whose counter no host has.
    pub fn is_for(&self, shape: &HeaderShape) -> bool {
        let (bytes, (first, extents)) = (self.bytes, shape.record_extents);
        Suite::from_number(bytes[12]) == Some(shape.suite)
            && bytes[13] == CounterKind::None.number()
            && DatabaseId(field(bytes, 16)) == shape.id
            && u32::from_le_bytes(field(bytes, 48)) == shape.page_bytes
            && u32::from_le_bytes(field(bytes, 52)) == shape.extent_pages
            && u64::from_le_bytes(field(bytes, 56)) == first
            && u64::from_le_bytes(field(bytes, 64)) == extents
            && u64::from_le_bytes(field(bytes, 72)) == shape.size_limit
    }

    /// It, byte for byte.
    pub fn bytes(&self) -> &'b [u8; HEADER_BYTES] {
        self.bytes
    }

    /// What the counter-bound root holds of this header.
    pub fn slots_digest(&self) -> SlotsDigest {
        digest_of(self.bytes)
    }
}

/// The digest of a header's head and slots: what a backup says of its least commit is not part of it.
pub(crate) fn digest_of(bytes: &[u8; HEADER_BYTES]) -> SlotsDigest {
    let mut digest = Sha256::new();
    digest.update(&bytes[..LEAST_COMMIT_AT]);
    digest.update([0; 8]);
    digest.update(&bytes[LEAST_COMMIT_AT + 8..CHECK_AT]);
    SlotsDigest(digest.finalize().into())
}

pub(crate) fn check_value(bytes: &[u8], volume_key: &VolumeKey, id: DatabaseId, suite: Suite) -> impl Mac + use<> {
    let mut mac = mac_under(&Root::new(volume_key, id, suite).derive_fixed(Purpose::Header));
    mac.update(bytes);
    mac
}

pub(crate) fn field<const BYTES: usize>(bytes: &[u8; HEADER_BYTES], at: usize) -> [u8; BYTES] {
    let mut field = [0; BYTES];
    field.copy_from_slice(&bytes[at..at + BYTES]);
    field
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use crate::{ArgonCost, DangerFixedEntropy, Header, KeyFile, Secret, VolumeLayout};

    const SHAPE: HeaderShape = HeaderShape {
        id: DatabaseId([3; 32]),
        suite: Suite::AsconAead128,
        page_bytes: 512,
        extent_pages: 16,
        record_extents: (2, 8),
        size_limit: 96 * 16 * 512,
    };

    #[test]
    fn a_header_is_taken_under_its_key_for_its_volume() {
        let key = VolumeKey::from_bytes(&[7; 32]);
        let (first, extents) = SHAPE.record_extents;
        let layout = VolumeLayout {
            page_bytes: SHAPE.page_bytes,
            extent_pages: SHAPE.extent_pages,
            record_first_extent: first,
            record_extents: extents,
            size_limit: SHAPE.size_limit,
        };
        let entropy = &mut DangerFixedEntropy::seeded(1);
        let mut header = Header::new(SHAPE.id, SHAPE.suite, CounterKind::None, layout, 9).unwrap();
        let file = KeyFile::generate(entropy).unwrap();
        header.add_slot(&Secret::KeyFile(&file), &ArgonCost::HOST, &key, 9, entropy).unwrap();
        let bytes = header.encode(&key);
        let made = MadeHeader::new(&bytes, &key).unwrap();
        assert!(made.is_for(&SHAPE));
        assert_eq!(made.slots_digest(), header.slots_digest());
        for other in [
            HeaderShape { id: DatabaseId([4; 32]), ..SHAPE },
            HeaderShape { suite: Suite::Aes256GcmSiv, ..SHAPE },
            HeaderShape { page_bytes: 256, ..SHAPE },
            HeaderShape { extent_pages: 32, ..SHAPE },
            HeaderShape { record_extents: (2, 16), ..SHAPE },
            HeaderShape { record_extents: (3, 8), ..SHAPE },
            HeaderShape { size_limit: 0, ..SHAPE },
        ] {
            assert!(!made.is_for(&other), "{other:?}");
        }
        assert!(MadeHeader::new(&bytes, &VolumeKey::from_bytes(&[8; 32])).is_none(), "another key");
        assert!(MadeHeader::new(&bytes[1..], &key).is_none(), "no whole header");
        for at in (0..CHECK_END).step_by(7) {
            let mut broken = bytes.clone();
            broken[at] ^= 1;
            assert!(MadeHeader::new(&broken, &key).is_none(), "byte {at}");
        }
    }
}
