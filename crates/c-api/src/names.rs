//! Records by name.

use core::ffi::c_int;

use crate::{Handle, MISUSE, answer, store};

/// The bytes at a pointer; none if it is null.
///
/// # Safety
/// The pointer is null, or valid for reads of so many bytes.
unsafe fn bytes<'b>(pointer: *const u8, length: u32) -> Option<&'b [u8]> {
    // SAFETY: as the caller promised.
    (!pointer.is_null()).then(|| unsafe { core::slice::from_raw_parts(pointer, length as usize) })
}

/// The same, to be written.
///
/// # Safety
/// The pointer is null, or valid for writes of so many bytes, which nobody else uses.
unsafe fn bytes_mut<'b>(pointer: *mut u8, length: u32) -> Option<&'b mut [u8]> {
    // SAFETY: as the caller promised.
    (!pointer.is_null()).then(|| unsafe { core::slice::from_raw_parts_mut(pointer, length as usize) })
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_read_named(
    handle: *mut Handle,
    name: *const u8,
    name_bytes: u32,
    buffer: *mut u8,
    capacity: u32,
    length: *mut u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (store(handle), bytes(name, name_bytes), bytes_mut(buffer, capacity), length.as_mut()) };
    let (Some(store), Some(name), Some(buffer), Some(length)) = given else { return MISUSE };
    answer(store.read_named(name, buffer).map(|read| *length = read as u32))
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says; `buffer` does not overlap name and value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_put_named(
    handle: *mut Handle,
    name: *const u8,
    name_bytes: u32,
    value: *const u8,
    value_bytes: u32,
    buffer: *mut u8,
    capacity: u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given =
        unsafe { (store(handle), bytes(name, name_bytes), bytes(value, value_bytes), bytes_mut(buffer, capacity)) };
    let (Some(store), Some(name), Some(value), Some(buffer)) = given else { return MISUSE };
    answer(store.put_named(name, value, buffer).map(drop))
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_delete_named(
    handle: *mut Handle,
    name: *const u8,
    name_bytes: u32,
    buffer: *mut u8,
    capacity: u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let given = unsafe { (store(handle), bytes(name, name_bytes), bytes_mut(buffer, capacity)) };
    let (Some(store), Some(name), Some(buffer)) = given else { return MISUSE };
    answer(store.delete_named(name, buffer).map(drop))
}
