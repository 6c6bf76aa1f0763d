//! A heap of a fixed size that knows how much of it was ever taken.
//!
//! ```text
//! | taken, free and taken again ........ | never reached ............ |
//! begin                                  reach                  HEAP_BYTES
//! ```
//! The allocator takes the first piece that is large enough, so the reach is what a heap must have: what is taken at most, and
//! what lies scattered among it.

use core::alloc::{GlobalAlloc, Layout};
use core::mem::MaybeUninit;
use core::ptr::addr_of_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use embedded_alloc::LlffHeap;

/// Bytes of the heap.
pub const HEAP_BYTES: usize = if cfg!(all(feature = "roomy", not(feature = "little"))) { 2 << 20 } else { 50 << 10 };

static mut ROOM: [MaybeUninit<u64>; HEAP_BYTES / 8] = [MaybeUninit::uninit(); HEAP_BYTES / 8];

#[global_allocator]
static HEAP: CountedHeap = CountedHeap {
    heap: LlffHeap::empty(),
    begin: AtomicUsize::new(0),
    taken: AtomicUsize::new(0),
    peak: AtomicUsize::new(0),
    reach: AtomicUsize::new(0),
};

struct CountedHeap {
    heap: LlffHeap,
    begin: AtomicUsize,
    taken: AtomicUsize,
    peak: AtomicUsize,
    reach: AtomicUsize,
}

// SAFETY: every call is passed on to a heap that keeps these promises.
unsafe impl GlobalAlloc for CountedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise is passed on.
        let at = unsafe { self.heap.alloc(layout) };
        if !at.is_null() {
            let taken = self.taken.fetch_add(layout.size(), Relaxed) + layout.size();
            self.peak.fetch_max(taken, Relaxed);
            self.reach.fetch_max(at as usize + layout.size() - self.begin.load(Relaxed), Relaxed);
        }
        at
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        self.taken.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { self.heap.dealloc(at, layout) }
    }
}

/// What was taken of the heap, in bytes.
#[derive(Clone, Copy)]
pub struct Taken {
    /// Now.
    pub now: usize,
    /// At most, since this was last asked.
    pub peak: usize,
    /// How far into the heap it ever went.
    pub reach: usize,
}

/// Makes the heap ready. To be called once, before anything is taken of it.
pub fn begin() {
    let begin = addr_of_mut!(ROOM) as usize;
    HEAP.begin.store(begin, Relaxed);
    // SAFETY: the room is this heap's alone, and it is given to it once.
    unsafe { HEAP.heap.init(begin, HEAP_BYTES) }
}

/// What was taken since this was last asked.
pub fn taken() -> Taken {
    let now = HEAP.taken.load(Relaxed);
    Taken { now, peak: HEAP.peak.swap(now, Relaxed), reach: HEAP.reach.load(Relaxed) }
}
