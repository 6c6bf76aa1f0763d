//! A heap that shares its memory with the stack: it grows from below, the stack from above, and where they would meet nothing is
//! given any more.
//!
//! ```text
//! | static data | taken, and free among it ... | untouched ............... | stack |
//!       end_of_statics                        top                      stack pointer
//! ```
//! Nothing behind the top is written, so the stack may have been there and may go there again.

use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr;

use counterfoil_heap::{Heap, Units};

use crate::stack;

/// What is left between what is given and the stack: what a call may take of it before anything else is given.
const MARGIN_BYTES: usize = 128;
/// What the beginning of the heap is a multiple of, and so all that may be asked for.
const ALIGNMENT: usize = 16;

#[global_allocator]
static HEAP: CountedHeap = CountedHeap(UnsafeCell::new(Counted { heap: Heap::empty(), taken: 0, peak: 0, reach: 0 }));

struct CountedHeap(UnsafeCell<Counted>);

/// A heap, and how many bytes were asked of it: now, at most, and how far they went.
struct Counted {
    heap: Heap,
    taken: usize,
    peak: usize,
    reach: usize,
}

/// All memory behind static data.
struct Memory;

impl Units for Memory {
    fn word(&self, place: usize) -> u32 {
        // SAFETY: the heap asks for what is free, which is nobody's.
        unsafe { ptr::with_exposed_provenance::<u32>(begin() + place).read() }
    }

    fn set_word(&mut self, place: usize, word: u32) {
        // SAFETY: as above.
        unsafe { ptr::with_exposed_provenance_mut::<u32>(begin() + place).write(word) }
    }
}

/// Where the heap begins.
fn begin() -> usize {
    stack::end_of_statics().next_multiple_of(ALIGNMENT)
}

impl CountedHeap {
    /// The heap: there is one thread, and interrupts take nothing. No reference is kept beyond one of the calls below, and none of them
    /// calls another while it has it.
    #[allow(clippy::mut_from_ref)]
    fn counted(&self) -> &mut Counted {
        // SAFETY: nobody else has one, as above.
        unsafe { &mut *self.0.get() }
    }
}

// SAFETY: there is one thread.
unsafe impl Sync for CountedHeap {}

impl Counted {
    /// Where memory ends that may be taken.
    fn end() -> usize {
        stack::pointer().saturating_sub(MARGIN_BYTES + begin())
    }

    fn count(&mut self, old: usize, new: usize) {
        self.taken = self.taken + new - old;
        self.peak = self.peak.max(self.taken);
        self.reach = self.reach.max(self.heap.top());
    }
}

// SAFETY: pieces are apart, as large and as aligned as was asked for, and stay where they are until they are given back.
unsafe impl GlobalAlloc for CountedHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let counted = self.counted();
        if layout.align() > ALIGNMENT {
            return ptr::null_mut();
        }
        match counted.heap.take(&mut Memory, layout.size(), layout.align(), Counted::end()) {
            Some(place) => {
                counted.count(0, layout.size());
                ptr::with_exposed_provenance_mut(begin() + place)
            }
            None => ptr::null_mut(),
        }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        let counted = self.counted();
        counted.heap.give(&mut Memory, at.addr() - begin(), layout.size());
        counted.count(layout.size(), 0);
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (counted, place) = (self.counted(), at.addr() - begin());
        if counted.heap.resize(&mut Memory, place, (layout.size(), size), Counted::end()) {
            counted.count(layout.size(), size);
            return at;
        }
        // SAFETY: the size is none that a layout cannot have, by the caller's promise.
        let new = unsafe { self.alloc(Layout::from_size_align_unchecked(size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both are taken, and apart.
            unsafe { ptr::copy_nonoverlapping(at, new, layout.size().min(size)) };
            // SAFETY: the caller's promise is passed on.
            unsafe { self.dealloc(at, layout) };
        }
        new
    }
}

/// What was taken of the heap, in bytes, since [`watch`].
#[derive(Clone, Copy)]
pub struct Taken {
    /// Now.
    pub now: usize,
    /// At most.
    pub peak: usize,
    /// How far it went, with what lay scattered among it.
    pub reach: usize,
}

/// Makes the heap ready. To be called once, before anything is taken of it.
pub fn ready() {
    HEAP.counted().heap = Heap::begin(stack::begin() - begin());
}

/// Begins to look how much is taken; where that ends now.
pub fn watch() -> usize {
    let counted = HEAP.counted();
    (counted.peak, counted.reach) = (counted.taken, counted.heap.top());
    begin() + counted.reach
}

/// What was taken since.
pub fn taken() -> Taken {
    let Counted { taken, peak, reach, .. } = *HEAP.counted();
    Taken { now: taken, peak, reach }
}

/// Where all ends that was taken since.
pub fn end() -> usize {
    begin() + taken().reach
}
