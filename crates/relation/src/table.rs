//! What is known of a table: its columns, keys, rules and indexes.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::shape::Shape;
use crate::{Layout, Type, Value};

/// The number of a table: never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TableId(pub u64);

/// The number of a column within its table: never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ColumnId(pub u32);

/// The number of an index within its table: never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IndexId(pub u32);

/// The number of a foreign key within its table: never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ForeignKeyId(pub u32);

/// The number of a path of foreign keys within the table where it begins: never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct JoinId(pub u32);

/// The number of a row within its table: never used again, never changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RowId(pub u64);

/// A table, as one view sees it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Its number.
    pub id: TableId,
    /// Its name, unique among tables, views and indexes.
    pub name: String,
    /// Its columns, in the order that the user sees and that the newest layout has.
    pub columns: Vec<Column>,
    /// PRIMARY KEY.
    pub primary_key: Option<KeyDef>,
    /// UNIQUE, without the primary key.
    pub uniques: Vec<KeyDef>,
    /// CHECK. Evaluated by the caller.
    pub checks: Vec<Check>,
    /// REFERENCES.
    pub foreign_keys: Vec<ForeignKey>,
    /// The paths of foreign keys that begin here; each row holds the row at the end of each. The shorter come first.
    pub joins: Vec<Join>,
    /// All indexes: those behind keys and foreign keys, then those of CREATE INDEX.
    pub indexes: Vec<IndexDef>,
    /// Tables with a foreign key to this one; may name this table itself.
    pub(crate) children: Vec<TableId>,
    /// Columns that were dropped and may still lie in images of older layouts.
    pub(crate) retired: Vec<RetiredColumn>,
    /// Layouts that images of this table have, the newest last.
    pub(crate) layouts: Vec<StoredLayout>,
    pub(crate) next_column: u32,
    pub(crate) next_index: u32,
    pub(crate) next_foreign_key: u32,
    pub(crate) next_join: u32,
    /// Who keeps the rows, where it is not this crate: then there are none here. Stored behind the rest, if it is there.
    #[serde(skip)]
    pub engine: Option<Engine>,
    /// What follows from all that, worked out when the table is read.
    #[serde(skip)]
    pub(crate) shape: Option<Arc<Shape>>,
}

/// An engine that keeps the rows of a table elsewhere: this crate keeps the table's definition for it, and what it was told.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Engine {
    /// What the caller calls it.
    pub name: String,
    /// What the caller was told beside: names and values.
    pub options: Vec<(String, String)>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// Its number.
    pub id: ColumnId,
    /// Its name, unique in its table.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Whether NULL is refused (also for the columns of the primary key).
    pub not_null: bool,
    /// DEFAULT, as SQL text; evaluated by the caller.
    pub default: Option<String>,
    /// The default's value where it is a constant: what ON DELETE SET DEFAULT takes.
    pub default_value: Option<Value>,
    /// GENERATED AS IDENTITY.
    pub identity: Option<Identity>,
    /// What rows have that are older than the column.
    pub(crate) added_default: Option<Box<Value>>,
}

/// GENERATED { ALWAYS | BY DEFAULT } AS IDENTITY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// ALWAYS: the user may not give a value.
    pub always: bool,
    /// The first value.
    pub start: i64,
    /// The step, not 0.
    pub increment: i64,
}

/// PRIMARY KEY or UNIQUE.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyDef {
    /// The constraint's name.
    pub name: String,
    /// Its columns.
    pub columns: Vec<ColumnId>,
    /// The unique index behind it.
    pub index: IndexId,
}

/// CHECK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The constraint's name.
    pub name: String,
    /// The condition, as SQL text.
    pub sql: String,
    /// The columns it speaks of: dropping one of them drops the check.
    pub columns: Vec<ColumnId>,
}

/// FOREIGN KEY.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignKey {
    /// Its number.
    pub id: ForeignKeyId,
    /// The constraint's name.
    pub name: String,
    /// The columns that reference, in the order of `parent_columns`.
    pub columns: Vec<ColumnId>,
    /// The table referenced.
    pub parent: TableId,
    /// The columns referenced.
    pub parent_columns: Vec<ColumnId>,
    /// The unique index of the parent over `parent_columns` (in the index's own order).
    pub parent_index: IndexId,
    /// The index of this table by which the rows are found that reference a key: it begins with the columns.
    pub index: IndexId,
    /// What happens to referencing rows when the row referenced is deleted.
    pub on_delete: Action,
    /// What happens to referencing rows when the key referenced changes.
    pub on_update: Action,
    /// Whether it is checked.
    pub enforced: bool,
}

impl ForeignKey {
    /// The step along it.
    #[must_use]
    pub fn step(&self) -> Step {
        Step { key: self.id, to: self.parent }
    }
}

/// A path of foreign keys from one table to another (MILo-DB, section 3: the paths along which TJoin leads).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Join {
    /// Its number.
    pub id: JoinId,
    /// Its steps, at least one; the first is a foreign key of the table where the path begins.
    pub steps: Vec<Step>,
}

/// One step of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Step {
    /// The foreign key, of the table where the step begins.
    pub key: ForeignKeyId,
    /// The table that it references.
    pub to: TableId,
}

/// What happens to rows whose reference would dangle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Action {
    /// Refused, unless the reference holds again at the end of the statement.
    #[default]
    NoAction,
    /// Refused.
    Restrict,
    /// Deleted, or updated to the new key.
    Cascade,
    /// The referencing columns become NULL.
    SetNull,
    /// The referencing columns get their defaults.
    SetDefault,
}

/// An index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexDef {
    /// Its number.
    pub id: IndexId,
    /// Its name, unique among tables, views and indexes; for an index behind a constraint, the constraint's; for one of a
    /// path, those of its foreign keys.
    pub name: String,
    /// Its columns, first the most significant; none for a path.
    pub columns: Vec<ColumnId>,
    /// Whether two rows may not have the same key (rows with a NULL in the key apart).
    pub unique: bool,
    /// What it is there for.
    pub origin: IndexOrigin,
}

/// What an index is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum IndexOrigin {
    /// PRIMARY KEY.
    PrimaryKey,
    /// UNIQUE.
    Unique,
    /// FOREIGN KEY, by the child's values.
    ForeignKey,
    /// CREATE INDEX: the only kind that DROP INDEX drops.
    Created,
    /// A path of foreign keys of several steps: by the row at its end, so the index has no columns of its own.
    Path(JoinId),
}

impl IndexOrigin {
    /// Whether the index takes a name among those of tables, views and indexes.
    pub(crate) fn takes_name(self) -> bool {
        !matches!(self, IndexOrigin::ForeignKey | IndexOrigin::Path(_))
    }
}

/// What images of one layout hold, in this order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct StoredLayout {
    pub(crate) columns: Vec<ColumnId>,
    pub(crate) joins: Vec<JoinId>,
}

/// A column that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RetiredColumn {
    pub(crate) id: ColumnId,
    pub(crate) kind: Type,
}

/// CREATE VIEW: kept as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredView {
    /// Its name, unique among tables, views and indexes.
    pub name: String,
    /// The query.
    pub sql: String,
    /// Names of its columns where the user gave them.
    pub columns: Vec<String>,
}

impl Table {
    /// The layout of rows as they are brought: the columns in the order of `columns`, and no joins, which are found.
    #[must_use]
    pub fn layout(&self) -> Arc<Layout> {
        match &self.shape {
            Some(shape) => shape.brought.clone(),
            None => Arc::new(Layout::new(self.columns.iter().map(|column| (column.id, column.kind)))),
        }
    }

    /// Whether a foreign key, of another table or its own, refers to this table.
    #[must_use]
    pub fn is_referenced(&self) -> bool {
        !self.children.is_empty()
    }

    /// What images hold as they are written now.
    pub(crate) fn stored_layout(&self) -> StoredLayout {
        StoredLayout {
            columns: self.columns.iter().map(|column| column.id).collect(),
            joins: self.joins.iter().map(|join| join.id).collect(),
        }
    }

    /// A column by name, and where it stands.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<(usize, &Column)> {
        self.columns.iter().enumerate().find(|(_, column)| column.name == name)
    }

    /// Where column `id` stands.
    #[must_use]
    pub fn position(&self, id: ColumnId) -> Option<usize> {
        self.columns.iter().position(|column| column.id == id)
    }

    /// An index by number.
    #[must_use]
    pub fn index(&self, id: IndexId) -> Option<&IndexDef> {
        self.indexes.iter().find(|index| index.id == id)
    }

    /// A foreign key by number.
    #[must_use]
    pub fn foreign_key(&self, id: ForeignKeyId) -> Option<&ForeignKey> {
        self.foreign_keys.iter().find(|key| key.id == id)
    }

    /// A path's name: that of its foreign key, or those of several, one behind the other.
    pub(crate) fn path_name(&self, join: &Join) -> &str {
        let index = self.indexes.iter().find(|index| index.origin == IndexOrigin::Path(join.id));
        let key = join.steps.first().and_then(|step| self.foreign_key(step.key));
        index.map(|index| &index.name).or(key.map(|key| &key.name)).map_or("", String::as_str)
    }

    /// Where among `joins` the path with these steps stands.
    #[must_use]
    pub fn join_along(&self, steps: &[Step]) -> Option<usize> {
        self.joins.iter().position(|join| join.steps == steps)
    }

    /// Whether a step begins at this table.
    pub(crate) fn begins(&self, step: &Step) -> bool {
        self.foreign_key(step.key).is_some_and(|key| key.parent == step.to)
    }

    /// The indexes whose keys must differ.
    pub fn unique_indexes(&self) -> impl Iterator<Item = &IndexDef> {
        self.indexes.iter().filter(|index| index.unique)
    }

    /// Names of columns, for messages.
    pub(crate) fn names(&self, columns: &[ColumnId]) -> Vec<String> {
        let name =
            |id: &ColumnId| self.columns.iter().find(|column| column.id == *id).map(|column| column.name.clone());
        columns.iter().filter_map(name).collect()
    }
}
