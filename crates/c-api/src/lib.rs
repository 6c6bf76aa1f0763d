//! The C face of the record store that stands alone (`include/counterfoil.h`), and the only crate with `unsafe` code:
//! a caller in C hands over pointers, and what they point at is taken on its word. Everything else is checked here: null,
//! alignment, lengths. Nothing above this crate uses it, and nothing below knows of it.
//!
//! 1. A store lies in the caller's memory: first [`Handle`], then the buffers of the store. Nothing else is kept.
//! 2. The references inside a handle point into that memory, which by contract stays where it is until
//!    `counterfoil_close`; that is what makes their lifetimes `'static` here.
//! 3. The store of a handle refers to its other fields, so no reference to a whole handle is ever made while there is one:
//!    fields are reached one at a time.
#![cfg_attr(not(feature = "std"), no_std)]

mod device;
mod memory;
mod names;
#[cfg(feature = "relation")]
mod tables;
mod upkeep;

#[cfg(feature = "relation")]
extern crate alloc;

use core::ffi::c_int;
use core::ptr::NonNull;

use counterfoil_record::RecordId;
use counterfoil_record::alone::{Error, Standalone, Surroundings};
use counterfoil_vault::{Counter, DatabaseId, Entropy, Suite, Vault, VolumeKey};

pub use device::Device;
use device::{Medium, OneWayCounter, Random};
pub use names::{counterfoil_delete_named, counterfoil_put_named, counterfoil_read_named};
#[cfg(feature = "relation")]
pub use tables::{
    CellValue, Column, Tables, counterfoil_tables_ask, counterfoil_tables_close, counterfoil_tables_commit,
    counterfoil_tables_create, counterfoil_tables_define, counterfoil_tables_delete, counterfoil_tables_insert,
    counterfoil_tables_maintain, counterfoil_tables_open, counterfoil_tables_put_header, counterfoil_tables_reorganize,
    counterfoil_tables_roll_back, counterfoil_tables_update,
};
pub use upkeep::{
    counterfoil_close_group, counterfoil_lifetime_left, counterfoil_prepare, counterfoil_purge, counterfoil_rollbacks,
    counterfoil_space_left,
};

const OK: c_int = 0;
const MISUSE: c_int = -32;
/// Changes that one commit takes.
const CHANGES_MAX: usize = 16;

/// The keys of a store, as C hands them over.
#[repr(C)]
pub struct Key {
    volume_key: [u8; 32],
    database: [u8; 32],
    cipher: u32,
}

/// One change of a commit, as C hands it over.
#[repr(C)]
pub struct Change {
    id: u32,
    bytes: *const u8,
    length: u32,
}

/// A store and what it uses. It lies in the caller's memory and is never moved.
pub struct Handle {
    store: Option<Standalone<'static, Medium, u16>>,
    medium: Medium,
    counter: OneWayCounter,
    random: Random,
    vault: Vault,
}

fn code(error: Error) -> c_int {
    -(error as u8 as c_int)
}

fn answer(outcome: Result<(), Error>) -> c_int {
    outcome.map_or_else(code, |()| OK)
}

/// How a store comes about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Begin {
    Format,
    /// Opened, though its counter stands above it, if that has not happened so many times before.
    Open(u16),
}

/// What a store is made from.
struct Given {
    device: *const Device,
    key: *const Key,
    memory: *mut u8,
    memory_bytes: usize,
    records: u32,
    pending: u32,
}

/// Places a store into the caller's memory.
///
/// # Safety
/// The pointers are null or what the header says.
unsafe fn begin(place: *mut *mut Handle, given: &Given, how: Begin) -> c_int {
    // SAFETY: the caller promised that these are null, or valid for reads and writes of their types.
    let (Some(place), Some(device), Some(key)) =
        (unsafe { (place.as_mut(), given.device.as_ref(), given.key.as_ref()) })
    else {
        return MISUSE;
    };
    if given.memory.is_null() || !given.memory.addr().is_multiple_of(memory::ALIGNMENT) {
        return MISUSE;
    }
    let suite = u8::try_from(key.cipher).ok().and_then(Suite::from_number);
    let (Some(medium), Some(suite)) = (Medium::new(device), suite) else { return code(Error::Geometry) };
    let Ok(plan) = memory::Plan::new(device, given.records, given.pending) else { return code(Error::Geometry) };
    if given.memory_bytes < plan.bytes() {
        return code(Error::BufferTooSmall);
    }
    let vault = Vault::new(&VolumeKey::from_bytes(&key.volume_key), DatabaseId(key.database), suite);
    let handle =
        Handle { store: None, medium, counter: OneWayCounter::new(device), random: Random::new(device), vault };
    let raw = given.memory.cast::<Handle>();
    // SAFETY: the memory is aligned, long enough by the plan, and the caller's to give away until the store is closed; the
    // fields and the buffers lie apart from each other.
    let (medium, counter, random, vault, buffers) = unsafe {
        raw.write(handle);
        (&mut (*raw).medium, &mut (*raw).counter, &mut (*raw).random, &(*raw).vault, plan.buffers(given.memory))
    };
    let counter = counter.is_there().then_some(counter as &'static mut dyn Counter);
    let entropy = random.is_there().then_some(random as &mut dyn Entropy);
    let around = Surroundings { device: medium, vault, counter, entropy };
    let begun = match how {
        Begin::Format => Standalone::format(around, plan.shape, buffers),
        Begin::Open(rollbacks_max) => Standalone::open_despite_rollback(around, plan.shape, buffers, rollbacks_max),
    };
    match begun {
        Ok(store) => {
            // SAFETY: nothing refers to this field yet.
            unsafe { (*raw).store = Some(store) };
            *place = raw;
            OK
        }
        Err(error) => {
            // SAFETY: it was written above, and nothing refers to it any more. Its keys are wiped.
            unsafe { raw.drop_in_place() };
            code(error)
        }
    }
}

/// The store of a handle.
///
/// # Safety
/// The pointer is null, or a store that was not closed and that nobody else uses now.
unsafe fn store<'h>(handle: *mut Handle) -> Option<&'h mut Standalone<'static, Medium, u16>> {
    if handle.is_null() {
        return None;
    }
    // SAFETY: as the caller promised; nobody refers to this field.
    let store = unsafe { &mut (*handle).store };
    store.as_mut()
}

/// See the header.
///
/// # Safety
/// `device` is null, or points to a device.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_memory_bytes(device: *const Device, records: u32, pending: u32) -> usize {
    // SAFETY: as the caller promised.
    let Some(device) = (unsafe { device.as_ref() }) else { return 0 };
    memory::Plan::new(device, records, pending).map_or(0, |plan| plan.bytes())
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says; device and memory stay where they are until the store is closed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_format(
    place: *mut *mut Handle,
    device: *const Device,
    key: *const Key,
    memory: *mut u8,
    memory_bytes: usize,
    records: u32,
    pending: u32,
) -> c_int {
    let given = Given { device, key, memory, memory_bytes, records, pending };
    // SAFETY: as the caller promised.
    unsafe { begin(place, &given, Begin::Format) }
}

/// See the header.
///
/// # Safety
/// As [`counterfoil_format`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_open(
    place: *mut *mut Handle,
    device: *const Device,
    key: *const Key,
    memory: *mut u8,
    memory_bytes: usize,
    records: u32,
    pending: u32,
) -> c_int {
    let given = Given { device, key, memory, memory_bytes, records, pending };
    // SAFETY: as the caller promised.
    unsafe { begin(place, &given, Begin::Open(0)) }
}

/// See the header.
///
/// # Safety
/// As [`counterfoil_format`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_open_despite_rollback(
    place: *mut *mut Handle,
    device: *const Device,
    key: *const Key,
    memory: *mut u8,
    memory_bytes: usize,
    records: u32,
    pending: u32,
    rollbacks_max: u16,
) -> c_int {
    let given = Given { device, key, memory, memory_bytes, records, pending };
    // SAFETY: as the caller promised.
    unsafe { begin(place, &given, Begin::Open(rollbacks_max)) }
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_allocate(handle: *mut Handle, id: *mut u32) -> c_int {
    // SAFETY: as the caller promised.
    let (Some(store), Some(id)) = (unsafe { (store(handle), id.as_mut()) }) else { return MISUSE };
    answer(store.allocate().map(|RecordId(allocated)| *id = allocated))
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says; `bytes` holds `capacity` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_read(
    handle: *mut Handle,
    id: u32,
    bytes: *mut u8,
    capacity: u32,
    length: *mut u32,
) -> c_int {
    // SAFETY: as the caller promised.
    let (Some(store), Some(bytes), Some(length)) = (unsafe { (store(handle), NonNull::new(bytes), length.as_mut()) })
    else {
        return MISUSE;
    };
    // SAFETY: as the caller promised.
    let buffer = unsafe { core::slice::from_raw_parts_mut(bytes.as_ptr(), capacity as usize) };
    answer(store.read(RecordId(id), buffer).map(|read| *length = read as u32))
}

/// See the header.
///
/// # Safety
/// The pointers are null or what the header says; `changes` holds `count` changes, each with as many bytes as it says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_commit(handle: *mut Handle, changes: *const Change, count: u32) -> c_int {
    // SAFETY: as the caller promised.
    unsafe { commit(handle, changes, count, Standalone::commit) }
}

/// See the header.
///
/// # Safety
/// As [`counterfoil_commit`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_commit_in_group(handle: *mut Handle, changes: *const Change, count: u32) -> c_int {
    // SAFETY: as the caller promised.
    unsafe { commit(handle, changes, count, Standalone::commit_in_group) }
}

/// What a store does with the changes of a commit.
type Commit = fn(&mut Standalone<'static, Medium, u16>, &[counterfoil_record::Change<'_>]) -> Result<u64, Error>;

/// Hands changes to a store.
///
/// # Safety
/// As [`counterfoil_commit`].
unsafe fn commit(handle: *mut Handle, changes: *const Change, count: u32, how: Commit) -> c_int {
    // SAFETY: as the caller promised.
    let (Some(store), Some(changes)) = (unsafe { (store(handle), NonNull::new(changes.cast_mut())) }) else {
        return MISUSE;
    };
    if count as usize > CHANGES_MAX {
        return code(Error::TooManyChanges);
    }
    // SAFETY: as the caller promised.
    let given = unsafe { core::slice::from_raw_parts(changes.as_ptr(), count as usize) };
    let mut taken = [(RecordId(0), None); CHANGES_MAX];
    for (place, change) in taken.iter_mut().zip(given) {
        // SAFETY: as the caller promised.
        let bytes = (!change.bytes.is_null())
            .then(|| unsafe { core::slice::from_raw_parts(change.bytes, change.length as usize) });
        *place = (RecordId(change.id), bytes);
    }
    let count = given.len().min(CHANGES_MAX);
    answer(how(store, taken.get(..count).unwrap_or_default()).map(drop))
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_deallocate(handle: *mut Handle, id: u32) -> c_int {
    // SAFETY: as the caller promised.
    let Some(store) = (unsafe { store(handle) }) else { return MISUSE };
    answer(store.commit(&[(RecordId(id), None)]).map(drop))
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_record_bytes_max(handle: *const Handle) -> u32 {
    // SAFETY: as the caller promised.
    unsafe { store(handle.cast_mut()) }.map_or(0, |store| store.record_bytes_max() as u32)
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_counted(handle: *const Handle) -> u64 {
    // SAFETY: as the caller promised.
    unsafe { store(handle.cast_mut()) }.map_or(0, |store| store.counted())
}

/// See the header.
///
/// # Safety
/// The pointer is null or a store; it is no store any more after this.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn counterfoil_close(handle: *mut Handle) {
    if handle.is_null() {
        return;
    }
    // SAFETY: as the caller promised, `begin` wrote it there. The store goes first: it refers to the rest.
    unsafe {
        (*handle).store = None;
        handle.drop_in_place();
    }
}

#[cfg(not(feature = "std"))]
#[panic_handler]
fn halt(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}
