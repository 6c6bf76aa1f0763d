//! A file on the debugger's host.

use cortex_m_semihosting::{nr, syscall};

/// A file that can be read and written at any place.
pub struct File(usize);

/// Modes of fopen, by the number that semihosting gives them.
const READ: usize = 1;
const WRITE_AND_READ: usize = 7;

impl File {
    /// Makes an empty file. `name` ends with a zero byte, which does not belong to it.
    pub fn create(name: &core::ffi::CStr) -> Option<File> {
        File::open_as(name, WRITE_AND_READ)
    }

    /// Opens a file to read it.
    pub fn open(name: &core::ffi::CStr) -> Option<File> {
        File::open_as(name, READ)
    }

    fn open_as(name: &core::ffi::CStr, mode: usize) -> Option<File> {
        let arguments = [name.as_ptr() as usize, mode, name.count_bytes()];
        // SAFETY: the arguments are those of SYS_OPEN: a name, a mode, the length of the name.
        let handle = unsafe { syscall(nr::OPEN, &arguments) };
        (handle != usize::MAX).then_some(File(handle))
    }

    /// Writes all bytes to `offset`; whether that went well.
    #[must_use]
    pub fn write(&self, offset: usize, bytes: &[u8]) -> bool {
        let arguments = [self.0, bytes.as_ptr() as usize, bytes.len()];
        // SAFETY: the arguments are those of SYS_WRITE, which reads the bytes and answers how many were left over.
        self.seek(offset) && unsafe { syscall(nr::WRITE, &arguments) } == 0
    }

    /// Fills the buffer from `offset`; whether that went well.
    #[must_use]
    pub fn read(&self, offset: usize, buffer: &mut [u8]) -> bool {
        let arguments = [self.0, buffer.as_mut_ptr() as usize, buffer.len()];
        // SAFETY: the arguments are those of SYS_READ, which writes to the buffer alone and answers how much was left over.
        self.seek(offset) && unsafe { syscall(nr::READ, &arguments) } == 0
    }

    fn seek(&self, offset: usize) -> bool {
        // SAFETY: the arguments are those of SYS_SEEK.
        unsafe { syscall(nr::SEEK, &[self.0, offset]) == 0 }
    }
}
