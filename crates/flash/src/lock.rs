//! Who may write and what readers still need, told between processes by byte-range locks on the database itself.
//!
//! ```text
//! byte 2^62        exclusive   the one writer
//! byte 2^62 + 1    exclusive   the same, as a classic lock: the kernel tells others its process number
//! byte 2^62 + 16 + n   shared  a reader that needs the snapshot of commit n
//! a byte from 2^61 on  shared  the same reader: when it last began with it (`begun`)
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
use std::collections::btree_map::Entry;
use std::string::String;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

use crate::raw::{Handle, typed};
use crate::{Error, Operation, PageNumber};

mod begun;
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
    claims: Arc<Mutex<BTreeMap<u64, Claim>>>,
}

/// What the readers of one open file have claimed of a commit.
struct Claim {
    readers: usize,
    /// The byte that says when the last of them began.
    begun: Option<i64>,
}

/// One reader's claim to the snapshot of a commit, held until dropped.
pub struct Pin {
    pins: Pins,
    commit: u64,
}

impl Pins {
    /// The pins upon one open file. Clones share them; there is to be one per [`Handle`].
    pub fn new(handle: &Handle) -> Self {
        Self { handle: handle.clone(), process: std::process::id(), claims: Arc::default() }
    }

    /// Claims the snapshot of `commit`. See invariant 4 for what the caller does next.
    ///
    /// # Errors
    /// [`Error::Device`] when the file system knows no locks or the number is above [`COMMIT_MAX`].
    pub fn acquire(&self, commit: u64) -> Result<Pin, Error> {
        let at = place(commit)?;
        let mut claims = self.claims();
        let claim = match claims.entry(commit) {
            Entry::Occupied(claim) => {
                let claim = claim.into_mut();
                claim.begun = self.begin(commit, claim.begun)?;
                claim
            }
            Entry::Vacant(free) => {
                // First: whoever sees the pin sees when it began.
                let begun = self.begin(commit, None)?;
                if !set(&self.handle, libc::F_RDLCK, at)? {
                    begun.map(|byte| set(&self.handle, libc::F_UNLCK, byte)).transpose()?;
                    return Err(refused(Errno::EAGAIN));
                }
                free.insert(Claim { readers: 0, begun })
            }
        };
        claim.readers += 1;
        drop(claims);
        Ok(Pin { pins: self.clone(), commit })
    }

    /// Says that a reader begins with a commit now, and no longer that one began before; the byte that says so.
    fn begin(&self, commit: u64, before: Option<i64>) -> Result<Option<i64>, Error> {
        let now = begun::now(commit);
        if now != before {
            now.map(|byte| set(&self.handle, libc::F_RDLCK, byte)).transpose()?;
            before.map(|byte| set(&self.handle, libc::F_UNLCK, byte)).transpose()?;
        }
        Ok(now)
    }

    /// Whether all readers of a commit, those of other openings, began with it longer ago than `age`. Where that is not
    /// known, as of readers on another machine, it is not so; nor if readers of this opening have it, who are asked
    /// otherwise.
    ///
    /// # Errors
    /// [`Error::Device`] when the file system knows no locks.
    pub fn have_all_begun_before(&self, commit: u64, age: Duration) -> Result<bool, Error> {
        if self.claims().contains_key(&commit) {
            return Ok(false);
        }
        begun::all_before(&self.handle, commit, age)
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
        let ours = self.claims().range(range.clone()).next().map(|(commit, _)| *commit);
        let theirs = oldest_of_others(&self.handle, range.start..ours.unwrap_or(range.end))?;
        Ok(theirs.or(ours))
    }

    fn claims(&self) -> MutexGuard<'_, BTreeMap<u64, Claim>> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pin {
    /// The commit whose snapshot is claimed.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// Says that somebody begins with the snapshot now, and may have it for as long as whoever claims it now.
    ///
    /// # Errors
    /// As [`Pins::acquire`].
    pub fn renew(&self) -> Result<(), Error> {
        if let Some(claim) = self.pins.claims().get_mut(&self.commit) {
            claim.begun = self.pins.begin(self.commit, claim.begun)?;
        }
        Ok(())
    }
}

impl Drop for Pin {
    fn drop(&mut self) {
        let mut claims = self.pins.claims();
        match claims.get_mut(&self.commit) {
            Some(claim) if claim.readers > 1 => claim.readers -= 1,
            _ => {
                let begun = claims.remove(&self.commit).and_then(|claim| claim.begun);
                if self.pins.process == std::process::id() {
                    // As with the writer's lock, at worst they end with the process.
                    for byte in place(self.commit).ok().into_iter().chain(begun) {
                        let _ = set(&self.pins.handle, libc::F_UNLCK, byte);
                    }
                }
            }
        }
    }
}

/// The oldest commit of a range that is pinned through another opening of the file.
fn oldest_of_others(handle: &Handle, commits: Range<u64>) -> Result<Option<u64>, Error> {
    let bytes = PINS + commits.start.min(COMMIT_MAX) as i64..PINS + commits.end.min(COMMIT_MAX) as i64;
    Ok(first_of_others(handle, bytes)?.map(|byte| (byte - PINS) as u64))
}

/// The first byte of some that is locked through another opening of the file.
fn first_of_others(handle: &Handle, bytes: Range<i64>) -> Result<Option<i64>, Error> {
    let mut found = None;
    let mut end = bytes.end;
    // The kernel names some lock within the range; below it there may be another. Each turn ends lower.
    while end > bytes.start {
        let mut lock = range(libc::F_WRLCK, bytes.start, end - bytes.start);
        fcntl(handle.file(), FcntlArg::F_OFD_GETLK(&mut lock)).map_err(refused)?;
        if i32::from(lock.l_type) == libc::F_UNLCK {
            break;
        }
        let start = lock.l_start.clamp(bytes.start, end - 1);
        found = Some(start);
        end = start;
    }
    Ok(found)
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
