//! The sealed part of a data page.
//!
//! ```text
//! 0 flags u16 (1 = commit page) | 2 entries u16 | 4 zero u32
//! 8 first u64: sequence of the first page of this commit | 16 previous u64: version of the commit before
//! 24 directory: entries x { id u32, length u16 (0xFFFF = deallocated) }
//!    root, in a commit page (see root.rs)
//!    ... zeros ...
//!    records, the first one at the very end, each next one before it
//! ```
//! 1. Directory, root and records do not overlap.
//! 2. A page holds at most one record of an id; entries whose id is `0xFFFF_FFFF` are void.
//! 3. Every page of a commit names the same `first`; only the last one is a commit page.

use crate::bytes::{put, u16_at, u32_at, u64_at};
use crate::root::Root;

pub(crate) const BODY_HEAD_BYTES: usize = 24;
pub(crate) const ENTRY_BYTES: usize = 6;
const COMMIT: u16 = 1;
const DEALLOCATED: u16 = 0xFFFF;
const VOID: u32 = u32::MAX;

/// How far a page in the making is filled. Holds no bytes, so that it also serves to plan.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draft {
    entries: usize,
    /// Where the lowest record begins.
    records: usize,
}

impl Draft {
    pub(crate) fn new(body_bytes: usize) -> Draft {
        Draft { entries: 0, records: body_bytes }
    }

    fn directory_end(&self) -> usize {
        BODY_HEAD_BYTES + self.entries * ENTRY_BYTES
    }

    /// Whether an entry with a record of `bytes` bytes still fits.
    pub(crate) fn fits(&self, bytes: usize) -> bool {
        self.entries < usize::from(u16::MAX) && self.directory_end() + ENTRY_BYTES + bytes <= self.records
    }

    /// Whether a root of `bytes` bytes still fits.
    pub(crate) fn fits_root(&self, bytes: usize) -> bool {
        self.directory_end() + bytes <= self.records
    }

    /// Takes the room of an entry that fits.
    pub(crate) fn take(&mut self, bytes: usize) {
        assert!(self.fits(bytes), "the caller asked whether it fits");
        self.entries += 1;
        self.records -= bytes;
    }

    /// Adds a record that fits, or the news that `id` has none.
    pub(crate) fn push(&mut self, body: &mut [u8], id: u32, record: Option<&[u8]>) {
        let entry = self.directory_end();
        let bytes = record.unwrap_or_default();
        self.take(bytes.len());
        let length = if record.is_some() { bytes.len() as u16 } else { DEALLOCATED };
        put(body, entry, &id.to_le_bytes());
        put(body, entry + 4, &length.to_le_bytes());
        put(body, self.records, bytes);
    }

    /// Makes the entries of `id` void: a later one in the same commit replaces them.
    pub(crate) fn void(&self, body: &mut [u8], id: u32) {
        for entry in 0..self.entries {
            let offset = BODY_HEAD_BYTES + entry * ENTRY_BYTES;
            if u32_at(body, offset) == id {
                put(body, offset, &VOID.to_le_bytes());
            }
        }
    }

    /// Writes the head and, for a commit page, the root, which must fit.
    pub(crate) fn finish(&self, body: &mut [u8], first: u64, previous: u64, root: Option<&Root>) {
        let flags = if root.is_some() { COMMIT } else { 0 };
        put(body, 0, &flags.to_le_bytes());
        put(body, 2, &(self.entries as u16).to_le_bytes());
        put(body, 8, &first.to_le_bytes());
        put(body, 16, &previous.to_le_bytes());
        if let Some(root) = root {
            assert!(self.fits_root(root.encoded_bytes()), "the caller asked whether the root fits");
            root.encode(body, self.directory_end());
        }
    }
}

/// A data page that authenticated and makes sense.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataPage<'a> {
    body: &'a [u8],
    entries: usize,
    pub(crate) commit: bool,
    pub(crate) first: u64,
    pub(crate) previous: u64,
}

/// An entry of the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    pub(crate) id: u32,
    /// The record, or none where it was deallocated.
    pub(crate) record: Option<&'a [u8]>,
}

impl<'a> DataPage<'a> {
    /// Takes the sealed part of a page apart.
    pub(crate) fn parse(body: &'a [u8]) -> Result<DataPage<'a>, &'static str> {
        if body.len() < BODY_HEAD_BYTES {
            return Err("page length");
        }
        let (flags, entries) = (u16_at(body, 0), usize::from(u16_at(body, 2)));
        if flags & !COMMIT != 0 || u32_at(body, 4) != 0 {
            return Err("flags of a data page");
        }
        let directory_end = BODY_HEAD_BYTES + entries * ENTRY_BYTES;
        let directory = body.get(BODY_HEAD_BYTES..directory_end).ok_or("directory length")?;
        let lengths = directory.chunks_exact(ENTRY_BYTES).map(|entry| u16_at(entry, 4));
        let bytes: usize = lengths.filter(|length| *length != DEALLOCATED).map(usize::from).sum();
        if directory_end + bytes > body.len() {
            return Err("lengths of records");
        }
        let page =
            DataPage { body, entries, commit: flags & COMMIT != 0, first: u64_at(body, 8), previous: u64_at(body, 16) };
        Ok(page)
    }

    /// The entries in the order they were added, without void ones.
    pub(crate) fn entries(&self) -> impl Iterator<Item = Entry<'a>> + use<'a> {
        let body = self.body;
        let directory = body.get(BODY_HEAD_BYTES..BODY_HEAD_BYTES + self.entries * ENTRY_BYTES).unwrap_or_default();
        let mut end = body.len();
        directory.chunks_exact(ENTRY_BYTES).filter_map(move |entry| {
            let (id, length) = (u32_at(entry, 0), u16_at(entry, 4));
            let record = if length == DEALLOCATED {
                None
            } else {
                let start = end.checked_sub(usize::from(length))?;
                let record = body.get(start..end)?;
                end = start;
                Some(record)
            };
            (id != VOID).then_some(Entry { id, record })
        })
    }

    /// The record of `id` in this page.
    pub(crate) fn record(&self, id: u32) -> Option<&'a [u8]> {
        self.entries().find(|entry| entry.id == id && entry.record.is_some()).and_then(|entry| entry.record)
    }

    /// The bytes that the root of a commit page begins with.
    pub(crate) fn root_bytes(&self) -> &'a [u8] {
        self.body.get(BODY_HEAD_BYTES + self.entries * ENTRY_BYTES..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    fn page(records: &[(u32, Option<&[u8]>)]) -> Vec<u8> {
        let mut body = vec![0; 256];
        let mut draft = Draft::new(body.len());
        for (id, record) in records {
            draft.push(&mut body, *id, *record);
        }
        draft.finish(&mut body, 77, 70, None);
        body
    }

    #[test]
    fn records_come_back_and_void_entries_do_not() {
        let mut body = page(&[(3, Some(b"three")), (4, None), (5, Some(b"")), (3, None)]);
        let parsed = DataPage::parse(&body).unwrap();
        assert_eq!((parsed.commit, parsed.first, parsed.previous), (false, 77, 70));
        let entries: Vec<_> = parsed.entries().map(|entry| (entry.id, entry.record)).collect();
        assert_eq!(entries, [(3, Some(&b"three"[..])), (4, None), (5, Some(&b""[..])), (3, None)]);
        assert_eq!(parsed.record(5), Some(&b""[..]));
        assert_eq!(parsed.record(4), None);
        let mut draft = Draft::new(256);
        draft.entries = 4;
        draft.void(&mut body, 3);
        assert_eq!(DataPage::parse(&body).unwrap().entries().count(), 2);
        assert_eq!(DataPage::parse(&body).unwrap().record(5), Some(&b""[..]));
    }

    #[test]
    fn a_directory_that_cannot_be_true_is_refused() {
        let good = page(&[(3, Some(b"three"))]);
        let refuse = |offset: usize, bytes: &[u8]| {
            let mut body = good.clone();
            put(&mut body, offset, bytes);
            DataPage::parse(&body).unwrap_err()
        };
        assert_eq!(refuse(0, &[2, 0]), "flags of a data page");
        assert_eq!(refuse(4, &[1]), "flags of a data page");
        assert_eq!(refuse(2, &[0xFF, 0xFF]), "directory length");
        assert_eq!(refuse(2, &[40, 0]), "directory length");
        assert_eq!(refuse(28, &[0xFE, 0xFF]), "lengths of records");
        assert_eq!(DataPage::parse(&good[..10]).unwrap_err(), "page length");
    }

    #[test]
    fn a_full_page_is_full_to_the_byte() {
        let mut draft = Draft::new(256);
        assert!(draft.fits(256 - 30) && !draft.fits(256 - 29));
        draft.take(256 - 30);
        assert!(!draft.fits(0) && draft.fits_root(0) && !draft.fits_root(1));
    }
}
