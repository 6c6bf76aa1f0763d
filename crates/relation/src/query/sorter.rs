//! Sorting records in little memory: what does not fit goes to a scratch in sorted runs, which are merged.
//!
//! ```text
//! a record: | bytes of its key u32 | bytes of its load u32 | key | load |
//!
//! push ... push | arena full: sort, fold equal keys, drop what is past the limit --- half empty again? go on
//!                                                                                \-- otherwise: a run to the scratch
//! next ... next | the arena, or all runs merged; more of them than the memory has room for are merged to fewer first
//! ```
//! Where their places crowd while records come, as many runs of one level as are merged at a time become one of the next: each record is
//! written once for each level, of which there are as many as the logarithm of the runs. Merged in the order in which they came, which is that of
//! their places, each merge of a few new ones had half of all that there was with it.
//!
//! Records with equal keys become one where they are folded, and come in the order of their loads where they are not: so an answer
//! does not depend on how much memory there was.

use alloc::vec::Vec;

use super::packed::wrong;
use super::scratch::Scratch;
use crate::Error;
use counterfoil_log::Order as _;

/// Bytes before the key of a record.
const HEAD_BYTES: usize = 8;
/// About what a record costs beyond its bytes.
const PLACE_BYTES: usize = 2 * size_of::<u32>();
/// A record may take this part of the memory.
const RECORD_SHARE: usize = 8;
/// Least bytes of a run that are read at a time.
const READ_BYTES_MIN: usize = 256;
/// Most.
const READ_BYTES_MAX: usize = 64 << 10;

/// What becomes of records with equal keys.
pub(super) trait Fold {
    /// Takes the load of a record into that of another with the same key. False: they stay two records.
    fn fold(&self, into: &mut Vec<u8>, other: &[u8]) -> Result<bool, Error>;
}

/// Records on their way to being sorted.
pub(super) struct Sorter<F> {
    arena: Vec<u8>,
    places: Vec<u32>,
    fold: F,
    /// Records wanted of the whole, at most.
    limit: u64,
    bytes_max: usize,
    runs: Vec<Run>,
    longest: usize,
}

/// Sorted records in the scratch.
#[derive(Clone, Copy)]
struct Run {
    start: u64,
    end: u64,
    /// How often its records were merged.
    level: u8,
}

impl<F: Fold> Sorter<F> {
    /// Takes so much memory at most, its runs' readers included.
    pub(super) fn new(bytes_max: usize, fold: F, limit: u64) -> Self {
        Sorter { arena: Vec::new(), places: Vec::new(), fold, limit, bytes_max, runs: Vec::new(), longest: 0 }
    }

    /// What becomes of its records.
    pub(super) fn stage(&self) -> &F {
        &self.fold
    }

    /// From now on it takes so much memory.
    pub(super) fn set_bytes(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Adds a record.
    pub(super) fn push(&mut self, scratch: &mut dyn Scratch, key: &[u8], load: &[u8]) -> Result<(), Error> {
        let bytes = checked(key, load, self.bytes_max)?;
        if self.arena.len() + bytes + PLACE_BYTES * (self.places.len() + 1) > self.arena_bytes() {
            self.make_room(scratch)?;
        }
        let there = self.arena.len() + bytes;
        if there > self.arena.capacity() {
            let wanted = (2 * there).min(self.arena_bytes()).max(there);
            self.arena.reserve_exact(wanted - self.arena.len());
        }
        self.places.push(self.arena.len() as u32);
        put(&mut self.arena, key, load);
        Ok(())
    }

    /// What the arena may have, its places included: while it is folded there are two, and one that grows is there twice.
    fn arena_bytes(&self) -> usize {
        (self.bytes_max / 3).min(u32::MAX as usize / 2)
    }

    fn make_room(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        self.fold_arena()?;
        if self.arena.len() + PLACE_BYTES * self.places.len() > self.arena_bytes() / 2 {
            let start = scratch.append(&self.arena)?;
            self.runs.push(Run { start, end: start + self.arena.len() as u64, level: 0 });
            self.arena.clear();
            self.places.clear();
        }
        Ok(())
    }

    /// Sorts the arena, folds what may be folded, and drops what is past the limit.
    fn fold_arena(&mut self) -> Result<(), Error> {
        let arena = core::mem::take(&mut self.arena);
        let order = |place: &u32| record(&arena[*place as usize..]).map(|(key, load, _)| (key, load));
        self.places.order_by(|one, next| order(one).cmp(&order(next)));
        let mut output = Output::new(&self.fold, self.limit, self.bytes_max, Vec::with_capacity(arena.len()));
        for place in core::mem::take(&mut self.places) {
            let (key, load, _) = record(&arena[place as usize..]).ok_or_else(wrong)?;
            if !output.add(key, load)? {
                break;
            }
        }
        (self.arena, self.longest) = output.finish(self.longest)?;
        let mut place = 0;
        while place < self.arena.len() {
            self.places.push(place as u32);
            place += record(&self.arena[place..]).ok_or_else(wrong)?.2;
        }
        Ok(())
    }

    /// Whether the places of its runs take more memory than should be, and some can be merged for good.
    pub(super) fn is_crowded(&self) -> bool {
        self.runs.len() * size_of::<Run>() > self.bytes_max / 16 && self.full_level().is_some()
    }

    /// The least level with as many runs as are merged at a time.
    fn full_level(&self) -> Option<u8> {
        let full = inputs_max(self.bytes_max, self.longest);
        let highest = self.runs.iter().map(|run| run.level).max()?;
        (0..=highest).find(|level| self.runs.iter().filter(|run| run.level == *level).count() >= full)
    }

    /// Takes the runs that are merged next: of a level that is full, or else the shortest.
    fn take_runs(&mut self) -> Vec<Run> {
        let count = inputs_max(self.bytes_max, self.longest).min(self.runs.len());
        let full = self.full_level();
        let rank = |run: &Run| (full.is_some_and(|level| level != run.level), run.end - run.start);
        self.runs.order_stably_by(|one, next| rank(one).cmp(&rank(next)));
        self.runs.drain(..count).collect()
    }

    /// Whether runs are to be merged before they can be read in so much memory.
    pub(super) fn is_to_be_merged(&self, bytes_max: usize) -> bool {
        let bytes_max = bytes_max.max(self.longest.saturating_mul(RECORD_SHARE)).min(self.bytes_max);
        // What is in memory still becomes one more.
        self.runs.len() + 1 > inputs_max(bytes_max, self.longest)
    }

    /// All records in order, to be read one by one.
    pub(super) fn finish(self, scratch: &mut dyn Scratch) -> Result<Sorted<F>, Error> {
        let bytes_max = self.bytes_max;
        self.finish_in(scratch, bytes_max)
    }

    /// All records in order, to be read one by one in less memory than it took to sort them; more where records are long.
    pub(super) fn finish_in(mut self, scratch: &mut dyn Scratch, bytes_max: usize) -> Result<Sorted<F>, Error> {
        self.fold_arena()?;
        self.places = Vec::new();
        if self.runs.is_empty() && self.arena.len() <= bytes_max {
            self.arena.shrink_to_fit();
            let inputs = Vec::from([Reader::of(self.arena)]);
            return Ok(Sorted { inputs, fold: self.fold, left: self.limit, key: Vec::new(), load: Vec::new() });
        }
        let start = scratch.append(&self.arena)?;
        self.runs.push(Run { start, end: start + self.arena.len() as u64, level: 0 });
        self.arena = Vec::new();
        let bytes_max = bytes_max.max(self.longest.saturating_mul(RECORD_SHARE)).min(self.bytes_max);
        while self.runs.len() > inputs_max(bytes_max, self.longest) {
            self.merge(scratch)?;
        }
        self.bytes_max = bytes_max;
        let inputs = self.readers(scratch, &self.runs)?;
        Ok(Sorted { inputs, fold: self.fold, left: self.limit, key: Vec::new(), load: Vec::new() })
    }

    /// Bytes of a run that are read at a time.
    fn read_bytes(&self) -> usize {
        read_bytes(self.bytes_max, self.longest)
    }

    fn readers(&self, scratch: &mut dyn Scratch, runs: &[Run]) -> Result<Vec<Reader>, Error> {
        runs.iter().map(|run| Reader::new(scratch, *run, self.read_bytes())).collect()
    }

    /// Merges runs while their places are crowded; what else lies aside is still read.
    pub(super) fn keep_few_runs(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        // A device puts nothing aside.
        while !cfg!(feature = "small") && self.is_crowded() {
            self.merge_some(scratch)?;
        }
        Ok(())
    }

    /// Merges as many runs as may be into one. Nothing else that lies aside before them is read any more.
    pub(super) fn merge(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        self.merge_some(scratch)?;
        // What other records lie before them was read to its end.
        if let Some(first) = self.runs.iter().map(|run| run.start).min() {
            scratch.forget_before(first);
        }
        Ok(())
    }

    fn merge_some(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        let some = self.take_runs();
        let level = some.iter().map(|run| run.level).max().unwrap_or(0).saturating_add(1);
        let (mut inputs, read_bytes) = (self.readers(scratch, &some)?, self.read_bytes());
        let mut output = Output::new(&self.fold, self.limit, self.bytes_max, Vec::with_capacity(2 * read_bytes));
        let mut bounds: Option<(u64, u64)> = None;
        while let Some(least) = least(&inputs) {
            let (key, load) = inputs[least].current().ok_or_else(wrong)?;
            if !output.add(key, load)? {
                break;
            }
            inputs[least].advance(scratch)?;
            if output.bytes.len() >= read_bytes {
                write_out(scratch, &mut output.bytes, &mut bounds)?;
            }
        }
        let (mut rest, longest) = output.finish(self.longest)?;
        write_out(scratch, &mut rest, &mut bounds)?;
        self.longest = longest;
        self.runs.extend(bounds.map(|(start, end)| Run { start, end, level }));
        Ok(())
    }
}

/// Bytes of a run that are read at a time: a record at least.
fn read_bytes(bytes_max: usize, longest: usize) -> usize {
    (bytes_max / 32).clamp(READ_BYTES_MIN, READ_BYTES_MAX).max(longest)
}

/// Runs that are merged at a time.
fn inputs_max(bytes_max: usize, longest: usize) -> usize {
    (bytes_max / 2 / read_bytes(bytes_max, longest)).max(2)
}

/// The bytes of a record that leaves room for others.
fn checked(key: &[u8], load: &[u8], bytes_max: usize) -> Result<usize, Error> {
    let bytes = HEAD_BYTES + key.len() + load.len();
    if bytes > bytes_max / RECORD_SHARE {
        return Err(Error::memory(Some(bytes.saturating_mul(RECORD_SHARE))));
    }
    Ok(bytes)
}

fn write_out(scratch: &mut dyn Scratch, bytes: &mut Vec<u8>, bounds: &mut Option<(u64, u64)>) -> Result<(), Error> {
    let start = scratch.append(bytes)?;
    let begin = bounds.map_or(start, |(begin, _)| begin);
    *bounds = Some((begin, start + bytes.len() as u64));
    bytes.clear();
    Ok(())
}

/// The reader whose record comes first.
fn least(inputs: &[Reader]) -> Option<usize> {
    let there = inputs.iter().enumerate().filter_map(|(place, input)| Some((input.current()?, place)));
    there.min().map(|(_, place)| place)
}

/// Records in order, of which the last waits for others to be folded into it.
struct Output<'f, F> {
    fold: &'f F,
    left: u64,
    bytes: Vec<u8>,
    waiting: Option<(Vec<u8>, Vec<u8>)>,
    /// Records that are folded may be longer than those that came.
    longest: usize,
    bytes_max: usize,
}

impl<'f, F: Fold> Output<'f, F> {
    fn new(fold: &'f F, limit: u64, bytes_max: usize, bytes: Vec<u8>) -> Self {
        Output { fold, left: limit, bytes, waiting: None, longest: 0, bytes_max }
    }

    /// Adds a record; false if neither it nor any after it is wanted.
    fn add(&mut self, key: &[u8], load: &[u8]) -> Result<bool, Error> {
        if let Some((last, into)) = &mut self.waiting {
            if last.as_slice() == key && self.fold.fold(into, load)? {
                return Ok(true);
            }
            self.longest = self.longest.max(checked(last, into, self.bytes_max)?);
            put(&mut self.bytes, last, into);
            self.left -= 1;
        }
        let (mut last, mut into) = self.waiting.take().unwrap_or_default();
        if self.left == 0 {
            return Ok(false);
        }
        last.clear();
        last.extend_from_slice(key);
        into.clear();
        into.extend_from_slice(load);
        self.waiting = Some((last, into));
        Ok(true)
    }

    /// What is left of its bytes, and how long the longest record was, or one known before.
    fn finish(mut self, before: usize) -> Result<(Vec<u8>, usize), Error> {
        if let Some((key, load)) = &self.waiting {
            self.longest = self.longest.max(checked(key, load, self.bytes_max)?);
            put(&mut self.bytes, key, load);
        }
        Ok((self.bytes, self.longest.max(before)))
    }
}

/// Sorted records, read one by one.
pub(super) struct Sorted<F> {
    inputs: Vec<Reader>,
    fold: F,
    left: u64,
    key: Vec<u8>,
    load: Vec<u8>,
}

impl<F: Fold> Sorted<F> {
    /// About the memory that it takes until its end.
    pub(super) fn bytes(&self) -> usize {
        self.inputs.iter().map(|input| input.buffer.capacity()).sum::<usize>()
            + self.key.capacity()
            + self.load.capacity()
    }

    /// The load of the next record, and what became of it.
    pub(super) fn next(&mut self, scratch: &mut dyn Scratch) -> Result<Option<(&F, &[u8])>, Error> {
        let Some(first) = least(&self.inputs).filter(|_| self.left > 0) else { return Ok(None) };
        self.left -= 1;
        let (key, load) = self.inputs[first].current().ok_or_else(wrong)?;
        self.key.clear();
        self.key.extend_from_slice(key);
        self.load.clear();
        self.load.extend_from_slice(load);
        self.inputs[first].advance(scratch)?;
        while let Some(next) = least(&self.inputs) {
            let (key, load) = self.inputs[next].current().ok_or_else(wrong)?;
            if key != self.key.as_slice() || !self.fold.fold(&mut self.load, load)? {
                break;
            }
            self.inputs[next].advance(scratch)?;
        }
        Ok(Some((&self.fold, &self.load)))
    }
}

/// Reads a run.
struct Reader {
    /// What of it is not in the buffer yet.
    from: u64,
    end: u64,
    buffer: Vec<u8>,
    /// Where in the buffer the current record begins.
    at: usize,
    read_bytes: usize,
}

impl Reader {
    /// Of records in memory.
    fn of(buffer: Vec<u8>) -> Self {
        Reader { from: 0, end: 0, buffer, at: 0, read_bytes: 0 }
    }

    /// `read_bytes`: at least as many as the longest record has.
    fn new(scratch: &mut dyn Scratch, run: Run, read_bytes: usize) -> Result<Self, Error> {
        let Run { start: from, end, .. } = run;
        let mut reader = Reader { from, end, buffer: Vec::with_capacity(read_bytes), at: 0, read_bytes };
        reader.fill(scratch)?;
        Ok(reader)
    }

    fn current(&self) -> Option<(&[u8], &[u8])> {
        record(&self.buffer[self.at..]).map(|(key, load, _)| (key, load))
    }

    fn advance(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        self.at += record(&self.buffer[self.at..]).map_or(0, |(_, _, bytes)| bytes);
        if record(&self.buffer[self.at..]).is_some() {
            return Ok(());
        }
        self.fill(scratch)
    }

    /// Reads on behind what is left of the buffer.
    fn fill(&mut self, scratch: &mut dyn Scratch) -> Result<(), Error> {
        self.buffer.drain(..self.at);
        self.at = 0;
        let kept = self.buffer.len();
        let more = (self.end - self.from).min(self.read_bytes.saturating_sub(kept) as u64);
        if more > 0 {
            self.buffer.resize(kept + more as usize, 0);
            scratch.read(self.from, &mut self.buffer[kept..])?;
            self.from += more;
        }
        if !self.buffer.is_empty() && self.current().is_none() {
            return Err(wrong());
        }
        Ok(())
    }
}

fn put(bytes: &mut Vec<u8>, key: &[u8], load: &[u8]) {
    bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&(load.len() as u32).to_le_bytes());
    bytes.extend_from_slice(key);
    bytes.extend_from_slice(load);
}

/// The first record of some bytes, and how many of them it has.
fn record(bytes: &[u8]) -> Option<(&[u8], &[u8], usize)> {
    let (key, rest) = bytes.split_first_chunk()?;
    let (load, rest) = rest.split_first_chunk()?;
    let (key, load) = (u32::from_le_bytes(*key) as usize, u32::from_le_bytes(*load) as usize);
    let end = key.checked_add(load)?;
    let both = rest.get(..end)?;
    Some((&both[..key], &both[key..], HEAD_BYTES + end))
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec;

    use super::super::scratch::InMemory;
    use super::*;

    /// All bytes of records with one key, in order: they become longer and longer.
    struct Together;

    impl Fold for Together {
        fn fold(&self, into: &mut Vec<u8>, other: &[u8]) -> Result<bool, Error> {
            into.extend_from_slice(other);
            into.sort_unstable();
            Ok(true)
        }
    }

    fn sorted(count: u32, bytes_max: usize, limit: u64) -> Result<[Vec<Vec<u8>>; 2], Error> {
        let mut aside = InMemory(Vec::new());
        let mut sorter = Sorter::new(bytes_max, Together, limit);
        let mut expected: BTreeMap<[u8; 2], Vec<u8>> = BTreeMap::new();
        for number in 0..count {
            let key = ((number.wrapping_mul(2_654_435_761) >> 16) as u16 % 300).to_be_bytes();
            let load = vec![number as u8; 3 + number as usize % 5];
            sorter.push(&mut aside, &key, &load)?;
            let all = expected.entry(key).or_default();
            all.extend_from_slice(&load);
            all.sort_unstable();
        }
        let mut sorted = sorter.finish(&mut aside)?;
        let mut got = Vec::new();
        while let Some((_, load)) = sorted.next(&mut aside)? {
            got.push(load.to_vec());
        }
        Ok([got, expected.into_values().take(limit as usize).collect()])
    }

    #[test]
    fn records_that_grow_when_they_are_folded_come_back_whole() {
        for (count, bytes_max, limit) in [
            (0, 4096, 9),
            (1, 4096, 9),
            (100, 4096, 1000),
            (9000, 16 << 10, 1000),
            (9000, 16 << 10, 7),
            // Longer than what is read of a run at a time where no record is.
            (55_000, 8 << 10, 1000),
            (9000, 1 << 20, 0),
        ] {
            let [got, expected] = sorted(count, bytes_max, limit).unwrap();
            assert!(got == expected, "{count} records in {bytes_max} bytes, {limit} of them");
        }
    }

    #[test]
    fn a_record_that_has_grown_too_long_says_so() {
        let error = sorted(60_000, 4096, 1000).unwrap_err();
        assert!(error.memory_needed().is_some_and(|needed| needed > 4096));
    }
}
