//! How deep the stack was: what lies below it is painted, and looked at again.
//!
//! ```text
//! RAM:  | static data | heap | ........ paint ........ | what a call used | frames of its callers |
//!       0x2000_0000       from                   lowest change      stack pointer           0x2001_0000
//! ```

use cortex_m::register::msp;
use cortex_m_rt::heap_start;

/// Where RAM begins on every machine here.
const RAM: usize = 0x2000_0000;
const PAINT: u32 = 0xA5C3_96E1;
/// What is not painted below the stack pointer: the brush itself may stand there.
const MARGIN_BYTES: usize = 64;

/// Does `work`, and says how many bytes of stack it took below the frame of this function. There is no heap.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let top = pointer();
    paint(end_of_statics());
    let result = work();
    (result, top.saturating_sub(lowest_change(end_of_statics())))
}

/// Does `work`, and says how many bytes of stack there were at the deepest, all callers with it. `from` is where nothing was taken of
/// the heap before, and `to` where that ends afterwards.
///
/// # Panics
/// The stack has been where the heap was.
#[cfg(feature = "relation")]
pub fn deepest<T>(from: usize, work: impl FnOnce() -> T, to: impl FnOnce() -> usize) -> (T, usize) {
    paint(from);
    let result = work();
    let end = to().next_multiple_of(size_of::<u32>());
    let lowest = lowest_change(end);
    // A frame may leave words as they were: so many of them in a row are none of it.
    assert!(lowest >= end + MARGIN_BYTES, "the stack has met the heap");
    (result, begin() - lowest)
}

/// Where the stack is now.
pub fn pointer() -> usize {
    msp::read() as usize
}

/// Where the stack begins, which grows down.
pub fn begin() -> usize {
    unsafe extern "C" {
        /// The linker knows.
        static _stack_start: u32;
    }
    &raw const _stack_start as usize
}

/// Where static data end.
pub fn end_of_statics() -> usize {
    heap_start() as usize
}

/// Bytes of static data.
pub fn static_bytes() -> usize {
    end_of_statics() - RAM
}

/// Paints everything from an address to the stack.
#[inline(never)]
fn paint(from: usize) {
    let end = pointer().saturating_sub(MARGIN_BYTES);
    let mut at = from.next_multiple_of(size_of::<u32>()) as *mut u32;
    while (at as usize) < end {
        // SAFETY: it lies below the stack pointer, past what this function keeps there, and above static data and what is taken of the heap.
        // No interrupt is on.
        unsafe { at.write_volatile(PAINT) };
        at = at.wrapping_add(1);
    }
}

/// The lowest word that is not painted any more.
#[inline(never)]
fn lowest_change(from: usize) -> usize {
    let end = pointer();
    let mut at = from as *const u32;
    // SAFETY: as above; it is RAM, and every word of it was written.
    while (at as usize) < end && unsafe { at.read_volatile() } == PAINT {
        at = at.wrapping_add(1);
    }
    at as usize
}
