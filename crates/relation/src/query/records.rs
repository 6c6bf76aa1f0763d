//! Records in the order of their keys, sorted in little memory, for whoever has other records than rows of a question.

use alloc::vec::Vec;

use super::scratch::Scratch;
use super::sorter::{Fold, Sorted, Sorter};
use crate::Error;

/// All records stay, each by itself.
struct Each;

impl Fold for Each {
    fn fold(&self, _into: &mut Vec<u8>, _other: &[u8]) -> Result<bool, Error> {
        Ok(false)
    }
}

/// Records on their way to being sorted.
pub struct RecordSorter(Sorter<Each>);

impl RecordSorter {
    /// Takes about so many bytes of memory at most; of the records in order the first `limit` are wanted.
    #[must_use]
    pub fn new(bytes_max: usize, limit: u64) -> Self {
        RecordSorter(Sorter::new(bytes_max, Each, limit))
    }

    /// From now on it may take so many.
    pub fn set_bytes(&mut self, bytes_max: usize) {
        self.0.set_bytes(bytes_max);
    }

    /// Adds a record. Those with equal keys come in the order of their loads.
    ///
    /// # Errors
    /// [`Error::memory`] for a record that needs more than it may take: then nothing was added, and [`RecordSorter::set_bytes`]
    /// helps. Those of the scratch.
    pub fn push(&mut self, scratch: &mut dyn Scratch, key: &[u8], load: &[u8]) -> Result<(), Error> {
        self.0.push(scratch, key, load)?;
        if self.0.is_crowded() { self.0.merge(scratch) } else { Ok(()) }
    }

    /// Takes a step of [`RecordSorter::finish`], of those that take long: false if none is left.
    ///
    /// # Errors
    /// Those of the scratch.
    pub fn step(&mut self, scratch: &mut dyn Scratch, bytes_max: usize) -> Result<bool, Error> {
        let is_due = self.0.is_to_be_merged(bytes_max);
        if is_due {
            self.0.merge(scratch)?;
        }
        Ok(is_due)
    }

    /// All records in order, which are read in so many bytes of memory, or more where records are long.
    ///
    /// # Errors
    /// Those of the scratch.
    pub fn finish(self, scratch: &mut dyn Scratch, bytes_max: usize) -> Result<SortedRecords, Error> {
        Ok(SortedRecords(self.0.finish_in(scratch, bytes_max)?))
    }
}

/// Sorted records.
pub struct SortedRecords(Sorted<Each>);

impl SortedRecords {
    /// The load of the next record.
    ///
    /// # Errors
    /// Those of the scratch.
    pub fn next(&mut self, scratch: &mut dyn Scratch) -> Result<Option<&[u8]>, Error> {
        Ok(self.0.next(scratch)?.map(|(_, load)| load))
    }

    /// About the bytes of memory that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes()
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;

    use super::super::scratch::InMemory;
    use super::*;

    #[test]
    fn they_are_read_in_less_memory_than_they_were_sorted_in() {
        for (count, sorted_in, read_in) in [(0, 4096, 256), (50, 4096, 256), (9000, 24 << 10, 4096), (9000, 4096, 512)]
        {
            let (mut aside, mut expected) = (InMemory(Vec::new()), BTreeMap::new());
            let mut sorter = RecordSorter::new(sorted_in, u64::MAX);
            for number in 0..count {
                let key = (number as u32).wrapping_mul(2_654_435_761).to_be_bytes();
                let load = alloc::vec![number as u8; number % 40];
                sorter.push(&mut aside, &key, &load).unwrap();
                expected.insert(key, load);
            }
            while sorter.step(&mut aside, read_in).unwrap() {}
            let mut records = sorter.finish(&mut aside, read_in).unwrap();
            for load in expected.into_values() {
                assert_eq!(records.next(&mut aside).unwrap(), Some(&load[..]));
                assert!(records.bytes() <= read_in.max(2 * 256) + 128, "{} of {read_in}", records.bytes());
            }
            assert_eq!(records.next(&mut aside).unwrap(), None);
        }
    }

    #[test]
    fn however_many_there_are_each_is_written_a_few_times() {
        let (mut aside, mut sorter, mut bytes) = (InMemory(Vec::new()), RecordSorter::new(4096, u64::MAX), 0);
        for number in 0..60_000_u32 {
            let key = number.wrapping_mul(2_654_435_761).to_be_bytes();
            sorter.push(&mut aside, &key, &[7; 20]).unwrap();
            bytes += 8 + key.len() + 20;
        }
        let mut records = sorter.finish(&mut aside, 4096).unwrap();
        let mut count = 0;
        while records.next(&mut aside).unwrap().is_some() {
            count += 1;
        }
        // Some 1,500 runs of which eight are merged at a time: four levels, and what is merged in the end.
        assert!(count == 60_000 && aside.0.len() < 6 * bytes, "{} bytes for {bytes}", aside.0.len());
    }

    #[test]
    fn a_record_that_is_too_long_is_told_and_comes_after_all_with_more_memory() {
        let (mut aside, mut sorter) = (InMemory(Vec::new()), RecordSorter::new(4096, 1));
        sorter.push(&mut aside, b"b", b"short").unwrap();
        let error = sorter.push(&mut aside, b"a", &[7; 1000]).unwrap_err();
        let needed = error.memory_needed().expect("it was not told");
        sorter.set_bytes(needed);
        sorter.push(&mut aside, b"a", &[7; 1000]).unwrap();
        let mut records = sorter.finish(&mut aside, 512).unwrap();
        assert_eq!(records.next(&mut aside).unwrap(), Some(&[7; 1000][..]));
        assert_eq!(records.next(&mut aside).unwrap(), None);
    }
}
