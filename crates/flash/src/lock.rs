//! Who may write and what readers still need, told between processes by byte-range locks on the database itself.
//!
//! ```text
//! byte 2^62        exclusive   the one writer
//! byte 2^62 + 1    exclusive   the same, as a classic lock: the kernel tells others its process number
//! byte 2^62 + 16 + n   shared  a reader that needs the snapshot of commit n
//! ```
//!
//! All bytes lie above any data ([`crate::MEDIUM_BYTES_MAX`]), so nothing is ever written there. The locks are those of
//! open file descriptions: they do not vanish when another part of the process closes the file, and the kernel drops
//! them when a process ends, however it ends.
//!
//! Invariants
//! 1. Locks of one [`Handle`] never stand in each other's way; within a process the clones of one device agree through
//!    [`Pins`], and a second opening of the same file counts as a stranger.
//! 2. The classic lock only serves to name the holder. Closing any descriptor of the file in the writer's process
//!    loses it; nothing but the message is worse for it.
//! 3. A process that inherited locks by `fork` lets go of none: the open file is its parent's too.
//! 4. A pin set on a commit protects it only if that commit is still the newest, or still protected, *after* the pin
//!    was set: a reader pins, looks again, and starts over if the root has moved.

use core::fmt;
use core::ops::Range;
use std::collections::BTreeMap;
use std::string::String;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::raw::{Handle, typed};
use crate::{Error, Operation, PageNumber};

mod file;

pub use file::LockFile;

const WRITER: i64 = 1 << 62;
const WRITER_NAME: i64 = WRITER + 1;
const PINS: i64 = WRITER + 16;
/// The largest commit number that can be pinned.
pub const COMMIT_MAX: u64 = (i64::MAX - PINS - 1) as u64;

/// Who holds the writer's lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Its process number, if the kernel told.
    pub process: Option<u32>,
    /// The name of its program, if the system told.
    pub program: Option<String>,
}

/// Why a lock was not given.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LockError {
    /// Another process, or another opening of the same file, writes.
    Held(Holder),
    /// The system refused.
    Device(Error),
}

impl Holder {
    /// The process of this number, with the name of its program.
    pub fn of(process: Option<u32>) -> Self {
        let program = process.and_then(|process| std::fs::read_to_string(std::format!("/proc/{process}/comm")).ok());
        Self { process, program: program.map(|name| name.trim_end().into()) }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.process, &self.program) {
            (Some(process), Some(program)) => write!(f, "process {process} ({program})"),
            (Some(process), None) => write!(f, "process {process}"),
            _ => f.write_str("another connection"),
        }
    }
}

impl fmt::Display for LockError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LockError::Held(holder) => write!(f, "{holder} is writing"),
            LockError::Device(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for LockError {}

impl From<Error> for LockError {
    fn from(error: Error) -> Self {
        LockError::Device(error)
    }
}

/// The right to write, held until dropped.
pub struct WriterLock {
    handle: Handle,
    process: u32,
}

impl WriterLock {
    /// Takes the writer's lock, waiting up to `timeout` for another to let go of it. Two locks taken through clones of
    /// one device are one and the same to the kernel: the caller keeps at most one.
    ///
    /// # Errors
    /// [`LockError::Held`] after the time is over; [`LockError::Device`] when the file is open for reading only
    /// ([`Error::ReadOnly`]) or the file system knows no locks.
    pub fn acquire(handle: &Handle, timeout: Duration) -> Result<Self, LockError> {
        if !handle.is_writable() {
            return Err(Error::ReadOnly.into());
        }
        let deadline = Instant::now() + timeout;
        let mut pause = Duration::from_millis(1);
        while !set(handle, libc::F_WRLCK, WRITER)? {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(LockError::Held(holder(handle)));
            }
            std::thread::sleep(pause.min(left));
            pause = (pause * 2).min(Duration::from_millis(20));
        }
        // Failing to leave a name is no reason to refuse the lock.
        let _ = fcntl(handle.file(), FcntlArg::F_SETLK(&range(libc::F_WRLCK, WRITER_NAME, 1)));
        Ok(Self { handle: handle.clone(), process: std::process::id() })
    }

    fn is_inherited(&self) -> bool {
        self.process != std::process::id()
    }
}

impl Drop for WriterLock {
    fn drop(&mut self) {
        if self.is_inherited() {
            return;
        }
        // Readers may go on with the same open file, so the locks do not end with it. The kernel has no reason to
        // refuse; if it did, the lock would end with the process.
        let _ = fcntl(self.handle.file(), FcntlArg::F_SETLK(&range(libc::F_UNLCK, WRITER_NAME, 1)));
        let _ = set(&self.handle, libc::F_UNLCK, WRITER);
    }
}

/// The snapshots that readers of one open file need, and the view on those that others need.
#[derive(Clone)]
pub struct Pins {
    handle: Handle,
    process: u32,
    counts: Arc<Mutex<BTreeMap<u64, usize>>>,
}

/// One reader's claim to the snapshot of a commit, held until dropped.
pub struct Pin {
    pins: Pins,
    commit: u64,
}

impl Pins {
    /// The pins upon one open file. Clones share them; there is to be one per [`Handle`].
    pub fn new(handle: &Handle) -> Self {
        Self { handle: handle.clone(), process: std::process::id(), counts: Arc::default() }
    }

    /// Claims the snapshot of `commit`. See invariant 4 for what the caller does next.
    ///
    /// # Errors
    /// [`Error::Device`] when the file system knows no locks or the number is above [`COMMIT_MAX`].
    pub fn acquire(&self, commit: u64) -> Result<Pin, Error> {
        let at = place(commit)?;
        let mut counts = self.counts();
        if !counts.contains_key(&commit) && !set(&self.handle, libc::F_RDLCK, at)? {
            return Err(refused(Errno::EAGAIN));
        }
        *counts.entry(commit).or_insert(0) += 1;
        drop(counts);
        Ok(Pin { pins: self.clone(), commit })
    }

    /// The oldest commit below `below` that anybody needs: readers of this open file, of other openings, of other
    /// processes.
    ///
    /// # Errors
    /// [`Error::Device`] when the file system knows no locks.
    pub fn oldest(&self, below: u64) -> Result<Option<u64>, Error> {
        self.oldest_in(0..below)
    }

    /// The oldest commit of a range that anybody needs, as [`Pins::oldest`] finds it: for whoever has given up on
    /// readers that are older.
    ///
    /// # Errors
    /// [`Error::Device`] when the file system knows no locks.
    pub fn oldest_in(&self, range: Range<u64>) -> Result<Option<u64>, Error> {
        if range.is_empty() {
            return Ok(None);
        }
        let ours = self.counts().range(range.clone()).next().map(|(commit, _)| *commit);
        let theirs = oldest_of_others(&self.handle, range.start..ours.unwrap_or(range.end))?;
        Ok(theirs.or(ours))
    }

    fn counts(&self) -> MutexGuard<'_, BTreeMap<u64, usize>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pin {
    /// The commit whose snapshot is claimed.
    pub fn commit(&self) -> u64 {
        self.commit
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut counts = self.pins.counts();
        match counts.get_mut(&self.commit) {
            Some(count) if *count > 1 => *count -= 1,
            _ => {
                counts.remove(&self.commit);
                if self.pins.process == std::process::id()
                    && let Ok(at) = place(self.commit)
                {
                    // As with the writer's lock, at worst it ends with the process.
                    let _ = set(&self.pins.handle, libc::F_UNLCK, at);
                }
            }
        }
    }
}

/// The oldest commit of a range that is pinned through another opening of the file.
fn oldest_of_others(handle: &Handle, commits: Range<u64>) -> Result<Option<u64>, Error> {
    let mut oldest = None;
    let first = PINS + commits.start.min(COMMIT_MAX) as i64;
    let mut end = PINS + commits.end.min(COMMIT_MAX) as i64;
    // The kernel names some lock within the range; below it there may be another. Each turn ends lower.
    while end > first {
        let mut lock = range(libc::F_WRLCK, first, end - first);
        fcntl(handle.file(), FcntlArg::F_OFD_GETLK(&mut lock)).map_err(refused)?;
        if i32::from(lock.l_type) == libc::F_UNLCK {
            break;
        }
        let start = lock.l_start.clamp(first, end - 1);
        oldest = Some((start - PINS) as u64);
        end = start;
    }
    Ok(oldest)
}

fn place(commit: u64) -> Result<i64, Error> {
    if commit >= COMMIT_MAX { Err(refused(Errno::EOVERFLOW)) } else { Ok(PINS + commit as i64) }
}

/// Sets or clears a lock of this open file on one byte; false when another stands in the way.
fn set(handle: &Handle, kind: libc::c_int, at: i64) -> Result<bool, Error> {
    loop {
        match fcntl(handle.file(), FcntlArg::F_OFD_SETLK(&range(kind, at, 1))) {
            Ok(_) => return Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(refused(errno)),
        }
    }
}

/// Who left a name, if it is still there.
fn holder(handle: &Handle) -> Holder {
    let mut lock = range(libc::F_WRLCK, WRITER_NAME, 1);
    let found = fcntl(handle.file(), FcntlArg::F_GETLK(&mut lock)).is_ok() && i32::from(lock.l_type) != libc::F_UNLCK;
    let process = u32::try_from(lock.l_pid).ok().filter(|process| found && *process != 0);
    Holder::of(process)
}

fn range(kind: libc::c_int, start: i64, length: i64) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: start,
        l_len: length,
        l_pid: 0,
    }
}

fn refused(errno: Errno) -> Error {
    typed(Operation::Lock, PageNumber(0), &errno.into())
}

#[cfg(test)]
mod tests;
