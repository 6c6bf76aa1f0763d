//! The header of a volume, for hosts: a device has its key without one, and never reads it.

use core::ffi::{c_int, c_void};

use counterfoil_vault::{HEADER_BYTES, MadeHeader, VolumeKey};

use super::{Tables, code_of_log, list};
use crate::{Key, MISUSE, OK};

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
        let put = self.writer.put_header(&made);
        self.relations.committed(&self.writer);
        put.map_or_else(|error| code_of_log(&error), |()| OK)
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
