//! Where a table's bytes lie, and what its columns hold: one record of the catalog.

use alloc::vec::Vec;

use counterfoil_log::{ContainerId, GroupId, View, record_space};
use serde::{Deserialize, Serialize};

use crate::column::Kind;
use crate::pages::Pages;
use crate::tables::TableNumber;
use crate::{Error, Storage};

const FORMAT: u8 = 2;
/// Without the bytes of the journal when it was begun.
const FORMAT_BEFORE: u8 = 1;
const PREFIX: u8 = b's';

/// How a table is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Points newer than the newest of their series less this, in the unit of time, wait for others that come between them before
    /// they are packed into a leaf. They are durable all the same.
    pub reorder: i64,
}

/// Where the bytes of a table lie.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Files {
    /// What the columns hold, in the order in which they were added.
    pub(crate) kinds: Vec<Kind>,
    pub(crate) options: Options,
    names: (u64, u64),
    journal: (u64, u64),
    pub(crate) pages: Pages,
    /// Bytes that the journal had when it was begun: it is begun anew when it has grown far beyond.
    pub(crate) journal_begun: u64,
}

/// The same as it was kept before.
#[derive(Deserialize)]
struct FilesBefore {
    kinds: Vec<Kind>,
    options: Options,
    names: (u64, u64),
    journal: (u64, u64),
    pages: Pages,
}

impl From<FilesBefore> for Files {
    fn from(before: FilesBefore) -> Files {
        let FilesBefore { kinds, options, names, journal, pages } = before;
        Files { kinds, options, names, journal, pages, journal_begun: 0 }
    }
}

fn name(table: TableNumber) -> [u8; 9] {
    let mut name = [PREFIX; 9];
    name[1..].copy_from_slice(&table.0.to_be_bytes());
    name
}

fn plain<'a, T: Deserialize<'a>>(body: &'a [u8]) -> Result<T, Error> {
    match postcard::take_from_bytes(body) {
        Ok((value, [])) => Ok(value),
        _ => Err(Error::Corrupt { what: "catalog entry" }),
    }
}

/// A group with one container.
fn container(storage: &mut dyn Storage) -> Result<(u64, u64), Error> {
    let group = storage.create_group()?;
    Ok((group.0, storage.create_container(group)?.0))
}

impl Files {
    /// Makes room for a table.
    pub(crate) fn create(storage: &mut dyn Storage, kinds: &[Kind], options: Options) -> Result<Files, Error> {
        let (names, journal) = (container(storage)?, container(storage)?);
        Ok(Files { kinds: kinds.to_vec(), options, names, journal, pages: Pages::create(storage)?, journal_begun: 0 })
    }

    /// Those of a table; none if it is not there.
    pub(crate) fn of(view: &dyn View, table: TableNumber) -> Result<Option<Files>, Error> {
        let Some(bytes) = view.record(record_space::CATALOG, &name(table)) else { return Ok(None) };
        let wrong = Error::Corrupt { what: "catalog entry" };
        match bytes.split_first() {
            Some((&FORMAT, body)) => plain(body).map(Some),
            Some((&FORMAT_BEFORE, body)) => Ok(Some(plain::<FilesBefore>(body)?.into())),
            _ => Err(wrong),
        }
    }

    /// The tables there are.
    pub(crate) fn tables(view: &dyn View) -> Vec<TableNumber> {
        let records = view.records(record_space::CATALOG, &[PREFIX]);
        let number = |name: &[u8]| name.get(1..)?.try_into().ok().map(|bytes| TableNumber(u64::from_be_bytes(bytes)));
        records.iter().filter_map(|(name, _)| number(name)).collect()
    }

    /// Notes them.
    pub(crate) fn put(&self, storage: &mut dyn Storage, table: TableNumber) -> Result<(), Error> {
        let bytes = postcard::to_extend(self, Vec::from([FORMAT])).map_err(|_| Error::Misuse("a catalog entry"))?;
        Ok(storage.put_record(record_space::CATALOG, &name(table), &bytes)?)
    }

    /// Gives everything back.
    pub(crate) fn drop(self, storage: &mut dyn Storage, table: TableNumber) -> Result<(), Error> {
        storage.delete_record(record_space::CATALOG, &name(table))?;
        storage.drop_group(GroupId(self.names.0))?;
        storage.drop_group(GroupId(self.journal.0))?;
        self.pages.drop(storage)
    }

    pub(crate) fn names(&self) -> ContainerId {
        ContainerId(self.names.1)
    }

    pub(crate) fn journal(&self) -> ContainerId {
        ContainerId(self.journal.1)
    }

    /// Begins a new journal; the group of the one before, to be dropped.
    pub(crate) fn turn_journal(&mut self, storage: &mut dyn Storage) -> Result<GroupId, Error> {
        let before = core::mem::replace(&mut self.journal, container(storage)?);
        Ok(GroupId(before.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use counterfoil_log::Memory;

    #[test]
    fn a_table_of_the_format_before_is_there() {
        let mut disk = Memory::default();
        let files = Files::create(&mut disk, &[Kind::Double, Kind::Text], Options { reorder: 7 }).expect("made");
        let Files { kinds, options, names, journal, pages, .. } = &files;
        let before = postcard::to_extend(&(kinds, options, names, journal, pages), Vec::from([FORMAT_BEFORE]));
        let table = TableNumber(3);
        disk.put_record(record_space::CATALOG, &name(table), &before.expect("bytes")).expect("kept");
        assert_eq!(Files::of(&disk, table), Ok(Some(files.clone())));
        let files = Files { journal_begun: 900, ..files };
        files.put(&mut disk, table).expect("kept");
        assert_eq!(Files::of(&disk, table), Ok(Some(files)));
        disk.put_record(record_space::CATALOG, &name(table), &[FORMAT + 1, 0]).expect("kept");
        assert!(matches!(Files::of(&disk, table), Err(Error::Corrupt { .. })));
    }
}
