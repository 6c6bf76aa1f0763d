//! What a caller asks for when it defines tables: everything by name.

use alloc::string::String;
use alloc::vec::Vec;

use crate::{Action, Engine, Identity, Type, Value};

/// CREATE TABLE.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NewTable {
    /// Its name.
    pub name: String,
    /// Its columns; none is allowed.
    pub columns: Vec<NewColumn>,
    /// PRIMARY KEY: its columns become NOT NULL.
    pub primary_key: Option<NewKey>,
    /// UNIQUE.
    pub uniques: Vec<NewKey>,
    /// CHECK.
    pub checks: Vec<NewCheck>,
    /// REFERENCES.
    pub foreign_keys: Vec<NewForeignKey>,
    /// Who keeps the rows, where it is not this crate.
    pub engine: Option<Engine>,
}

/// A column of CREATE TABLE or ADD COLUMN.
#[derive(Clone, Debug, PartialEq)]
pub struct NewColumn {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// NOT NULL.
    pub not_null: bool,
    /// DEFAULT, as SQL text.
    pub default: Option<String>,
    /// The default's value if it is a constant.
    pub default_value: Option<Value>,
    /// GENERATED AS IDENTITY.
    pub identity: Option<Identity>,
}

impl NewColumn {
    /// A column that may be NULL and has no default.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: Type) -> Self {
        let name = name.into();
        NewColumn { name, kind, not_null: false, default: None, default_value: None, identity: None }
    }

    /// The same, NOT NULL.
    #[must_use]
    pub fn not_null(self) -> Self {
        NewColumn { not_null: true, ..self }
    }
}

/// PRIMARY KEY or UNIQUE.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewKey {
    /// The constraint's name; without one it is made up as PostgreSQL does.
    pub name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
}

/// CHECK.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewCheck {
    /// The constraint's name; without one it is made up as PostgreSQL does.
    pub name: Option<String>,
    /// The condition.
    pub sql: String,
    /// The columns it speaks of.
    pub columns: Vec<String>,
}

/// FOREIGN KEY.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewForeignKey {
    /// The constraint's name; without one it is made up as PostgreSQL does.
    pub name: Option<String>,
    /// The columns that reference.
    pub columns: Vec<String>,
    /// The table referenced; may be the new table itself.
    pub parent: String,
    /// The columns referenced; none means the parent's primary key.
    pub parent_columns: Vec<String>,
    /// ON DELETE.
    pub on_delete: Action,
    /// ON UPDATE.
    pub on_update: Action,
    /// NOT ENFORCED: recorded, never checked.
    pub not_enforced: bool,
}

/// CREATE INDEX.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewIndex {
    /// Its name; without one it is made up as PostgreSQL does.
    pub name: Option<String>,
    /// Its columns.
    pub columns: Vec<String>,
    /// UNIQUE.
    pub unique: bool,
}
