//! A counter in the memory of a TPM 2.0, out of reach of whoever has the machine's disks, and of its administrator too
//! as far as going down is concerned.
//!
//! ```text
//! index 0: counter, u64 big-endian, as the TPM counts it          index 1, 2: a slot each, 48 bytes
//! slot:  0 count u64: what index 0 holds when this slot holds | 8 value u64 | 16 tag [16] | 32 time u64
//!       40 rollbacks u32 | 44 zero [4]
//! step:  slot (count + 1) mod 2 is written -> index 0 goes up -> both are read back
//! ```
//! 1. The slot whose count is that of index 0 holds; of counts that follow each other, one is in each slot.
//! 2. So a cut before index 0 went up leaves the slot before, and a cut after it the slot after. Whatever a cut does to
//!    an index that is being written, it is the one that nobody needs.
//! 3. Index 0 never goes down and never begins below where any counter of this TPM stood. That it does not begin at the
//!    value of a new database, or goes up by one where a database is adopted at a higher one, is what slots are for.
//! 4. Reading and writing take a secret that only a holder of the volume key knows: answers are under its MAC, and
//!    whoever deletes the indices cannot make others that answer.

use std::path::{Path, PathBuf};
use std::string::String;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{format, fs};

use counterfoil_flash as flash;
use flash::lock::LockFile;
use zeroize::Zeroizing;

use crate::counter::may_step;
use crate::counter::{Counter, CounterError, CounterKind, CounterValue};
use crate::file_counter::not_locked;
use crate::keys::Purpose;
use crate::tpm::{Found, Talk};
use crate::tpm_error::{AUTH_FAIL, BAD_AUTH, error_number};
use crate::{CounterRecord, DatabaseId, HostCounter, Tag, Tpm, TpmError, Vault};

mod indices;
mod slot;

use indices::Indices;
use slot::Slot;

/// The counter of one database in one TPM. Nothing is asked of the TPM before the counter is asked something.
pub struct TpmCounter {
    tpm: Tpm,
    id: DatabaseId,
    secret: Zeroizing<[u8; 32]>,
    directory: Option<PathBuf>,
    lock: Option<LockFile>,
    /// The highest count this handle has seen.
    seen: Option<u64>,
    /// What the next slot written says of rollbacks, if it is not what the newest one says.
    rollbacks: Option<u32>,
}

impl TpmCounter {
    /// The counter of the database that `vault` holds the keys of. In `directory` is the lock that keeps the writers of
    /// two copies of the database apart, where there is one.
    pub fn new(tpm: &Tpm, directory: Option<&Path>, vault: &Vault) -> TpmCounter {
        TpmCounter {
            tpm: tpm.clone(),
            id: vault.id(),
            secret: vault.root.derive_fixed(Purpose::TpmCounter),
            directory: directory.map(Path::to_path_buf),
            lock: None,
            seen: None,
            rollbacks: None,
        }
    }

    /// The indices, if there are any of this database.
    fn find(&self, talk: &mut Talk) -> Result<Option<(Indices, Found)>, CounterError> {
        for indices in Indices::places(self.id) {
            match indices.counter.find(talk).map_err(failed)? {
                Found::Free | Found::Other => {}
                found => return Ok(Some((indices, found))),
            }
        }
        Ok(None)
    }

    fn talk(&self) -> Result<Talk, CounterError> {
        self.tpm.talk().map_err(|error| match error {
            TpmError::Absent => CounterError::Absent,
            other => failed(other),
        })
    }

    /// The indices and the slot that holds.
    fn newest(&mut self, talk: &mut Talk) -> Result<(Indices, Slot), CounterError> {
        match self.find(talk)? {
            None => Err(CounterError::Absent),
            Some((indices, Found::Whole { written: true })) => {
                let slot = self.read(talk, &indices)?;
                Ok((indices, slot))
            }
            Some(_) => Err(CounterError::Damaged),
        }
    }

    /// The slot that holds, read together with the counter.
    fn read(&mut self, talk: &mut Talk, indices: &Indices) -> Result<Slot, CounterError> {
        let mut count = self.count(talk, indices)?;
        if let Some(seen) = self.seen.filter(|seen| *seen > count) {
            return Err(CounterError::WentBack { seen, found: count });
        }
        loop {
            self.seen = Some(count);
            let bytes = indices.slot(count).read(talk, &self.secret).map_err(|error| match error {
                TpmError::Refused { .. } => CounterError::Damaged,
                other => failed(other),
            })?;
            let slot = Slot::decode(&bytes).ok_or(CounterError::Damaged)?;
            let again = self.count(talk, indices)?;
            match slot {
                slot if again == count && slot.count == count => return Ok(slot),
                _ if again <= count => return Err(CounterError::Damaged),
                // Somebody else stepped it meanwhile. It goes up, so this ends.
                _ => count = again,
            }
        }
    }

    fn count(&self, talk: &mut Talk, indices: &Indices) -> Result<u64, CounterError> {
        let bytes = indices.counter.read(talk, &self.secret).map_err(|error| match error {
            TpmError::Refused { code, .. } if is_other_secret(code) => CounterError::Foreign,
            other => failed(other),
        })?;
        Ok(bytes.first_chunk().copied().map_or(0, u64::from_be_bytes))
    }

    /// Writes the slot of the next count, then counts. A cut between the two leaves the counter where it was.
    fn advance(&mut self, talk: &mut Talk, indices: &Indices, count: u64, slot: Slot) -> Result<(), CounterError> {
        let next = slot.count;
        let index = indices.slot(next);
        let Found::Whole { written } = index.find(talk).map_err(failed)? else { return Err(CounterError::Damaged) };
        index.write(talk, &self.secret, written, &slot.encode()).map_err(failed)?;
        indices.counter.increment(talk, &self.secret, true).map_err(failed)?;
        match self.read(talk, indices)? {
            found if found == slot => Ok(()),
            found if found.count == count => Err(CounterError::Stuck { asked: slot.value, found: found.value }),
            found => Err(CounterError::OtherCommit { value: found.value }),
        }
    }

    /// A slot as it is to be written.
    fn slot(&self, count: u64, value: u64, tag: &Tag, before: Option<&Slot>) -> Slot {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let rollbacks = self.rollbacks.unwrap_or(before.map_or(0, |before| before.rollbacks));
        Slot { count, value, tag: *tag, time, rollbacks }
    }

    /// The indices, made anew where they are not whole, and the count they stand at.
    fn made(&self) -> Result<(Talk, Indices, u64), CounterError> {
        let (mut talk, _) = self.tpm.salted_talk().map_err(failed)?;
        let indices = match self.find(&mut talk)? {
            Some((indices, _)) => indices,
            None => self.room(&mut talk)?,
        };
        if let Some(count) = self.whole(&mut talk, &indices)? {
            return Ok((talk, indices, count));
        }
        for index in indices.all() {
            index.undefine(&mut talk).map_err(failed)?;
        }
        // The counter last: a cut before it leaves no counter, and the next attempt these places.
        for index in indices.all().into_iter().rev() {
            index.define(&mut talk, &self.secret).map_err(failed)?;
        }
        indices.counter.increment(&mut talk, &self.secret, false).map_err(failed)?;
        let count = self.count(&mut talk, &indices)?;
        Ok((talk, indices, count))
    }

    /// The count, if all indices are there and answer to our secret.
    fn whole(&self, talk: &mut Talk, indices: &Indices) -> Result<Option<u64>, CounterError> {
        for slot in &indices.slots {
            let Found::Whole { .. } = slot.find(talk).map_err(failed)? else { return Ok(None) };
        }
        let Found::Whole { written: true } = indices.counter.find(talk).map_err(failed)? else { return Ok(None) };
        match self.count(talk, indices) {
            Ok(count) => Ok(Some(count)),
            Err(CounterError::Foreign | CounterError::Damaged) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A place where nobody else has anything.
    fn room(&self, talk: &mut Talk) -> Result<Indices, CounterError> {
        for indices in Indices::places(self.id) {
            let mut others = 0;
            for index in indices.all() {
                others += u32::from(index.find(talk).map_err(failed)? == Found::Other);
            }
            if others == 0 {
                return Ok(indices);
            }
        }
        Err(CounterError::Device { operation: "made: others have all its places in the TPM", code: 0 })
    }
}

impl HostCounter for TpmCounter {
    fn record(&mut self) -> Result<CounterRecord, CounterError> {
        let (_, slot) = self.newest(&mut self.talk()?)?;
        let Slot { value, tag, time, rollbacks, .. } = slot;
        Ok(CounterRecord { value, tag, time, path: String::new(), rollbacks })
    }

    fn hold(&mut self, patience: Duration) -> Result<(), CounterError> {
        let Some(directory) = &self.directory else { return Ok(()) };
        // A child that inherited the lock by `fork` asks for one of its own, and is refused as its parent has it.
        if self.lock.as_ref().is_none_or(LockFile::is_inherited) {
            let code = |error: std::io::Error| error.raw_os_error().unwrap_or(0);
            let mut builder = fs::DirBuilder::new();
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            let made = builder.recursive(true).create(directory);
            made.map_err(|error| CounterError::Device { operation: "locked", code: code(error) })?;
            let path = directory.join(format!("{}.counter.lock", self.id));
            self.lock = Some(LockFile::acquire(&path, patience).map_err(not_locked)?);
        }
        Ok(())
    }

    fn set_rollbacks(&mut self, rollbacks: u32) {
        self.rollbacks = Some(rollbacks);
    }

    fn forget(&mut self) -> Result<(), CounterError> {
        let mut talk = self.talk()?;
        let (indices, _) = self.find(&mut talk)?.ok_or(CounterError::Absent)?;
        self.hold(Duration::ZERO)?;
        self.seen = None;
        // The counter last: as long as it is there, what a cut leaves is found again.
        for index in indices.all().into_iter().rev() {
            index.undefine(&mut talk).map_err(failed)?;
        }
        Ok(())
    }

    fn place(&self) -> PathBuf {
        self.tpm.path().to_path_buf()
    }
}

impl Counter for TpmCounter {
    fn kind(&self) -> CounterKind {
        CounterKind::Tpm
    }

    fn value(&mut self) -> Result<CounterValue, CounterError> {
        self.newest(&mut self.talk()?).map(|(_, slot)| CounterValue { value: slot.value, tag: Some(slot.tag) })
    }

    fn step(&mut self, to: u64, tag: &Tag) -> Result<(), CounterError> {
        self.hold(Duration::ZERO)?;
        let mut talk = self.talk()?;
        let (indices, held) = self.newest(&mut talk)?;
        if !may_step(&CounterValue { value: held.value, tag: Some(held.tag) }, to, tag)? {
            return Ok(());
        }
        let next = self.slot(held.count + 1, to, tag, Some(&held));
        self.advance(&mut talk, &indices, held.count, next)
    }

    fn adopt(&mut self, value: u64, tag: &Tag) -> Result<(), CounterError> {
        self.hold(Duration::ZERO)?;
        let present = self.talk().and_then(|mut talk| self.newest(&mut talk));
        let before = match present {
            Ok((_, held)) if held.value > value => {
                return Err(CounterError::Lower { present: held.value, asked: value });
            }
            Err(error @ CounterError::Device { .. }) => return Err(error),
            present => present.ok().map(|(_, held)| held),
        };
        let (mut talk, indices, count) = self.made()?;
        self.seen = None;
        let next = self.slot(count + 1, value, tag, before.as_ref());
        self.advance(&mut talk, &indices, count, next)
    }
}

fn is_other_secret(code: u32) -> bool {
    matches!(error_number(code), AUTH_FAIL | BAD_AUTH)
}

/// Answers of the TPM become numbers below zero.
fn failed(error: TpmError) -> CounterError {
    match error {
        TpmError::Absent => CounterError::Device { operation: "found", code: 2 },
        TpmError::System { operation, code } => CounterError::Device { operation, code },
        TpmError::Refused { operation, code } => {
            CounterError::Device { operation, code: i32::try_from(code).map_or(i32::MIN, |code| -code) }
        }
        TpmError::NotAuthentic { .. } => CounterError::Damaged,
        // What a system calls a protocol error.
        TpmError::Malformed { operation } => CounterError::Device { operation, code: 71 },
        TpmError::NoEntropy => CounterError::Device { operation: "read: no random numbers", code: 0 },
    }
}
