//! One file without a name, cut into slots of one size, which all spills of an engine share.
//!
//! ```text
//! | slot 0 | slot 1 (free) | slot 2 | ...        each at (number * SLOT_BYTES)
//! ```
//!
//! A large sort has thousands of runs, and every file of its own would be an open descriptor, of which a process has
//! a thousand.
//!
//! 1. A slot belongs to one spill from `put` until `give_back`.
//! 2. The bytes of all slots in use stay below the bound.
//! 3. When no slot is in use there is no file: its room on the disk is free again.

use std::borrow::Borrow;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

/// Bytes from the start of one slot to that of the next: whole blocks of the disk.
pub(crate) const SLOT_BYTES: u64 = 68 << 10;

/// Where a piece lies.
pub(crate) struct Slot {
    file: Arc<File>,
    number: u64,
    bytes: u64,
}

impl Slot {
    /// Bytes of the piece.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes at an offset in the slot.
    pub(crate) fn write(&self, piece: &[u8], offset: usize) -> io::Result<()> {
        self.file.write_all_at(piece, self.number * SLOT_BYTES + offset as u64)
    }

    /// Reads from an offset in the slot.
    pub(crate) fn read(&self, buffer: &mut [u8], offset: usize) -> io::Result<()> {
        self.file.read_exact_at(buffer, self.number * SLOT_BYTES + offset as u64)
    }
}

/// The slots of an engine.
pub(crate) struct Slots {
    folder: PathBuf,
    bytes_max: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    file: Option<Arc<File>>,
    free: Vec<u64>,
    /// Slots that were ever in use since the file was made.
    count: u64,
    /// Bytes in the slots that are in use.
    bytes: u64,
}

impl Slots {
    pub(crate) fn new(folder: PathBuf, bytes_max: u64) -> Self {
        Slots { folder, bytes_max, state: Mutex::default() }
    }

    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.folder
    }

    /// Writes a piece of at most [`SLOT_BYTES`] into a slot. `None`: that would be more than the bound.
    pub(crate) fn put(&self, piece: &[u8]) -> io::Result<Option<Slot>> {
        debug_assert!(piece.len() as u64 <= SLOT_BYTES, "a piece fits into a slot");
        let Some(slot) = self.take(piece.len() as u64)? else { return Ok(None) };
        match slot.write(piece, 0) {
            Ok(()) => Ok(Some(slot)),
            Err(error) => {
                self.give_back(&[slot]);
                Err(error)
            }
        }
    }

    /// A slot of which so many bytes are used. `None`: that would be more than the bound.
    pub(crate) fn take(&self, bytes: u64) -> io::Result<Option<Slot>> {
        let mut state = self.state.lock();
        if state.bytes + bytes > self.bytes_max {
            return Ok(None);
        }
        let file = match &state.file {
            Some(file) => file.clone(),
            None => state.file.insert(Arc::new(tempfile::tempfile_in(&self.folder)?)).clone(),
        };
        let number = state.free.pop().unwrap_or(state.count);
        state.count = state.count.max(number + 1);
        state.bytes += bytes;
        Ok(Some(Slot { file, number, bytes }))
    }

    pub(crate) fn give_back<S: Borrow<Slot>>(&self, slots: &[S]) {
        let mut state = self.state.lock();
        for slot in slots.iter().map(Borrow::borrow) {
            state.bytes -= slot.bytes;
            state.free.push(slot.number);
        }
        if state.free.len() as u64 == state.count {
            *state = State::default();
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> u64 {
        self.state.lock().bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_that_was_given_back_is_used_again_and_the_last_ends_the_file() {
        let slots = Slots::new(std::env::temp_dir(), 100);
        let first = slots.put(b"first").unwrap().unwrap();
        let second = slots.put(b"second").unwrap().unwrap();
        slots.give_back(&[first]);
        let third = slots.put(b"third").unwrap().unwrap();
        assert_eq!((third.number, second.number), (0, 1));
        let mut read = [0; 5];
        third.read(&mut read, 0).unwrap();
        assert_eq!(&read, b"third");
        slots.give_back(&[second, third]);
        assert!(slots.state.lock().file.is_none());
    }

    #[test]
    fn the_bound_is_over_all_slots() {
        let slots = Slots::new(std::env::temp_dir(), 10);
        let first = slots.put(b"12345678").unwrap().unwrap();
        assert!(slots.put(b"123").unwrap().is_none());
        slots.give_back(&[first]);
        let again = slots.put(b"123").unwrap().unwrap();
        slots.give_back(&[again]);
    }

    #[test]
    fn a_slot_holds_a_sealed_chunk() {
        use counterfoil_vault::{SpillKey, SystemEntropy};
        let (mut sealer, _) = SpillKey::generate(&mut SystemEntropy).unwrap().stream();
        let mut sealed = Vec::new();
        sealer.seal(&vec![1; 64 << 10], true, &mut sealed);
        assert!(sealed.len() as u64 <= SLOT_BYTES);
    }
}
