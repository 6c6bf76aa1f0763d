//! How deep the stack was: what lies below it is painted, and looked at again.
//!
//! ```text
//! RAM:  | static data | ......... paint ......... | what a call used | frames of its callers |
//!       0x2000_0000   heap_start                  lowest change      stack pointer           0x2001_0000
//! ```

use cortex_m::register::msp;
use cortex_m_rt::heap_start;

/// Where RAM begins on every machine here.
const RAM: usize = 0x2000_0000;
const PAINT: u32 = 0xA5C3_96E1;
/// What is not painted below the stack pointer: the brush itself may stand there.
const MARGIN_BYTES: usize = 64;

/// Does `work`, and says how many bytes of stack it took below the frame of this function.
pub fn measured<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let top = msp::read() as usize;
    paint();
    let result = work();
    (result, top.saturating_sub(lowest_change()))
}

/// Does `work`, and says how many bytes of stack there were at the deepest, all callers with it.
pub fn deepest<T>(work: impl FnOnce() -> T) -> (T, usize) {
    unsafe extern "C" {
        /// Where the stack begins; the linker knows.
        static _stack_start: u32;
    }
    paint();
    let result = work();
    (result, (&raw const _stack_start as usize).saturating_sub(lowest_change()))
}

/// Bytes of static data.
pub fn static_bytes() -> usize {
    heap_start() as usize - RAM
}

/// Paints everything between static data and the stack.
#[inline(never)]
fn paint() {
    let end = (msp::read() as usize).saturating_sub(MARGIN_BYTES);
    let mut at = heap_start();
    while (at as usize) < end {
        // SAFETY: it lies below the stack pointer, past what this function keeps there, and above static data. There is no heap, and no interrupt is on.
        unsafe { at.write_volatile(PAINT) };
        at = at.wrapping_add(1);
    }
}

/// The lowest word that is not painted any more.
#[inline(never)]
fn lowest_change() -> usize {
    let end = msp::read() as usize;
    let mut at = heap_start();
    // SAFETY: as above; it is RAM, and every word of it was written.
    while (at as usize) < end && unsafe { at.read_volatile() } == PAINT {
        at = at.wrapping_add(1);
    }
    at as usize
}
