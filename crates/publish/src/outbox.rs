//! What mirrors have not been told yet: an update for a mirror from what it says that it has.
//!
//! ```text
//! xo rid      number of the commit that touched an entry last, 1 if it is gone       xv number   mark of a commit
//! ```
//! 1. A commit's mark is the hash of the mark before and of all that mirrors see of the commit. An owner that was put back to
//!    yesterday and went on otherwise has other marks, and a mirror that saw the lost ones begins anew.
//! 2. Marks, and what is known of records that are gone, are kept for so many commits; a mirror further behind begins anew.
//! 3. All of it is in the commit that it tells of: an owner killed at any moment knows what it has to send.

use std::collections::{BTreeSet, HashMap, VecDeque};

use counterfoil_mirror::wire::{Change as Told, Progress, State, SummaryHead, UPDATE_BYTES_MAX, Update};
use counterfoil_proof::Digest;
use counterfoil_proof::bytes::{Reader, Writer};
use sha2::{Digest as _, Sha256};

use crate::error::Error;
use crate::ledger::{Change, Ledger};
use crate::publication::Publication;

/// Commits of which a mirror may be behind without beginning anew: one a minute for 45 days.
const COMMITS_KEPT: usize = 1 << 16;

/// Bytes that an update has beside what is counted when it is filled: states, counts, lengths.
const UPDATE_BYTES_BESIDE: usize = 1 << 10;

/// What was touched when.
#[derive(Default)]
pub(crate) struct Outbox {
    /// The last commits: number and mark, ascending.
    marks: VecDeque<(u64, Digest)>,
    numbers: HashMap<Digest, u64>,
    touched: HashMap<u64, u64>,
    /// The same by commit.
    order: BTreeSet<(u64, u64)>,
    /// Those of them that are gone.
    gone: BTreeSet<(u64, u64)>,
}

impl Outbox {
    /// Reads what the ledger holds.
    pub fn open(ledger: &mut impl Ledger) -> Result<Self, Error> {
        let corrupt = |_| Error::Corrupt("what mirrors have not been told");
        let mut outbox = Self::default();
        for (key, mark) in ledger.scan(b"xv")? {
            let mark = Reader::new(&mark, "").array().map_err(corrupt)?;
            outbox.mark(Reader::new(&key[2..], "").array().map(u64::from_be_bytes).map_err(corrupt)?, mark);
        }
        for (key, touched) in ledger.scan(b"xo")? {
            let rid = Reader::new(&key[2..], "").array().map(u64::from_be_bytes).map_err(corrupt)?;
            let mut reader = Reader::new(&touched, "");
            let (number, gone) = (reader.number().map_err(corrupt)?, reader.byte().map_err(corrupt)? == 1);
            outbox.touch(rid, number, gone);
        }
        Ok(outbox)
    }

    /// Adds to the changes of a commit what it is to leave here.
    pub fn note(&mut self, changes: &mut Vec<Change>) {
        self.note_within(changes, COMMITS_KEPT);
    }

    fn note_within(&mut self, changes: &mut Vec<Change>, kept: usize) {
        let (before, mark_before) = self.last();
        let number = before + 1;
        let mut hash = Sha256::new();
        hash.update(mark_before);
        let mut noted = Vec::new();
        for (key, value) in changes.iter().filter(|(key, _)| is_told(key)) {
            let mut writer = Writer::default();
            writer.string(key).byte(u8::from(value.is_some())).string(value.as_deref().unwrap_or_default());
            hash.update(&writer.0);
            if let Some(rid) = rid_of(key) {
                self.touch(rid, number, value.is_none());
                let mut writer = Writer::default();
                writer.number(number).byte(u8::from(value.is_none()));
                noted.push((touched_key(rid), Some(writer.0)));
            }
        }
        let mark: Digest = hash.finalize().into();
        self.mark(number, mark);
        noted.push((mark_key(number), Some(mark.to_vec())));
        self.forget(kept, &mut noted);
        changes.extend(noted);
    }

    fn mark(&mut self, number: u64, mark: Digest) {
        self.marks.push_back((number, mark));
        self.numbers.insert(mark, number);
    }

    fn touch(&mut self, rid: u64, number: u64, gone: bool) {
        if let Some(before) = self.touched.insert(rid, number) {
            self.order.remove(&(before, rid));
            self.gone.remove(&(before, rid));
        }
        self.order.insert((number, rid));
        if gone {
            self.gone.insert((number, rid));
        }
    }

    /// Forgets the oldest marks, and what went before them: whoever was told less begins anew.
    fn forget(&mut self, kept: usize, noted: &mut Vec<Change>) {
        while self.marks.len() > kept {
            if let Some((number, mark)) = self.marks.pop_front() {
                self.numbers.remove(&mark);
                noted.push((mark_key(number), None));
            }
        }
        let first = self.marks.front().map_or(0, |(number, _)| *number);
        while let Some((number, rid)) = self.gone.first().copied().filter(|(number, _)| *number <= first) {
            self.gone.remove(&(number, rid));
            self.order.remove(&(number, rid));
            self.touched.remove(&rid);
            noted.push((touched_key(rid), None));
        }
    }

    fn last(&self) -> (u64, Digest) {
        self.marks.back().copied().unwrap_or_default()
    }

    /// Whether a mirror that says this has been told a part of what was told from here, and is not too far behind.
    fn knows(&self, state: &State) -> bool {
        let told = self.numbers.get(&state.mark).is_some_and(|number| *number >= state.progress.number);
        told && self.numbers.contains_key(&state.base)
    }
}

/// Whether mirrors see this key's value: entries, summaries, the manifest. Nothing secret goes into a mark.
fn is_told(key: &[u8]) -> bool {
    rid_of(key).is_some() || matches!(key, [b'm'] | [b'y', _, _, _, _, _, _, _, _])
}

fn rid_of(key: &[u8]) -> Option<u64> {
    key.strip_prefix(b"e").and_then(|rid| rid.try_into().ok()).map(u64::from_be_bytes)
}

fn touched_key(rid: u64) -> Vec<u8> {
    [&b"xo"[..], &rid.to_be_bytes()].concat()
}

fn mark_key(number: u64) -> Vec<u8> {
    [&b"xv"[..], &number.to_be_bytes()].concat()
}

fn entry_key(rid: u64) -> Vec<u8> {
    [&b"e"[..], &rid.to_be_bytes()].concat()
}

fn summary_key(period: u64) -> Vec<u8> {
    [&b"y"[..], &period.to_be_bytes()].concat()
}

impl<L: Ledger> Publication<L> {
    /// The next update, of about `bytes_most` bytes, for a mirror that says that it has `state`; none if it has everything. A mirror that
    /// knows nothing, is too far behind, or was told what this owner has lost since, begins anew.
    ///
    /// # Errors
    /// [`Error::Latched`], [`Error::Misuse`]: no honest mirror says this; those of the ledger.
    pub fn update_for(&mut self, state: &State, bytes_most: usize) -> Result<Option<Vec<u8>>, Error> {
        self.is_whole()?;
        let is_anew = !self.goes_on(state)?;
        let (last, mark) = self.outbox.last();
        if !is_anew && state.is_whole && state.progress.number == last {
            return Ok(None);
        }
        let generation = state.progress.generation.checked_add(1);
        let generation = generation.ok_or_else(|| Error::Misuse("a mirror that began anew too often".into()))?;
        let begun = State { progress: Progress { generation, ..Progress::default() }, ..State::default() };
        let start = if is_anew { begun } else { *state };
        let mut room = bytes_most.min(UPDATE_BYTES_MAX - UPDATE_BYTES_BESIDE).saturating_sub(self.manifest().len());
        let mut progress = start.progress;
        let changes = self.changes_after(&mut progress, &mut room)?;
        let mut last_summary = start.last_summary;
        let mut summaries = Vec::new();
        let open = self.period.number;
        // Summaries come when all changes of before are told.
        if progress.number == last && progress.rid == u64::MAX {
            while progress.periods < open {
                let summary = self.summary(progress.periods)?;
                if room < summary.len() + 8 && !(summaries.is_empty() && changes.is_empty()) {
                    break;
                }
                room = room.saturating_sub(summary.len() + 8);
                last_summary = SummaryHead::of(&summary)?.digest;
                summaries.push(summary);
                progress.periods += 1;
            }
        }
        let is_whole = progress.number == last && progress.rid == u64::MAX && progress.periods == open;
        let base = if is_whole || is_anew { mark } else { start.base };
        let after = State { progress, mark, base, last_summary, is_whole };
        let manifest = self.manifest().to_vec();
        let (oldest, before) = (self.oldest_period(), *state);
        let update = Update { is_anew, before, after, open, oldest, manifest, summaries, changes };
        self.sign_update(&update).map(Some)
    }

    /// Whether what a mirror has is a part of what this owner has.
    fn goes_on(&mut self, state: &State) -> Result<bool, Error> {
        if !self.outbox.knows(state) || state.progress.periods > self.period.number {
            return Ok(false);
        }
        match state.progress.periods.checked_sub(1) {
            None => Ok(state.last_summary == [0; 32]),
            Some(period) => Ok(SummaryHead::of(&self.summary(period)?)?.digest == state.last_summary),
        }
    }

    /// Entries touched after a place, as many as there is room for and one at least, by record number.
    fn changes_after(&mut self, progress: &mut Progress, room: &mut usize) -> Result<Vec<Told>, Error> {
        let (last, _) = self.outbox.last();
        let from = (progress.number, progress.rid);
        let mut changes = Vec::new();
        let mut is_full = false;
        let mut at = from;
        // One by one, since the ledger is asked in between.
        while let Some(next) = self.outbox.next(at) {
            let entry = if self.outbox.gone.contains(&next) { None } else { Some(self.entry_bytes(next.1)?) };
            let bytes = entry.as_ref().map_or(0, Vec::len) + 16;
            if bytes > *room && !changes.is_empty() {
                is_full = true;
                break;
            }
            *room = room.saturating_sub(bytes);
            changes.push((next.1, entry));
            at = next;
        }
        (progress.number, progress.rid) = if is_full { at } else { (last, u64::MAX) };
        changes.sort_unstable_by_key(|(rid, _)| *rid);
        Ok(changes)
    }

    fn entry_bytes(&mut self, rid: u64) -> Result<Vec<u8>, Error> {
        self.ledger.get(&entry_key(rid))?.ok_or(Error::Corrupt("a record that was there"))
    }

    fn summary(&mut self, period: u64) -> Result<Vec<u8>, Error> {
        self.ledger.get(&summary_key(period))?.ok_or(Error::Corrupt("a summary"))
    }
}

impl Outbox {
    fn next(&self, at: (u64, u64)) -> Option<(u64, u64)> {
        use std::ops::Bound::{Excluded, Unbounded};
        self.order.range((Excluded(at), Unbounded)).next().copied()
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_mirror::wire::{Progress, State};

    use super::{Outbox, entry_key};
    use crate::ledger::{Ledger as _, MemoryLedger};

    fn state(outbox: &Outbox) -> State {
        let (number, mark) = outbox.last();
        let progress = Progress { generation: 1, number, rid: u64::MAX, periods: 0 };
        State { progress, mark, base: mark, last_summary: [0; 32], is_whole: true }
    }

    #[test]
    fn what_was_forgotten_is_not_gone_on_from() {
        let (mut outbox, mut ledger) = (Outbox::default(), MemoryLedger::default());
        let mut states = Vec::new();
        for rid in 40..60 {
            let mut changes = vec![(entry_key(rid), Some(vec![1])), (entry_key(rid - 1), None)];
            outbox.note_within(&mut changes, 8);
            ledger.commit(changes).expect("a commit");
            states.push(state(&outbox));
        }
        let read = Outbox::open(&mut ledger).expect("an outbox");
        for outbox in [&outbox, &read] {
            let known: Vec<bool> = states.iter().map(|state| outbox.knows(state)).collect();
            assert_eq!(known, [vec![false; 12], vec![true; 8]].concat());
            // Of what is gone there is as much as somebody who is known may need.
            assert_eq!((outbox.gone.len(), outbox.order.len()), (7, 8));
        }
        assert_eq!(outbox.order, read.order);
    }

    #[test]
    fn an_owner_that_was_put_back_and_went_on_otherwise_has_other_marks() {
        let mut marks = Vec::new();
        for value in [1, 2, 1] {
            let mut outbox = Outbox::default();
            outbox.note(&mut vec![(entry_key(40), Some(vec![value]))]);
            outbox.note(&mut vec![(entry_key(41), Some(vec![7]))]);
            // What is secret is in none.
            outbox.note(&mut vec![(b"s".to_vec(), Some(vec![value; 96]))]);
            marks.push(outbox.last());
        }
        assert_eq!(marks[0], marks[2]);
        assert_ne!(marks[0], marks[1]);
    }
}
