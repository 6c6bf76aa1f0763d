//! The catalog: records that say what tables, views and indexes there are.
//!
//! ```text
//! space 1 (catalog), names as bytes, numbers big-endian:
//!   "c"                  the number of the next table
//!   "n" name             what the name stands for: table, view or index
//!   "t" table number     the table
//!   "f" table number     where its rows lie
//!   "x" table, index     what is written of an index: table number u64, index number u32
//!   "i" table number     the next values of its identity columns
//!   "v" name             a view
//! every value: format byte 1, then the structure as postcard writes it
//! ```
//!
//! Nothing that is read here is believed before it is checked: whatever follows may index by it.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use counterfoil_log::Order as _;
use counterfoil_log::{View, record_space};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::files::{Files, IndexFiles};
use crate::path::JOINS_MAX;
use crate::relations::Named;
use crate::shape::Shape;
use crate::{ColumnId, Engine, Error, IndexId, IndexOrigin, Storage, StoredView, Table, TableId};
use counterfoil_log::Lock;
use counterfoil_log::{Map, Set};

/// Longest name of a table, view, index, column or constraint, in bytes.
pub const NAME_BYTES_MAX: usize = 200;
/// Columns that a table may have.
pub const COLUMNS_MAX: usize = 1600;

/// 2: rows hold joins, and foreign keys have numbers. 3: paths have indexes. 4, 5: runs as they are. 6: reorganized in steps.
/// 7: CHAR(n) has its width in row images. 8: a record for each index.
const FORMAT: u8 = 8;
const NEXT_TABLE: &[u8] = b"c";
const NAME: u8 = b'n';
const TABLE: u8 = b't';
const FILES: u8 = b'f';
const INDEX: u8 = b'x';
const IDENTITY: u8 = b'i';
const VIEW: u8 = b'v';

/// What a name stands for, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum NameEntry {
    Table(TableId),
    View,
    Index(TableId, IndexId),
}

/// The next value of an identity column; none when there is no further one.
pub(crate) type IdentityNext = (ColumnId, Option<i64>);

fn numbered(prefix: u8, id: TableId) -> [u8; 9] {
    let mut name = [prefix; 9];
    name[1..].copy_from_slice(&id.0.to_be_bytes());
    name
}

fn of_index(id: TableId, index: IndexId) -> [u8; 13] {
    let mut name = [0; 13];
    name[..9].copy_from_slice(&numbered(INDEX, id));
    name[9..].copy_from_slice(&index.0.to_be_bytes());
    name
}

fn named(prefix: u8, name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(1 + name.len());
    bytes.push(prefix);
    bytes.extend_from_slice(name.as_bytes());
    bytes
}

/// Encodes an entry of about so many bytes.
fn encode<T: Serialize>(value: &T, bytes: usize) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(bytes);
    out.push(FORMAT);
    postcard::to_extend(value, out).map_err(|_| Error::misuse("a catalog entry that cannot be written"))
}

fn decode<T: DeserializeOwned>(bytes: &[u8], what: &'static str) -> Result<T, Error> {
    let wrong = || Error::corrupt("", what);
    match bytes.split_first() {
        Some((&FORMAT, rest)) => match postcard::take_from_bytes(rest) {
            Ok((value, [])) => Ok(value),
            _ => Err(wrong()),
        },
        Some((1..FORMAT, _)) => Err(older_format()),
        _ => Err(wrong()),
    }
}

/// What is said of tables that an older version wrote.
fn older_format() -> Error {
    let what = "tables of an older counterfoil; `export --all` with that version and `import --all` with this one";
    Error::not_supported(what.into())
}

fn put<T: Serialize>(writer: &mut dyn Storage, name: &[u8], value: &T) -> Result<(), Error> {
    // It mostly replaces one that is about as long.
    let before = writer.record(record_space::CATALOG, name).map_or(0, |bytes| bytes.len());
    let bytes = encode(value, before + SPARE_BYTES)?;
    writer.put_record(record_space::CATALOG, name, &bytes).map_err(Error::log(""))
}

/// Bytes by which an entry grows, mostly at most.
const SPARE_BYTES: usize = 256;

fn delete(writer: &mut dyn Storage, name: &[u8]) -> Result<(), Error> {
    writer.delete_record(record_space::CATALOG, name).map_err(Error::log(""))
}

/// What was decoded last, and from what.
#[derive(Debug)]
struct Cached<T> {
    bytes: Arc<[u8]>,
    value: Arc<T>,
}

/// Decoded entries of the catalog by table and index. It only saves work: an entry counts while its bytes are those of the view.
#[derive(Default)]
pub(crate) struct Catalog {
    tables: Lock<Map<TableId, Cached<Table>>>,
    files: Lock<Map<TableId, Cached<Files>>>,
    indexes: Lock<Map<(TableId, IndexId), Cached<IndexFiles>>>,
}

fn cached<K: Ord, T>(
    cache: &Lock<Map<K, Cached<T>>>,
    id: K,
    bytes: Arc<[u8]>,
    read: impl FnOnce(&[u8]) -> Result<T, Error>,
) -> Result<Arc<T>, Error> {
    // Where memory is little, that of one table, and what somebody works with: with seven indexes it is 5 KB, and decoding costs
    // less than reading a page. What others decoded goes before this is.
    if cfg!(feature = "small") {
        cache.write(|cache| cache.retain(|known, cached| *known == id || Arc::strong_count(&cached.value) > 1));
    }
    let same = |cached: &&Cached<T>| Arc::ptr_eq(&cached.bytes, &bytes) || cached.bytes == bytes;
    if let Some(value) = cache.read(|cache| cache.get(&id).filter(same).map(|cached| cached.value.clone())) {
        return Ok(value);
    }
    let value = Arc::new(read(&bytes)?);
    cache.write(|cache| cache.insert(id, Cached { bytes, value: value.clone() }));
    Ok(value)
}

impl Catalog {
    pub(crate) fn table(&self, view: &dyn View, id: TableId) -> Result<Option<Arc<Table>>, Error> {
        let Some(bytes) = view.record(record_space::CATALOG, &numbered(TABLE, id)) else { return Ok(None) };
        cached(&self.tables, id, bytes, |bytes| decode_table(bytes, id)).map(Some)
    }

    pub(crate) fn tables(&self, view: &dyn View) -> Result<Vec<Arc<Table>>, Error> {
        let mut tables = Vec::new();
        for id in table_ids(view)? {
            tables.extend(self.table(view, id)?);
        }
        tables.order_stably_by(|one, two| one.name.cmp(&two.name));
        Ok(tables)
    }

    pub(crate) fn files(&self, view: &dyn View, table: &Table) -> Result<Arc<Files>, Error> {
        let bytes = view.record(record_space::CATALOG, &numbered(FILES, table.id));
        let bytes = bytes.ok_or_else(|| Error::corrupt(&table.name, "catalog of segments"))?;
        cached(&self.files, table.id, bytes, |bytes| {
            let files: Files = decode(bytes, "catalog of segments")?;
            files.check(table).map(|()| files)
        })
    }

    /// What is written of an index of a table.
    pub(crate) fn index(
        &self,
        view: &dyn View,
        (table, files): (&Table, &Files),
        index: IndexId,
    ) -> Result<Arc<IndexFiles>, Error> {
        let wrong = || Error::corrupt(&table.name, "catalog of indexes");
        let bytes = view.record(record_space::CATALOG, &of_index(table.id, index)).ok_or_else(wrong)?;
        cached(&self.indexes, (table.id, index), bytes, |bytes| {
            let index: IndexFiles = decode(bytes, "catalog of indexes")?;
            if index.is_sound(files) { Ok(index) } else { Err(wrong()) }
        })
    }

    /// The same, to be changed and put back. What was decoded of it is handed over, so that it is not in memory twice.
    pub(crate) fn take_index(
        &self,
        view: &dyn View,
        of: (&Table, &Files),
        index: IndexId,
    ) -> Result<IndexFiles, Error> {
        let known = self.index(view, of, index)?;
        self.indexes.write(|indexes| indexes.remove(&(of.0.id, index)));
        Ok(Arc::unwrap_or_clone(known))
    }

    /// Forgets what nobody works with. It is decoded again when it is asked for, which costs less than reading a page.
    pub(crate) fn relieve(&self) {
        self.tables.write(|tables| tables.retain(|_, cached| Arc::strong_count(&cached.value) > 1));
        self.files.write(|files| files.retain(|_, cached| Arc::strong_count(&cached.value) > 1));
        self.indexes.write(|indexes| indexes.retain(|_, cached| Arc::strong_count(&cached.value) > 1));
    }

    pub(crate) fn named(&self, view: &dyn View, name: &str) -> Result<Option<Named>, Error> {
        let lost = || Error::corrupt("", "name in the catalog");
        match entry(view, name)? {
            None => Ok(None),
            Some(NameEntry::Table(id)) => Ok(Some(Named::Table(self.table(view, id)?.ok_or_else(lost)?))),
            Some(NameEntry::View) => Ok(Some(Named::View(stored_view(view, name)?.ok_or_else(lost)?))),
            Some(NameEntry::Index(id, index)) => {
                let table = self.table(view, id)?.ok_or_else(lost)?;
                table.index(index).ok_or_else(lost)?;
                Ok(Some(Named::Index(table, index)))
            }
        }
    }
}

/// The numbers of all tables.
pub(crate) fn table_ids(view: &dyn View) -> Result<Vec<TableId>, Error> {
    let number = |(name, _): (Vec<u8>, Arc<[u8]>)| {
        let number = name.get(1..).and_then(|number| number.try_into().ok()).map(u64::from_be_bytes);
        number.map(TableId).ok_or_else(|| Error::corrupt("", "name of a catalog record"))
    };
    view.records(record_space::CATALOG, &[TABLE]).into_iter().map(number).collect()
}

fn decode_table(bytes: &[u8], id: TableId) -> Result<Table, Error> {
    let wrong = || Error::corrupt("", "description of a table");
    let body = match bytes.split_first() {
        Some((&FORMAT, body)) => body,
        Some((1..FORMAT, _)) => return Err(older_format()),
        _ => return Err(wrong()),
    };
    let (mut table, rest) = postcard::take_from_bytes::<Table>(body).map_err(|_| wrong())?;
    if !rest.is_empty() {
        let (engine, rest) = postcard::take_from_bytes::<Engine>(rest).map_err(|_| wrong())?;
        table.engine = rest.is_empty().then_some(engine);
        table.engine.as_ref().ok_or_else(wrong)?;
    }
    check_table(&table, id)?;
    table.shape = Some(Arc::new(Shape::of(&table)?));
    Ok(table)
}

/// Whether a description makes sense, so that the rest of the crate may rely on it.
fn check_table(table: &Table, id: TableId) -> Result<(), Error> {
    let known = |column: &ColumnId| table.position(*column).is_some();
    let all_known = |columns: &[ColumnId]| columns.iter().all(known);
    let keys = table.primary_key.iter().chain(&table.uniques);
    let index_exists = |index: &IndexId| table.index(*index).is_some();
    let sound = table.id == id
        && table.columns.len() <= COLUMNS_MAX
        && table.columns.iter().enumerate().all(|(place, column)| table.position(column.id) == Some(place))
        && table.columns.iter().all(|column| column.kind.is_valid())
        && table.columns.iter().all(|column| column.identity.is_none_or(|identity| identity.increment != 0))
        && table.retired.iter().all(|column| column.kind.is_valid() && !known(&column.id))
        && table.indexes.iter().all(|index| match index.origin {
            IndexOrigin::Path(join) => index.columns.is_empty() && table.joins.iter().any(|known| known.id == join),
            _ => !index.columns.is_empty() && all_known(&index.columns),
        })
        && table
            .indexes
            .iter()
            .enumerate()
            .all(|(place, index)| table.indexes.iter().position(|other| other.id == index.id) == Some(place))
        && { keys }.all(|key| all_known(&key.columns) && index_exists(&key.index))
        && table.foreign_keys.iter().all(|key| {
            let sides = key.columns.len() == key.parent_columns.len() && !key.columns.is_empty();
            sides && all_known(&key.columns) && index_exists(&key.index)
        })
        && are_distinct(table.foreign_keys.iter().map(|key| key.id))
        && are_distinct(table.joins.iter().map(|join| join.id))
        && table.joins.len() <= JOINS_MAX
        && table.joins.iter().all(|join| join.steps.first().is_some_and(|step| table.begins(step)))
        && table.layouts.iter().all(|layout| layout.columns.len() <= COLUMNS_MAX && layout.joins.len() <= JOINS_MAX)
        && table.layouts.last().is_some_and(|newest| *newest == table.stored_layout());
    if sound { Ok(()) } else { Err(Error::corrupt("", "description of a table")) }
}

fn are_distinct<T: Ord>(numbers: impl Iterator<Item = T> + Clone) -> bool {
    numbers.clone().collect::<Set<T>>().len() == numbers.count()
}

pub(crate) fn entry(view: &dyn View, name: &str) -> Result<Option<NameEntry>, Error> {
    let bytes = view.record(record_space::CATALOG, &named(NAME, name));
    bytes.map(|bytes| decode(&bytes, "name in the catalog")).transpose()
}

/// Takes a name for something new.
pub(crate) fn take_name(writer: &mut dyn Storage, name: &str, entry: NameEntry) -> Result<(), Error> {
    check_name(name)?;
    if self::entry(writer, name)?.is_some() {
        return Err(Error::sql(format!("{name} already exists")));
    }
    put(writer, &named(NAME, name), &entry)
}

pub(crate) fn free_name(writer: &mut dyn Storage, name: &str) -> Result<(), Error> {
    delete(writer, &named(NAME, name))
}

pub(crate) fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() || name.len() > NAME_BYTES_MAX {
        return Err(Error::sql(format!("a name has 1 to {NAME_BYTES_MAX} bytes, this one {}", name.len())));
    }
    Ok(())
}

/// A name that is still free: `base`, or `base` with the least number after it.
pub(crate) fn free_name_like(view: &dyn View, base: &str) -> Result<String, Error> {
    let mut cut = NAME_BYTES_MAX - 12;
    while !base.is_char_boundary(cut.min(base.len())) {
        cut -= 1;
    }
    let base = &base[..cut.min(base.len())];
    let mut name = String::from(base);
    let mut number = 0_u32;
    while entry(view, &name)?.is_some() {
        number += 1;
        name = format!("{base}{number}");
    }
    Ok(name)
}

pub(crate) fn next_table(writer: &mut dyn Storage) -> Result<TableId, Error> {
    let bytes = writer.record(record_space::CATALOG, NEXT_TABLE);
    let id = match bytes {
        Some(bytes) => decode(&bytes, "number of the next table")?,
        None => 1_u64,
    };
    let next = id.checked_add(1).ok_or_else(|| Error::corrupt("", "number of the next table"))?;
    put(writer, NEXT_TABLE, &next)?;
    Ok(TableId(id))
}

pub(crate) fn put_table(writer: &mut dyn Storage, table: &Table) -> Result<(), Error> {
    let mut bytes = encode(table, 0)?;
    if let Some(engine) = &table.engine {
        bytes =
            postcard::to_extend(engine, bytes).map_err(|_| Error::misuse("a catalog entry that cannot be written"))?;
    }
    writer.put_record(record_space::CATALOG, &numbered(TABLE, table.id), &bytes).map_err(Error::log(""))
}

pub(crate) fn put_files(writer: &mut dyn Storage, id: TableId, files: &Files) -> Result<(), Error> {
    put(writer, &numbered(FILES, id), files)
}

pub(crate) fn put_index(
    writer: &mut dyn Storage,
    id: TableId,
    index: IndexId,
    files: &IndexFiles,
) -> Result<(), Error> {
    put(writer, &of_index(id, index), files)
}

pub(crate) fn delete_index(writer: &mut dyn Storage, id: TableId, index: IndexId) -> Result<(), Error> {
    delete(writer, &of_index(id, index))
}

pub(crate) fn delete_table(writer: &mut dyn Storage, table: &Table) -> Result<(), Error> {
    table.indexes.iter().try_for_each(|index| delete_index(writer, table.id, index.id))?;
    [TABLE, FILES, IDENTITY].into_iter().try_for_each(|prefix| delete(writer, &numbered(prefix, table.id)))
}

pub(crate) fn identities(view: &dyn View, id: TableId) -> Result<Vec<IdentityNext>, Error> {
    let bytes = view.record(record_space::CATALOG, &numbered(IDENTITY, id));
    bytes.map_or(Ok(Vec::new()), |bytes| decode(&bytes, "next values of identity columns"))
}

pub(crate) fn put_identities(writer: &mut dyn Storage, id: TableId, next: &Vec<IdentityNext>) -> Result<(), Error> {
    put(writer, &numbered(IDENTITY, id), next)
}

pub(crate) fn stored_view(view: &dyn View, name: &str) -> Result<Option<StoredView>, Error> {
    let bytes = view.record(record_space::CATALOG, &named(VIEW, name));
    bytes.map(|bytes| decode(&bytes, "view")).transpose()
}

pub(crate) fn stored_views(view: &dyn View) -> Result<Vec<StoredView>, Error> {
    let records = view.records(record_space::CATALOG, &[VIEW]);
    records.into_iter().map(|(_, bytes)| decode(&bytes, "view")).collect()
}

pub(crate) fn put_view(writer: &mut dyn Storage, view: &StoredView) -> Result<(), Error> {
    put(writer, &named(VIEW, &view.name), view)
}

pub(crate) fn delete_view(writer: &mut dyn Storage, name: &str) -> Result<(), Error> {
    delete(writer, &named(VIEW, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cause;

    #[test]
    fn tables_of_an_older_format_are_refused_with_what_to_do() {
        let mut storage = Memory::default();
        let new = NewTable { name: "t".into(), ..NewTable::default() };
        let table = Relations::new().create_table(&mut storage, &new).unwrap();
        let refused = |storage: &Memory| {
            let error = Relations::new().table(storage, "t").unwrap_err();
            assert!(matches!(error.cause(), Cause::NotSupported(what) if what.contains("export --all")), "{error:?}");
        };
        for format in 1..FORMAT {
            let as_it_was = |storage: &mut Memory, name: &[u8]| {
                let mut bytes = storage.record(record_space::CATALOG, name).unwrap().to_vec();
                bytes[0] = format;
                storage.put_record(record_space::CATALOG, name, &bytes).unwrap();
            };
            let (mut one, mut all) = (storage.clone(), storage.clone());
            as_it_was(&mut one, &numbered(TABLE, table.id));
            refused(&one);
            for (name, _) in storage.records(record_space::CATALOG, b"") {
                as_it_was(&mut all, &name);
            }
            refused(&all);
            let error = Relations::new().tables(&all).err().unwrap();
            assert!(matches!(error.cause(), Cause::NotSupported(_)), "{error:?}");
        }
    }

    use crate::{NewColumn, NewKey, NewTable, Relations, Type};
    use counterfoil_log::Memory;

    #[test]
    fn the_table_of_the_specification() {
        let mut storage = Memory::default();
        storage.put_record(record_space::CATALOG, NEXT_TABLE, &encode(&7_u64, 0).unwrap()).unwrap();
        let columns = Vec::from([NewColumn::new("id", Type::Integer).not_null()]);
        let new = NewTable { name: "t".into(), columns, ..NewTable::default() };
        let table = Relations::new().create_table(&mut storage, &new).unwrap();
        let bytes = storage.record(record_space::CATALOG, &numbered(TABLE, table.id)).unwrap();
        let expected =
            [8, 7, 1, b't', 1, 1, 2, b'i', b'd', 2, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 2, 1, 1, 1];
        assert_eq!(*bytes, expected);
        assert!(decode_table(&bytes, table.id).unwrap() == *table);
    }

    #[test]
    fn what_is_forgotten_comes_back_the_same() {
        let mut storage = Memory::default();
        let columns = Vec::from([NewColumn::new("id", Type::Integer).not_null()]);
        let primary_key = Some(NewKey { name: None, columns: Vec::from(["id".into()]) });
        let new = NewTable { name: "t".into(), columns, primary_key, ..NewTable::default() };
        let id = Relations::new().create_table(&mut storage, &new).unwrap().id;
        let catalog = Catalog::default();
        let all = || {
            let table = catalog.table(&storage, id).unwrap().unwrap();
            let files = catalog.files(&storage, &table).unwrap();
            let index = catalog.index(&storage, (&table, &files), table.indexes[0].id).unwrap();
            (table, files, index)
        };
        let known = || [catalog.tables.read(Map::len), catalog.files.read(Map::len), catalog.indexes.read(Map::len)];
        let held = all();
        catalog.relieve();
        // Somebody works with them: they are not decoded a second time.
        let again = all();
        assert!(Arc::ptr_eq(&held.0, &again.0) && Arc::ptr_eq(&held.1, &again.1) && Arc::ptr_eq(&held.2, &again.2));
        drop(again);
        let was = ((*held.0).clone(), (*held.1).clone(), (*held.2).clone());
        drop(held);
        assert_eq!(known(), [1; 3]);
        catalog.relieve();
        assert_eq!(known(), [0; 3]);
        let (table, files, index) = all();
        assert!((&*table, &*files, &*index) == (&was.0, &was.1, &was.2));
    }

    #[test]
    fn an_index_has_a_record_of_its_own() {
        let mut storage = Memory::default();
        let relations = Relations::new();
        let columns = Vec::from([NewColumn::new("id", Type::Integer).not_null()]);
        let primary_key = Some(NewKey { name: None, columns: Vec::from(["id".into()]) });
        let new = NewTable { name: "t".into(), columns, primary_key, ..NewTable::default() };
        let table = relations.create_table(&mut storage, &new).unwrap();
        let name = of_index(table.id, table.indexes[0].id);
        let bytes = storage.record(record_space::CATALOG, &name).unwrap();
        assert_eq!((name, &*bytes), (*b"x\0\0\0\0\0\0\0\x01\0\0\0\x01", [8, 0, 0, 0, 0, 0, 0].as_slice()));
        let files = Files::default();
        let read = |bytes: &[u8]| {
            let mut storage = storage.clone();
            storage.put_record(record_space::CATALOG, &name, bytes).unwrap();
            Catalog::default().index(&storage, (&table, &files), table.indexes[0].id)
        };
        assert!(read(&bytes).is_ok());
        // A merge of runs that are not there is nonsense.
        assert!(read(&[8, 0, 0, 0, 0, 0, 1, 0, 2, 1, 0, 0]).is_err());
        assert!(read(&[8, 0, 0, 0, 0, 0]).is_err() && read(&[8, 0, 0, 0, 0, 0, 0, 0]).is_err());
        relations.drop_table(&mut storage, &table, false).unwrap();
        assert!(storage.records(record_space::CATALOG, b"x").is_empty());
    }
}
