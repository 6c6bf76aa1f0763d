//! The numbers of objects (PostgreSQL's oids): the same for as long as the object lives, and no two the same.
//!
//! ```text
//! 16384 + number of the table        tables
//! 2^28 .. 2^31                       all else: a hash of the table's number, what it is, and its own number or name
//! ```
//! What meets another there takes the next free one, in the order of the tables' numbers: among a thousand objects two meet in
//! one database of four thousand, and then the younger one's number may change when the older one goes.

use std::collections::{HashMap, HashSet};

use counterfoil_relation::{ColumnId, IndexId, StoredView, Table, TableId};

/// Below are PostgreSQL's own.
pub(super) const FIRST: u32 = 16_384;
const HASHED: u32 = 1 << 28;
const END: u32 = 1 << 31;

/// The schema of the catalogue.
pub(super) const PG_CATALOG: u32 = 11;
/// The users' schema.
pub(super) const PUBLIC: u32 = 2_200;
/// The schema of the standard's views.
pub(super) const INFORMATION: u32 = 13_207;
/// Whom everything belongs to.
pub(super) const OWNER: u32 = 10;
/// The database.
pub(super) const DATABASE: u32 = 5;
/// How tables are kept, for those who ask.
pub(super) const HEAP: u32 = 2;
/// How indexes are kept, for those who ask.
pub(super) const BTREE: u32 = 403;

/// Something that has a number.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Object {
    Table(TableId),
    Index(TableId, IndexId),
    /// PRIMARY KEY or UNIQUE, by the index behind it.
    Key(TableId, IndexId),
    Check(TableId, String),
    Reference(TableId, String),
    Default(TableId, ColumnId),
    /// What counts an identity column up.
    Sequence(TableId, ColumnId),
    View(String),
}

impl Object {
    fn hash(&self) -> u32 {
        let (sort, table, number, name) = match self {
            Object::Table(table) => (0, table.0, 0, ""),
            Object::Index(table, index) => (1, table.0, index.0, ""),
            Object::Key(table, index) => (2, table.0, index.0, ""),
            Object::Check(table, name) => (3, table.0, 0, name.as_str()),
            Object::Reference(table, name) => (4, table.0, 0, name.as_str()),
            Object::Default(table, column) => (5, table.0, column.0, ""),
            Object::Sequence(table, column) => (6, table.0, column.0, ""),
            Object::View(name) => (7, 0, 0, name.as_str()),
        };
        let mut hash = Fnv::default();
        hash.add(&[sort]);
        hash.add(&table.to_le_bytes());
        hash.add(&number.to_le_bytes());
        hash.add(name.as_bytes());
        HASHED + (hash.0 % u64::from(END - HASHED)) as u32
    }
}

/// FNV-1a, which is the same on every machine and in every version of this program.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3));
    }
}

/// The numbers of all objects of a database.
#[derive(Default)]
pub(super) struct Numbers {
    known: HashMap<Object, u32>,
    taken: HashSet<u32>,
}

impl Numbers {
    pub fn of(tables: &[std::sync::Arc<Table>], views: &[StoredView]) -> Self {
        let mut numbers = Numbers::default();
        let mut tables: Vec<&Table> = tables.iter().map(AsRef::as_ref).collect();
        tables.sort_by_key(|table| table.id);
        tables.iter().for_each(|table| numbers.take(Object::Table(table.id)));
        for table in tables {
            let id = table.id;
            table.indexes.iter().for_each(|index| numbers.take(Object::Index(id, index.id)));
            table.primary_key.iter().chain(&table.uniques).for_each(|key| numbers.take(Object::Key(id, key.index)));
            table.checks.iter().for_each(|check| numbers.take(Object::Check(id, check.name.clone())));
            table.foreign_keys.iter().for_each(|key| numbers.take(Object::Reference(id, key.name.clone())));
            for column in &table.columns {
                column.default.iter().for_each(|_| numbers.take(Object::Default(id, column.id)));
                column.identity.iter().for_each(|_| numbers.take(Object::Sequence(id, column.id)));
            }
        }
        let mut names: Vec<&String> = views.iter().map(|view| &view.name).collect();
        names.sort_unstable();
        names.into_iter().for_each(|name| numbers.take(Object::View(name.clone())));
        numbers
    }

    fn take(&mut self, object: Object) {
        let own = match &object {
            Object::Table(table) => u32::try_from(table.0).ok().filter(|number| *number < HASHED - FIRST),
            _ => None,
        };
        let mut number = own.map_or_else(|| object.hash(), |own| FIRST + own);
        // There are more numbers than a database can have objects.
        while !self.taken.insert(number) {
            number = if number + 1 < END { number + 1 } else { HASHED };
        }
        self.known.insert(object, number);
    }

    /// The number of an object, 0 for one that is not there.
    pub fn get(&self, object: &Object) -> u32 {
        self.known.get(object).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_differ() {
        let mut numbers = Numbers::default();
        let (table, far) = (Object::Table(TableId(3)), Object::Table(TableId(1 << 40)));
        let index = Object::Index(TableId(3), IndexId(1));
        for object in [&table, &far, &index] {
            numbers.take(object.clone());
        }
        assert_eq!(numbers.get(&table), FIRST + 3);
        assert!(numbers.get(&far) >= HASHED && numbers.get(&index) >= HASHED);
        assert_eq!(numbers.get(&Object::View("v".into())), 0);
        // Written down: it must not change from one version of this program to the next.
        assert_eq!(numbers.get(&index), index.hash());
        assert_eq!(Object::View("v".into()).hash(), HASHED + 1_341_100_720);
        // Whoever comes second to a number takes the next.
        let mut full = Numbers { taken: HashSet::from([index.hash(), index.hash() + 1]), ..Numbers::default() };
        full.take(index.clone());
        assert_eq!(full.get(&index), index.hash() + 2);
    }
}
