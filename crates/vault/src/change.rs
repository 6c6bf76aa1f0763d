//! Changing the header without a moment in which a cut loses it.
//!
//! ```text
//! root: old + new   ->  copy 1  ->  flush  ->  copy 2  ->  flush  ->  root: new
//! ```
//! 1. A copy is written only while the other one holds a header that the root names.
//! 2. While the root names two, a copy that is old or fails is finished, not called tampered.
//!
//! The caller drives: it does what [`HeaderChange::step`] asks, then says [`HeaderChange::done`]. A cut at any step is
//! finished by the [`HeaderChange`] that [`crate::Unlocked::settle`] returns: forward if one copy was written whole,
//! back if none was, because then nobody has the new slots any more.

use alloc::vec::Vec;

use crate::{Header, HeaderCopy, RootDigests, SlotsDigest, VolumeKey};

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeStep<'a> {
    /// Commit a root that holds this, durable and counted.
    Commit(RootDigests),
    /// Write these pages (erase first where the medium wants it) at [`HeaderCopy::first_page`], then flush.
    Write {
        /// Which copy.
        copy: HeaderCopy,
        /// Whole pages.
        bytes: &'a [u8],
    },
    /// Nothing: the change is complete.
    Done,
}

#[derive(Clone, Copy)]
enum Task {
    Commit(RootDigests),
    Write(HeaderCopy),
}

/// A change of the header under way.
pub struct HeaderChange {
    bytes: Vec<u8>,
    tasks: Vec<Task>,
    next: usize,
}

impl HeaderChange {
    /// `holds`: which copies are the old header.
    pub(crate) fn begin(old: SlotsDigest, new: &Header, volume_key: &VolumeKey, holds: [bool; 2]) -> HeaderChange {
        let digest = new.slots_digest();
        // A copy that does not hold goes first: while it is written, the other one is the only good one.
        let mut tasks = Vec::from([Task::Commit(RootDigests { current: old, next: Some(digest) })]);
        tasks.extend(writes(|copy| !holds[copy]));
        tasks.extend(writes(|copy| holds[copy]));
        tasks.push(Task::Commit(RootDigests::settled(digest)));
        HeaderChange { bytes: new.encode(volume_key), tasks, next: 0 }
    }

    /// `holds`: which copies are `target` already. They are not touched.
    pub(crate) fn resume(
        root: &RootDigests,
        target: &Header,
        volume_key: &VolumeKey,
        holds: [bool; 2],
    ) -> HeaderChange {
        let digest = target.slots_digest();
        assert!(digest == root.current || Some(digest) == root.next, "the root names the header that is finished");
        let mut tasks: Vec<Task> = writes(|copy| !holds[copy]).collect();
        tasks.push(Task::Commit(RootDigests::settled(digest)));
        HeaderChange { bytes: target.encode(volume_key), tasks, next: 0 }
    }

    /// `holds`: which copies are `current`. The root says so already.
    pub(crate) fn repair(current: &Header, volume_key: &VolumeKey, holds: [bool; 2]) -> HeaderChange {
        let tasks = writes(|copy| !holds[copy]).collect();
        HeaderChange { bytes: current.encode(volume_key), tasks, next: 0 }
    }

    /// What to do now.
    pub fn step(&self) -> ChangeStep<'_> {
        match self.tasks.get(self.next) {
            Some(Task::Commit(digests)) => ChangeStep::Commit(*digests),
            Some(Task::Write(copy)) => ChangeStep::Write { copy: *copy, bytes: &self.bytes },
            None => ChangeStep::Done,
        }
    }

    /// It is done, and durable.
    pub fn done(&mut self) {
        self.next += 1;
    }
}

fn writes(wanted: impl Fn(usize) -> bool) -> impl Iterator<Item = Task> {
    (0..2).filter(move |copy| wanted(*copy)).map(|copy| Task::Write(HeaderCopy::BOTH[copy]))
}
