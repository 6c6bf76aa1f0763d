//! When readers last began with a snapshot: a writer that has only just come waits for them no longer than one that has
//! waited all the time.
//!
//! ```text
//! byte 2^61 + commit (its low 17 bits) * 2^44 + boot (16 bits) * 2^28 + second (28 bits)   shared
//! ```
//! 1. Seconds are those of the clock that all processes of a running system have in common and nobody sets, rounded up:
//!    whoever takes a reader for old is right. It is the clock of [`std::time::Instant`], and stands still while the
//!    machine sleeps.
//! 2. Clocks of two systems that share a file tell each other nothing. *Boot* keeps them apart.
//! 3. Of commits with the same low bits, and of readers of one commit, the one that began last counts.

use core::ops::Range;
use std::sync::OnceLock;
use std::time::Duration;

use nix::time::ClockId;

use crate::Error;
use crate::raw::Handle;

use super::first_of_others;

const FIRST: i64 = 1 << 61;
const COMMIT_BITS: u32 = 17;
const SECOND_BITS: u32 = 28;
const BOOT_BITS: u32 = 16;
const SECOND_LAST: u64 = (1 << SECOND_BITS) - 1;

/// The second that is now, or the last one that a byte can tell of.
fn seconds(rounded_up: bool) -> u64 {
    let now = ClockId::CLOCK_MONOTONIC.now().map(Duration::from).unwrap_or_default();
    let up = u64::from(rounded_up && now.subsec_nanos() > 0);
    (now.as_secs() + up).min(SECOND_LAST)
}

/// What tells this run of the system from others; none where it does not say.
fn boot() -> Option<u64> {
    static BOOT: OnceLock<Option<u64>> = OnceLock::new();
    *BOOT.get_or_init(|| {
        let id = std::fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        // Containers may have a clock of their own.
        let clock = std::fs::read_link("/proc/self/ns/time").unwrap_or_default();
        let bytes = id.iter().chain(clock.as_os_str().as_encoded_bytes());
        // FNV-1a, folded.
        let hash = bytes
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
        Some((hash ^ hash >> 32) >> BOOT_BITS & ((1 << BOOT_BITS) - 1))
    })
}

/// The bytes that tell of one commit, from the first one of a boot on.
fn first_byte(commit: u64, boot: u64) -> i64 {
    let commit = commit & ((1 << COMMIT_BITS) - 1);
    FIRST + (((commit << BOOT_BITS | boot) << SECOND_BITS) as i64)
}

/// The byte of whoever begins now; none on a system that does not tell itself apart.
pub(super) fn now(commit: u64) -> Option<i64> {
    boot().map(|boot| first_byte(commit, boot) + seconds(true) as i64)
}

/// Whether all readers of a commit through other openings began longer ago than `age`. False where that is not known.
pub(super) fn all_before(handle: &Handle, commit: u64, age: Duration) -> Result<bool, Error> {
    let Some(boot) = boot() else { return Ok(false) };
    let all = first_byte(commit, 0)..first_byte(commit, 0) + (1 << (BOOT_BITS + SECOND_BITS));
    let own = first_byte(commit, boot)..first_byte(commit, boot) + (1 << SECOND_BITS);
    let age = age.as_secs().saturating_add(u64::from(age.subsec_nanos() > 0));
    let young = own.start + seconds(false).saturating_sub(age) as i64..own.end;
    let is_told = |bytes: Range<i64>| first_of_others(handle, bytes).map(|found| found.is_some());
    let is_old = is_told(own.start..young.start)?;
    Ok(is_old && !is_told(young)? && !is_told(all.start..own.start)? && !is_told(own.end..all.end)?)
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;

    use nix::libc;

    use super::super::{Pins, set};
    use super::*;
    use crate::{FileDevice, Geometry};

    const SHAPE: Geometry =
        Geometry { page_bytes: 512, block_pages: 8, block_count: 64, erase_before_program: false, grows: true };
    /// Long enough that a machine that is busy comes to ask before it is over.
    const AGE: Duration = Duration::from_secs(2);

    #[test]
    fn a_writer_that_has_just_come_knows_how_long_readers_have_read() -> Result<(), Error> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("medium");
        let devices = [FileDevice::create_new(&path, SHAPE)?, FileDevice::open(&path, SHAPE)?];
        let [reader, other] = devices.each_ref().map(|device| Pins::new(device.handle()));
        let is_old = |commit| {
            let newcomer = FileDevice::open(&path, SHAPE)?;
            Pins::new(newcomer.handle()).have_all_begun_before(commit, AGE)
        };
        let (nine, ten) = (reader.acquire(9)?, reader.acquire(10)?);
        assert!(!is_old(9)? && !is_old(8)?, "nobody reads 8, and 9 for a moment only");
        sleep(AGE + Duration::from_secs(2));
        assert!(is_old(9)? && is_old(10)? && !is_old(8)?);
        assert!(!reader.have_all_begun_before(9, AGE)?, "they are its own");
        // Whoever begins with it is waited for, here or in another process.
        nine.renew()?;
        let again = other.acquire(10)?;
        assert!(!is_old(9)? && !is_old(10)?);
        drop(again);
        assert!(is_old(10)?);
        let second = reader.acquire(10)?;
        assert!(!is_old(10)?);
        sleep(AGE + Duration::from_secs(2));
        assert!(is_old(9)? && is_old(10)?);
        // A reader on another machine: its clock is not ours.
        let foreign = first_byte(9, boot().expect("told") ^ 1);
        set(devices[1].handle(), libc::F_RDLCK, foreign)?;
        assert!(!is_old(9)? && is_old(10)?);
        drop((nine, ten, second));
        assert_eq!(first_of_others(devices[1].handle(), FIRST..i64::MAX)?, None, "what they said goes with them");
        Ok(())
    }

    #[test]
    fn the_bytes_lie_between_data_and_the_writer() {
        for (commit, boot) in [(0, 0), (u64::MAX, (1 << BOOT_BITS) - 1)] {
            let bytes = first_byte(commit, boot)..first_byte(commit, boot) + (1 << SECOND_BITS);
            assert!(bytes.start as u64 >= crate::MEDIUM_BYTES_MAX && bytes.end <= super::super::WRITER);
        }
        assert_ne!(first_byte(1, 7), first_byte(2, 7));
        assert!(boot().is_some_and(|boot| boot >> BOOT_BITS == 0) && seconds(true) >= seconds(false));
    }
}
