//! A part of flash with a counter, as C describes one to the library: an array.
#![allow(dead_code, reason = "each test takes what it needs")]

use std::ffi::{c_int, c_void};

pub const PAGE_BYTES: usize = 512;
pub const BLOCK_PAGES: usize = 16;

/// As the header lays it out; the fields of the library's own are not to be seen from here.
#[repr(C)]
pub struct CDevice {
    pub context: *mut c_void,
    pub read: Option<unsafe extern "C" fn(*mut c_void, u32, u32, *mut c_void, u32) -> c_int>,
    pub program: Option<unsafe extern "C" fn(*mut c_void, u32, *const c_void) -> c_int>,
    pub erase: Option<unsafe extern "C" fn(*mut c_void, u32) -> c_int>,
    pub sync: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    pub counter_read: Option<unsafe extern "C" fn(*mut c_void, *mut u64) -> c_int>,
    pub counter_step: Option<unsafe extern "C" fn(*mut c_void, u64) -> c_int>,
    pub random: Option<unsafe extern "C" fn(*mut c_void, *mut c_void, u32) -> c_int>,
    pub numbers: [u32; 6],
}

#[repr(C)]
pub struct CKey {
    pub volume_key: [u8; 32],
    pub database: [u8; 32],
    pub cipher: u32,
}

pub struct Part {
    pub bytes: Vec<u8>,
    pub counter: u64,
    /// Pages that are programmed and blocks that are erased before the power goes, in the midst of the next one.
    pub left: u32,
}

impl Part {
    pub fn new(bytes: Vec<u8>, counter: u64) -> Part {
        Part { bytes, counter, left: u32::MAX }
    }

    /// How many bytes of so many are still written.
    fn written(&mut self, bytes: usize) -> usize {
        let written = if self.left == 0 { bytes / 2 } else { bytes };
        // What comes after the one in whose midst the power went is not written at all.
        let is_gone = self.left == GONE;
        self.left = match self.left {
            0 => GONE,
            u32::MAX | GONE => self.left,
            left => left - 1,
        };
        if is_gone { 0 } else { written }
    }
}

/// What is left once the power is gone.
const GONE: u32 = u32::MAX - 1;

unsafe extern "C" fn read(part: *mut c_void, page: u32, offset: u32, bytes: *mut c_void, length: u32) -> c_int {
    let begin = page as usize * PAGE_BYTES + offset as usize;
    // SAFETY: the context is a part, and the library reads inside pages.
    unsafe {
        let from = &(&(*part.cast::<Part>()).bytes)[begin..begin + length as usize];
        bytes.cast::<u8>().copy_from_nonoverlapping(from.as_ptr(), from.len());
    }
    0
}

unsafe extern "C" fn program(part: *mut c_void, page: u32, bytes: *const c_void) -> c_int {
    let begin = page as usize * PAGE_BYTES;
    // SAFETY: the context is a part, and the library hands over whole pages.
    unsafe {
        let (page, part) = (std::slice::from_raw_parts(bytes.cast::<u8>(), PAGE_BYTES), &mut *part.cast::<Part>());
        let written = part.written(PAGE_BYTES);
        part.bytes[begin..begin + written].copy_from_slice(&page[..written]);
        if written == PAGE_BYTES { 0 } else { -1 }
    }
}

unsafe extern "C" fn erase(part: *mut c_void, block: u32) -> c_int {
    let begin = block as usize * BLOCK_PAGES * PAGE_BYTES;
    // SAFETY: the context is a part.
    let part = unsafe { &mut *part.cast::<Part>() };
    let written = part.written(BLOCK_PAGES * PAGE_BYTES);
    part.bytes[begin..begin + written].fill(0xFF);
    if written == BLOCK_PAGES * PAGE_BYTES { 0 } else { -1 }
}

unsafe extern "C" fn sync(_: *mut c_void) -> c_int {
    0
}

unsafe extern "C" fn counter_read(part: *mut c_void, value: *mut u64) -> c_int {
    // SAFETY: the context is a part, and the library hands over a place.
    unsafe { *value = (*part.cast::<Part>()).counter };
    0
}

unsafe extern "C" fn counter_step(part: *mut c_void, to: u64) -> c_int {
    // SAFETY: the context is a part.
    let part = unsafe { &mut *part.cast::<Part>() };
    if part.left == GONE {
        return -1;
    }
    part.counter = to;
    0
}

pub fn device(part: &mut Part) -> CDevice {
    CDevice {
        context: (&raw mut *part).cast(),
        read: Some(read),
        program: Some(program),
        erase: Some(erase),
        sync: Some(sync),
        counter_read: Some(counter_read),
        counter_step: Some(counter_step),
        random: None,
        numbers: [PAGE_BYTES as u32, BLOCK_PAGES as u32, 0, 8, 2, 20],
    }
}

/// No generator at all: a device has one.
#[cfg(feature = "relation")]
pub unsafe extern "C" fn random(part: *mut c_void, bytes: *mut c_void, length: u32) -> c_int {
    // SAFETY: the context is a part, and the library hands over so many bytes.
    unsafe {
        let seed = (*part.cast::<Part>()).counter as u8;
        (0..length).for_each(|at| *bytes.cast::<u8>().add(at as usize) = seed.wrapping_mul(31).wrapping_add(at as u8));
    }
    0
}
