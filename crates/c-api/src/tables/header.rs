//! The header of a volume, for hosts: a device has its key without one, and never reads it.
//!
//! ```text
//! root names old and new -> copy A -> copy B -> root names the new one      a cut between: one that the root names is there
//! ```

use alloc::vec::Vec;
use core::ffi::{c_int, c_void};

use counterfoil_flash::PageNumber;
use counterfoil_log::{HEADER_EXTENTS, View, record_space};
use counterfoil_relation::Error;
use counterfoil_vault::{HEADER_BYTES, MadeHeader, RootDigests, VolumeKey};

use super::{Tables, code_of_log, list};
use crate::{Key, MISUSE, OK};

/// What a root says of the header (SPEC.md, "header").
const RECORD: &[u8] = b"header";
/// Not made under this key, and not for this device.
const TAMPERED: c_int = -2;
const GEOMETRY: c_int = -15;

impl Tables {
    fn put_header(&mut self, key: &Key, bytes: &[u8]) -> c_int {
        if self.writer.is_active() {
            return MISUSE;
        }
        let made = bytes.get(..HEADER_BYTES);
        let Some(made) = made.and_then(|made| MadeHeader::new(made, &VolumeKey::from_bytes(&key.volume_key))) else {
            return TAMPERED;
        };
        if !made.is_for(&self.shape) {
            return GEOMETRY;
        }
        let page_bytes = self.shape.page_bytes as usize;
        let mut copy = Vec::from(bytes);
        copy.resize(HEADER_BYTES.next_multiple_of(page_bytes), 0);
        let current = made.slots_digest();
        let before = self.writer.record(record_space::SETTING, RECORD);
        let before = before.and_then(|before| <[u8; 64]>::try_from(&*before).ok());
        let change = before.map_or(RootDigests::settled(current), |before| {
            let before = RootDigests::decode(&before).current;
            RootDigests { current: before, next: (before != current).then_some(current) }
        });
        let mut done = self.put_digests(&change);
        for extent in 0..HEADER_EXTENTS {
            if done == OK {
                let first = PageNumber(u64::from(extent) * u64::from(self.shape.extent_pages));
                done = self.writer.write_header(first, &copy).map_or_else(|error| code_of_log(&error), |()| OK);
            }
        }
        if done == OK { self.put_digests(&RootDigests::settled(current)) } else { done }
    }

    fn put_digests(&mut self, digests: &RootDigests) -> c_int {
        let done = self.change(|_, writer| {
            let put = writer.put_record(record_space::SETTING, RECORD, &digests.encode());
            put.map_err(|source| Error::of_log("", source))
        });
        if done == OK { self.commit() } else { done }
    }
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_tables_put_header(
    tables: *mut Tables,
    key: *const Key,
    header: *const c_void,
    header_bytes: usize,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (tables.as_mut(), key.as_ref(), list(header.cast::<u8>(), header_bytes)) };
    let (Some(tables), Some(key), Some(header)) = given else { return MISUSE };
    tables.put_header(key, header)
}
