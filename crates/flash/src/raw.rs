//! An open file of the operating system, as files and block devices share it.
//!
//! Invariants
//! 1. After a write or a flush that failed, every later one answers [`Error::Latched`], through every handle, until
//!    the file is opened again: the kernel shows pages as clean that never reached the disk. So its cache is dropped.
//! 2. Running out of room in [`Handle::reserve`] is the one failure that does not latch, because it touches only bytes
//!    past the end that nothing refers to.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nix::libc;

use crate::{Error, Geometry, Operation, PageNumber};

/// Zeros that [`Handle::reserve`] writes at once.
static ZEROS: [u8; 1 << 16] = [0; 1 << 16];

/// An open file, shared by all clones of a device and by the locks upon it.
#[derive(Clone)]
pub struct Handle(Arc<Open>);

struct Open {
    file: File,
    writable: bool,
    latched: AtomicBool,
    /// Bytes of the file, as far as this process has seen it grow.
    length: AtomicU64,
    #[cfg(test)]
    fault: std::sync::Mutex<Option<(Operation, i32)>>,
}

/// How a file is opened.
pub(crate) enum Purpose {
    CreateNew,
    /// Made if it is not there: its contents do not matter.
    Lock,
    Write,
    Read,
    /// The whole of a block device, which nothing else may have mounted.
    WriteAlone,
}

impl Handle {
    pub(crate) fn open(path: &Path, purpose: Purpose) -> Result<Self, Error> {
        let writable = !matches!(purpose, Purpose::Read);
        let mut options = OpenOptions::new();
        // A pipe must not make us wait; files do not mind the flag.
        let mut flags = libc::O_NONBLOCK | libc::O_NOCTTY;
        options.read(true).write(writable);
        match purpose {
            Purpose::CreateNew => _ = options.create_new(true).mode(0o600),
            Purpose::Lock => _ = options.create(true).truncate(false).mode(0o600),
            Purpose::WriteAlone => flags |= libc::O_EXCL,
            Purpose::Write | Purpose::Read => {}
        }
        let file = options.custom_flags(flags).open(path).map_err(|e| typed(Operation::Open, PageNumber(0), &e))?;
        let length = file.metadata().map_err(|e| typed(Operation::Open, PageNumber(0), &e))?.len();
        Ok(Self(Arc::new(Open {
            file,
            writable,
            latched: AtomicBool::new(false),
            length: AtomicU64::new(length),
            #[cfg(test)]
            fault: std::sync::Mutex::new(None),
        })))
    }

    pub(crate) fn file(&self) -> &File {
        &self.0.file
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.0.writable
    }

    pub(crate) fn is_latched(&self) -> bool {
        self.0.latched.load(Ordering::Acquire)
    }

    /// Reads; what lies past the end of the file reads as zeros.
    pub(crate) fn read(&self, shape: &Geometry, page: PageNumber, offset: u32, buffer: &mut [u8]) -> Result<(), Error> {
        let mut at = shape.locate(page, offset, buffer.len())?;
        let failed = |e: io::Error| typed(Operation::Read, page, &e);
        self.inject(Operation::Read).map_err(failed)?;
        let mut rest = buffer;
        while !rest.is_empty() {
            match self.0.file.read_at(rest, at) {
                Ok(0) => {
                    rest.fill(0);
                    break;
                }
                Ok(count) => {
                    at += count as u64;
                    rest = &mut rest[count..];
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(failed(e)),
            }
        }
        Ok(())
    }

    pub(crate) fn program(&self, shape: &Geometry, page: PageNumber, data: &[u8]) -> Result<(), Error> {
        self.check_writing()?;
        let at = shape.locate_program(page, data)?;
        let written = self.inject(Operation::Program).and_then(|()| self.0.file.write_all_at(data, at));
        self.0.length.fetch_max(at + data.len() as u64, Ordering::AcqRel);
        written.map_err(|e| self.latch(Operation::Program, page, &e))
    }

    /// Writes zeros from the end of the file to the end of the range, so that programming within it changes no length
    /// and no block map, and `fdatasync` has only the data to bring out. A cut in between leaves zeros or nothing.
    pub(crate) fn reserve(&self, shape: &Geometry, page: PageNumber, pages: u64) -> Result<(), Error> {
        self.check_writing()?;
        let page_bytes = u64::from(shape.page_bytes);
        let end_page = page.0.saturating_add(pages);
        if end_page > shape.page_count() {
            return Err(Error::Full { page: PageNumber(shape.page_count().max(page.0)) });
        }
        let end = end_page * page_bytes;
        let mut at = self.0.length.load(Ordering::Acquire).max(page.0 * page_bytes);
        while at < end {
            let count = (end - at).min(ZEROS.len() as u64);
            let written = self.inject(Operation::Program);
            match written.and_then(|()| self.0.file.write_all_at(&ZEROS[..count as usize], at)) {
                Ok(()) => at += count,
                Err(e) => {
                    let here = PageNumber(at / page_bytes);
                    return Err(match typed(Operation::Program, here, &e) {
                        full @ Error::Full { .. } => full,
                        _ => self.latch(Operation::Program, here, &e),
                    });
                }
            }
            self.0.length.fetch_max(at, Ordering::AcqRel);
        }
        Ok(())
    }

    pub(crate) fn flush(&self) -> Result<(), Error> {
        self.check_writing()?;
        let flushed = self.inject(Operation::Flush).and_then(|()| self.0.file.sync_data());
        flushed.map_err(|e| self.latch(Operation::Flush, PageNumber(0), &e))
    }

    fn check_writing(&self) -> Result<(), Error> {
        if !self.0.writable {
            return Err(Error::ReadOnly);
        }
        if self.is_latched() { Err(Error::Latched) } else { Ok(()) }
    }

    fn latch(&self, operation: Operation, page: PageNumber, error: &io::Error) -> Error {
        self.0.latched.store(true, Ordering::Release);
        // What was not written is marked clean all the same. Whoever opens the file next must read the disk, not that.
        // Only advice, but the kernel follows it for clean pages; if it did not, a later cut could still take away
        // what the next opening was shown.
        #[cfg(target_os = "linux")]
        let _ = nix::fcntl::posix_fadvise(self.file(), 0, 0, nix::fcntl::PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        typed(operation, page, error)
    }

    #[cfg(not(test))]
    fn inject(&self, _operation: Operation) -> io::Result<()> {
        Ok(())
    }

    /// In tests: lets the next such call fail as the kernel would.
    #[cfg(test)]
    fn inject(&self, operation: Operation) -> io::Result<()> {
        let mut fault = self.0.fault.lock().expect("a test panicked");
        match *fault {
            Some((at, code)) if at == operation => {
                *fault = None;
                Err(io::Error::from_raw_os_error(code))
            }
            _ => Ok(()),
        }
    }

    #[cfg(test)]
    pub(crate) fn fail_next(&self, operation: Operation, code: i32) {
        *self.0.fault.lock().expect("a test panicked") = Some((operation, code));
    }
}

/// The typed error behind an error of the operating system.
pub(crate) fn typed(operation: Operation, page: PageNumber, error: &io::Error) -> Error {
    // An error without a number comes from the standard library: a write of no bytes, a path with a zero in it.
    let code = error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::WriteZero => libc::ENOSPC,
        io::ErrorKind::InvalidInput => libc::EINVAL,
        _ => libc::EIO,
    });
    match code {
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => Error::Full { page },
        libc::EROFS => Error::ReadOnly,
        _ => Error::Device { operation, page, code },
    }
}
