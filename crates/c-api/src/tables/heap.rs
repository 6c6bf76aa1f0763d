//! The memory of tables on a part without an operating system: what the caller hands over at the first call is the heap, until the
//! program ends. With an operating system its own allocator serves.

#[cfg(not(feature = "std"))]
mod given {
    use core::alloc::{GlobalAlloc, Layout};
    use core::cell::UnsafeCell;
    use core::ptr;

    use counterfoil_heap::{Heap, Units};

    /// What the beginning of the heap is a multiple of, and so all that may be asked for.
    const ALIGNMENT: usize = 16;

    #[global_allocator]
    static HEAP: Global =
        Global(UnsafeCell::new(Given { memory: Memory(ptr::null_mut()), bytes: 0, heap: Heap::empty() }));

    struct Global(UnsafeCell<Given>);

    /// Memory that was given, and how it is cut up.
    struct Given {
        memory: Memory,
        bytes: usize,
        heap: Heap,
    }

    /// Where it begins.
    struct Memory(*mut u8);

    impl Units for Memory {
        fn word(&self, place: usize) -> u32 {
            // SAFETY: the heap asks for what is free of the memory, which is nobody's.
            unsafe { self.0.add(place).cast::<u32>().read() }
        }

        fn set_word(&mut self, place: usize, word: u32) {
            // SAFETY: as above.
            unsafe { self.0.add(place).cast::<u32>().write(word) }
        }
    }

    // SAFETY: tables are used by one thread at a time and never from an interrupt, as the header says.
    unsafe impl Sync for Global {}

    impl Global {
        /// The heap, and the memory. No reference is kept beyond one of the calls below, and none of them calls another while it has it.
        #[allow(clippy::mut_from_ref)]
        fn given(&self) -> &mut Given {
            // SAFETY: there is one thread, as above.
            unsafe { &mut *self.0.get() }
        }
    }

    // SAFETY: pieces are apart, as large and as aligned as was asked for, and stay where they are until they are given back.
    unsafe impl GlobalAlloc for Global {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            let Given { memory, bytes, heap } = self.given();
            let is_aligned = layout.align() <= ALIGNMENT;
            match is_aligned.then(|| heap.take(memory, layout.size(), layout.align(), *bytes)).flatten() {
                // SAFETY: it lies within the memory.
                Some(place) => unsafe { memory.0.add(place) },
                None => ptr::null_mut(),
            }
        }

        unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
            let Given { memory, heap, .. } = self.given();
            let place = at.addr() - memory.0.addr();
            heap.give(memory, place, layout.size());
        }

        unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            let Given { memory, bytes, heap } = self.given();
            let place = at.addr() - memory.0.addr();
            if heap.resize(memory, place, (layout.size(), size), *bytes) {
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

    /// Makes memory the heap, unless there is one already.
    ///
    /// # Safety
    /// The memory is the caller's to give away for good.
    pub(crate) unsafe fn give(memory: *mut u8, bytes: usize) -> bool {
        let given = HEAP.given();
        if given.bytes > 0 {
            return true;
        }
        let skipped = memory.align_offset(ALIGNMENT);
        if memory.is_null() || bytes <= skipped {
            return false;
        }
        let bytes = bytes - skipped;
        // SAFETY: it lies within what was given.
        let memory = Memory(unsafe { memory.add(skipped) });
        *given = Given { memory, bytes, heap: Heap::begin(bytes) };
        true
    }
}

#[cfg(feature = "std")]
mod given {
    /// There is a heap already.
    ///
    /// # Safety
    /// None is asked for: nothing is done.
    pub(crate) unsafe fn give(_: *mut u8, _: usize) -> bool {
        true
    }
}

pub(crate) use given::give;
