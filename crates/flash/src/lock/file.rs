//! A lock that stands for something else than the file it is upon.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{LockError, WriterLock};
use crate::raw::{Handle, Purpose, typed};
use crate::{Operation, PageNumber};

/// A writer's lock upon an empty file that is there for nothing else, held until dropped. The file comes with the lock
/// and goes with it; one that a killed process left behind is locked by nobody.
pub struct LockFile {
    path: PathBuf,
    pub(super) lock: WriterLock,
}

impl LockFile {
    /// Takes the lock, waiting up to `timeout` for another to let go of it.
    ///
    /// # Errors
    /// As [`WriterLock::acquire`], and what the system says of making the file.
    pub fn acquire(path: &Path, timeout: Duration) -> Result<Self, LockError> {
        loop {
            let handle = Handle::open(path, Purpose::Lock)?;
            let lock = WriterLock::acquire(&handle, timeout)?;
            // Whoever had the lock took the file away with it: a lock upon a file without a name keeps nobody out.
            if is_at(&handle, path)? {
                return Ok(Self { path: path.into(), lock });
            }
        }
    }

    /// Whether another process took the lock, and this one inherited it by `fork`.
    pub fn is_inherited(&self) -> bool {
        self.lock.is_inherited()
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        if !self.is_inherited() {
            // Before the lock goes: another's file may have the name right after. A file that stays harms nobody.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether the open file still has this name.
fn is_at(handle: &Handle, path: &Path) -> Result<bool, LockError> {
    let failed = |error| LockError::Device(typed(Operation::Lock, PageNumber(0), &error));
    let open = handle.file().metadata().map_err(failed)?;
    match fs::metadata(path) {
        Ok(named) => Ok((named.dev(), named.ino()) == (open.dev(), open.ino())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed(error)),
    }
}
