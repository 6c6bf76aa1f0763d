//! Where a table's bytes lie, and what its columns hold: one record of the catalog.

use alloc::vec::Vec;

use counterfoil_log::{ContainerId, GroupId, View, record_space};
use serde::{Deserialize, Serialize};

use crate::column::Kind;
use crate::digest::{Shape, Summarized};
use crate::pages::Pages;
use crate::tables::TableNumber;
use crate::{Error, Storage};

const FORMAT: u8 = 2;
/// Without the bytes of the journal when it was begun, and without summaries.
const FORMAT_BEFORE: u8 = 1;
const PREFIX: u8 = b's';

/// How a table is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Options {
    /// Points newer than the newest of their series less this, in the unit of time, wait for others that come between them before
    /// they are packed into a leaf. They are durable all the same.
    pub reorder: i64,
    /// Which columns have summaries: without reading their points, sums, extremes and the like are known of each leaf and node.
    pub summarized: Summarized,
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
    reorder: i64,
    names: (u64, u64),
    journal: (u64, u64),
    pages: Pages,
}

impl From<FilesBefore> for Files {
    fn from(before: FilesBefore) -> Files {
        let FilesBefore { kinds, reorder, names, journal, pages } = before;
        let options = Options { reorder, ..Options::default() };
        Files { kinds, options, names, journal, pages, journal_begun: 0 }
    }
}

fn name(table: TableNumber) -> [u8; 9] {
    let mut name = [PREFIX; 9];
    name[1..].copy_from_slice(&table.0.to_be_bytes());
    name
}

fn decode(bytes: &[u8]) -> Option<Files> {
    let (files, rest) = match bytes.split_first()? {
        (&FORMAT, body) => postcard::take_from_bytes::<Files>(body).ok()?,
        (&FORMAT_BEFORE, body) => {
            let (before, rest) = postcard::take_from_bytes::<FilesBefore>(body).ok()?;
            (before.into(), rest)
        }
        _ => return None,
    };
    (files.summarized().fits(&files.kinds) && rest.is_empty()).then_some(files)
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

    pub(crate) fn shape(&self) -> Shape<'_> {
        Shape { kinds: &self.kinds, summarized: self.summarized() }
    }

    /// Of a table that is nowhere.
    #[cfg(test)]
    pub(crate) fn for_test(page_bytes: u32, kinds: &[Kind], summarized: Summarized) -> Files {
        let options = Options { summarized, ..Options::default() };
        let pages = Pages { pool: 0, bytes: page_bytes };
        Files { kinds: kinds.to_vec(), options, names: (0, 0), journal: (0, 0), pages, journal_begun: 0 }
    }

    /// Those of a table; none if it is not there.
    pub(crate) fn of(view: &dyn View, table: TableNumber) -> Result<Option<Files>, Error> {
        let Some(bytes) = view.record(record_space::CATALOG, &name(table)) else { return Ok(None) };
        let wrong = Error::Corrupt { what: "catalog entry" };
        decode(&bytes).map(Some).ok_or(wrong)
    }

    /// Which columns have summaries.
    pub(crate) fn summarized(&self) -> &Summarized {
        &self.options.summarized
    }

    /// The tables there are.
    pub(crate) fn tables(view: &dyn View) -> Vec<TableNumber> {
        let records = view.records(record_space::CATALOG, &[PREFIX]);
        let number = |name: &[u8]| name.get(1..)?.try_into().ok().map(|bytes| TableNumber(u64::from_be_bytes(bytes)));
        records.iter().filter_map(|(name, _)| number(name)).collect()
    }

    /// Notes them.
    pub(crate) fn put(&self, storage: &mut dyn Storage, table: TableNumber) -> Result<(), Error> {
        let wrong = |_| Error::Misuse("a catalog entry");
        let bytes = postcard::to_extend(self, Vec::from([FORMAT])).map_err(wrong)?;
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
        let files = Files::create(&mut disk, &[Kind::Double, Kind::Text], Options { reorder: 7, ..Options::default() })
            .expect("made");
        let Files { kinds, options, names, journal, pages, .. } = &files;
        let before = postcard::to_extend(&(kinds, options.reorder, names, journal, pages), Vec::from([FORMAT_BEFORE]));
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
