//! What a device does while it has time, and what it may ask of its store.

use core::ffi::c_int;

use counterfoil_record::alone::Purged;

use crate::{Handle, MISUSE, OK, answer, code, store};

/// More is to be done, or less was done than asked for.
const NOT_ALL: c_int = 1;

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_close_group(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promised.
    let Some(store) = (unsafe { store(handle) }) else { return MISUSE };
    answer(store.close_group())
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_prepare(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promised.
    let Some(store) = (unsafe { store(handle) }) else { return MISUSE };
    store.prepare().map_or_else(code, |is_more| if is_more { NOT_ALL } else { OK })
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_purge(handle: *mut Handle) -> c_int {
    // SAFETY: as the caller promised.
    let Some(store) = (unsafe { store(handle) }) else { return MISUSE };
    store.purge().map_or_else(code, |purged| if purged == Purged::Done { OK } else { NOT_ALL })
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_space_left(handle: *mut Handle, record_bytes: u32, records: *mut u32) -> c_int {
    // SAFETY: as the caller promised.
    let (Some(store), Some(records)) = (unsafe { (store(handle), records.as_mut()) }) else { return MISUSE };
    answer(store.space_left(record_bytes as usize).map(|left| *records = left))
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_lifetime_left(handle: *const Handle, endurance: u32) -> u32 {
    // SAFETY: as the caller promised.
    unsafe { store(handle.cast_mut()) }.map_or(0, |store| store.lifetime_left(endurance))
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_rollbacks(handle: *const Handle) -> u32 {
    // SAFETY: as the caller promised.
    unsafe { store(handle.cast_mut()) }.map_or(0, |store| u32::from(store.rollbacks()))
}
