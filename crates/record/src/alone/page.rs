//! The sealed part of a data page of a store that stands alone.
//!
//! ```text
//! 0 flags u8 (1 = commit page, 2 = its root tells of its opening) | 1 entries u8
//! 2 directory: entries x { id word, length u8, u16 more if that is 0xFD }
//!      length 0xFF: the record is deallocated; 0xFE: the leaf of this number was written to the index ring, and its
//!      record is the slot of that page, one word; 0xFD: the length follows
//!   root, in a commit page (root.rs)
//!   ... zeros ...
//!   records, the first one at the very end, each next one before it
//! ```
//! 1. Directory, root and records do not overlap.
//! 2. An id may stand in a page more than once; the last entry counts. Slots count the entries that have records of ids.

use crate::bytes::put;

use super::error::Error;
use super::word::Word;

pub(crate) const HEAD_BYTES: usize = 2;
const COMMIT: u8 = 1;
const OPENING: u8 = 2;
const DEALLOCATED: u8 = 0xFF;
const LEAF: u8 = 0xFE;
const LONG: u8 = 0xFD;
/// Records are shorter than that, whatever the page.
pub(crate) const RECORD_BYTES_MAX: usize = 0xFFF0;

/// What an entry of the directory tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry<'a> {
    /// The id has this record.
    Record(u32, &'a [u8]),
    /// The id has no record any more.
    Deallocated(u32),
    /// The leaf stands at this slot of the index ring.
    Leaf(u32, u32),
}

/// Bytes of the directory that an entry with a record of so many bytes takes.
pub(crate) fn entry_bytes<W: Word>(record_bytes: usize) -> usize {
    W::BYTES + if record_bytes < usize::from(LONG) { 1 } else { 3 }
}

/// How far a page in the making is filled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    entries: u8,
    /// How many of the entries have records of ids.
    pub(crate) numbered: u32,
    directory_end: usize,
    /// Where the lowest record begins.
    records: usize,
    /// Bytes that records of ids may still take, with their entries.
    pub(crate) records_left: usize,
}

impl Draft {
    /// An empty page; so many bytes of it are not for records of ids.
    pub(crate) fn new(body_bytes: usize, bytes_left: usize) -> Draft {
        let records_left = body_bytes.saturating_sub(HEAD_BYTES + bytes_left);
        Draft { entries: 0, numbered: 0, directory_end: HEAD_BYTES, records: body_bytes, records_left }
    }

    /// Whether the record of an id fits, with so many bytes left besides.
    pub(crate) fn fits<W: Word>(&self, record_bytes: usize, besides: usize) -> bool {
        let bytes = entry_bytes::<W>(record_bytes) + record_bytes;
        bytes <= self.records_left && bytes + besides <= self.room()
    }

    /// Takes the room of the record of an id.
    ///
    /// # Errors
    /// [`Error::Bug`] if it does not fit: the caller asks before.
    pub(crate) fn take_record<W: Word>(&mut self, record_bytes: usize) -> Result<(), Error> {
        let bytes = entry_bytes::<W>(record_bytes) + record_bytes;
        self.records_left = self.records_left.checked_sub(bytes).ok_or(Error::Bug)?;
        self.numbered += 1;
        self.take::<W>(record_bytes)
    }

    /// Bytes between directory and records.
    pub(crate) fn room(&self) -> usize {
        if self.entries == u8::MAX {
            return 0;
        }
        self.records.saturating_sub(self.directory_end)
    }

    /// Takes the room of an entry with a record of so many bytes.
    ///
    /// # Errors
    /// [`Error::Bug`] if it does not fit: the caller asks before.
    pub(crate) fn take<W: Word>(&mut self, record_bytes: usize) -> Result<(), Error> {
        if entry_bytes::<W>(record_bytes) + record_bytes > self.room() {
            return Err(Error::Bug);
        }
        self.records -= record_bytes;
        self.directory_end += entry_bytes::<W>(record_bytes);
        self.entries += 1;
        Ok(())
    }

    /// Adds an entry, which must fit.
    pub(crate) fn push<W: Word>(&mut self, body: &mut [u8], entry: Entry<'_>) -> Result<(), Error> {
        let mut slot_bytes = [0; 4];
        let (number, mark, record) = match entry {
            Entry::Record(id, record) => (id, None, record),
            Entry::Deallocated(id) => (id, Some(DEALLOCATED), &[][..]),
            Entry::Leaf(leaf, slot) => {
                W::of(slot).encode(&mut slot_bytes);
                (leaf, Some(LEAF), slot_bytes.get(..W::BYTES).unwrap_or_default())
            }
        };
        let at = self.directory_end;
        match entry {
            Entry::Record(..) => self.take_record::<W>(record.len())?,
            _ => self.take::<W>(record.len())?,
        }
        W::of(number).encode(body.get_mut(at..).unwrap_or_default());
        let length = (record.len() as u16).to_le_bytes();
        match mark {
            Some(mark) => put(body, at + W::BYTES, &[mark]),
            None if record.len() < usize::from(LONG) => put(body, at + W::BYTES, &length[..1]),
            None => put(body, at + W::BYTES, &[LONG, length[0], length[1]]),
        }
        put(body, self.records, record);
        Ok(())
    }

    /// Writes the head of an inner page.
    pub(crate) fn finish(&self, body: &mut [u8]) {
        put(body, 0, &[0, self.entries]);
    }

    /// Writes the head of a commit page; where its root goes.
    pub(crate) fn finish_commit(&self, body: &mut [u8], tells_opening: bool) -> usize {
        put(body, 0, &[COMMIT | if tells_opening { OPENING } else { 0 }, self.entries]);
        self.directory_end
    }
}

/// A data page that authenticated and makes sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPage<'a> {
    body: &'a [u8],
    entries: u8,
    directory_end: usize,
    pub(crate) is_commit: bool,
    pub(crate) tells_opening: bool,
}

impl<'a> DataPage<'a> {
    /// Takes the sealed part of a page apart.
    pub(crate) fn parse<W: Word>(body: &'a [u8]) -> Result<DataPage<'a>, Error> {
        let [flags, entries, ..] = *body else { return Err(Error::Corrupt) };
        let (is_commit, tells_opening) = (flags & COMMIT != 0, flags & OPENING != 0);
        if flags & !(COMMIT | OPENING) != 0 || (tells_opening && !is_commit) {
            return Err(Error::Corrupt);
        }
        let mut page = DataPage { body, entries, directory_end: HEAD_BYTES, is_commit, tells_opening };
        let mut records = 0;
        for (entry, record) in page.walk::<W>() {
            page.directory_end += entry;
            records += record;
        }
        if page.directory_end + records > body.len() { Err(Error::Corrupt) } else { Ok(page) }
    }

    /// Bytes of each entry in the directory, and of its record.
    fn walk<W: Word>(&self) -> impl Iterator<Item = (usize, usize)> + use<'a, W> {
        let (body, mut at) = (self.body, HEAD_BYTES);
        (0..self.entries).map(move |_| {
            let bytes = body.get(at + W::BYTES..).unwrap_or_default();
            let found = match *bytes {
                [DEALLOCATED, ..] => (W::BYTES + 1, 0),
                [LEAF, ..] => (W::BYTES + 1, W::BYTES),
                [LONG, low, high, ..] => (W::BYTES + 3, usize::from(u16::from_le_bytes([low, high]))),
                [LONG, ..] | [] => (W::BYTES + 3, body.len()),
                [length, ..] => (W::BYTES + 1, usize::from(length)),
            };
            at = at.saturating_add(found.0);
            found
        })
    }

    /// The root and what follows it.
    pub(crate) fn root_bytes(&self) -> &'a [u8] {
        self.body.get(self.directory_end..).unwrap_or_default()
    }

    /// The records of ids in the order of the directory: a slot counts them.
    pub(crate) fn records<W: Word>(&self) -> impl Iterator<Item = (u32, &'a [u8])> + use<'a, W> {
        self.entries::<W>().filter_map(|entry| match entry {
            Entry::Record(id, record) => Some((id, record)),
            _ => None,
        })
    }

    /// What the directory tells, in its order.
    pub(crate) fn entries<W: Word>(&self) -> impl Iterator<Item = Entry<'a>> + use<'a, W> {
        let (body, mut at, mut end) = (self.body, HEAD_BYTES, self.body.len());
        self.walk::<W>().map(move |(entry_bytes, record_bytes)| {
            let entry = body.get(at..).unwrap_or_default();
            let number = W::decode(entry).number();
            end = end.saturating_sub(record_bytes);
            at += entry_bytes;
            let record = body.get(end..end + record_bytes).unwrap_or_default();
            match entry.get(W::BYTES) {
                Some(&DEALLOCATED) => Entry::Deallocated(number),
                Some(&LEAF) => Entry::Leaf(number, W::decode(record).number()),
                _ => Entry::Record(number, record),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_pushed_is_read_back() {
        let long = [5; 253];
        let entries = [
            Entry::Record(7, b"seven"),
            Entry::Deallocated(300),
            Entry::Leaf(2, 41),
            Entry::Record(8, &long),
            Entry::Record(9, &long[..252]),
            Entry::Record(7, b""),
        ];
        let mut body = [0; 600];
        let mut draft = Draft::new(body.len(), 0);
        for entry in entries {
            draft.push::<u16>(&mut body, entry).expect("fits");
        }
        assert_eq!(draft.room(), 600 - 2 - 6 * 3 - 2 - 5 - 2 - 253 - 252);
        let root = draft.finish_commit(&mut body, false);
        body[root] = 9;
        let page = DataPage::parse::<u16>(&body).expect("makes sense");
        assert!(page.entries::<u16>().eq(entries));
        assert_eq!((page.is_commit, page.tells_opening), (true, false));
        assert_eq!(page.root_bytes()[0], 9);
    }

    #[test]
    fn what_does_not_fit_makes_no_sense() {
        let mut body = [0; 32];
        (body[1], body[4]) = (5, 31);
        assert_eq!(DataPage::parse::<u16>(&body).err(), Some(Error::Corrupt));
        body[4] = LONG;
        body[6] = 1;
        assert_eq!(DataPage::parse::<u16>(&body).err(), Some(Error::Corrupt));
        (body[1], body[4]) = (255, 0);
        assert_eq!(DataPage::parse::<u16>(&body).err(), Some(Error::Corrupt));
        for flags in [2, 4] {
            body[0] = flags;
            assert_eq!(DataPage::parse::<u16>(&body).err(), Some(Error::Corrupt));
        }
        assert_eq!(DataPage::parse::<u16>(&[0]).err(), Some(Error::Corrupt));
    }
}
