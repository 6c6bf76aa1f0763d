//! The memory of tables on a part without an operating system: what the caller hands over at the first call is the heap, until the
//! program ends. With an operating system its own allocator serves.

#[cfg(not(feature = "std"))]
mod given {
    use core::sync::atomic::{AtomicBool, Ordering};

    use embedded_alloc::LlffHeap;

    #[global_allocator]
    static HEAP: LlffHeap = LlffHeap::empty();
    static IS_GIVEN: AtomicBool = AtomicBool::new(false);

    /// Tables are used by one thread at a time and never from an interrupt, as the header says: nobody has to be kept out.
    struct OneThread;
    critical_section::set_impl!(OneThread);

    // SAFETY: there is nobody else, as above.
    unsafe impl critical_section::Impl for OneThread {
        unsafe fn acquire() -> critical_section::RawRestoreState {}
        unsafe fn release(_: critical_section::RawRestoreState) {}
    }

    /// Makes memory the heap, unless there is one already.
    ///
    /// # Safety
    /// The memory is the caller's to give away for good.
    pub(crate) unsafe fn give(memory: *mut u8, bytes: usize) -> bool {
        if IS_GIVEN.load(Ordering::Relaxed) {
            return true;
        }
        if memory.is_null() || bytes == 0 {
            return false;
        }
        IS_GIVEN.store(true, Ordering::Relaxed);
        // SAFETY: it is done once, and the memory is given away by contract.
        unsafe { HEAP.init(memory as usize, bytes) };
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
