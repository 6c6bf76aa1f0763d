//! What the face of the crate defines: tables, their columns, constraints and indexes, and views (relations.rs has the rest).

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use crate::catalog::{self, NameEntry};
use crate::{
    ColumnChange, Engine, Error, NewColumn, NewConstraint, NewIndex, NewTable, Relations, Retype, Storage, StoredView,
    Table, Value, alter, alter_column, constrain, define,
};

impl Relations {
    /// CREATE TABLE.
    ///
    /// # Errors
    /// [`Error::sql`] for names that are taken or not there, [`Error::not_supported`].
    pub fn create_table(&self, writer: &mut dyn Storage, table: &NewTable) -> Result<Arc<Table>, Error> {
        define::create_table(&self.shared, writer, table)
    }

    /// DROP TABLE. `cascade`: foreign keys of other tables that reference it go too; otherwise they forbid it.
    ///
    /// # Errors
    /// [`Error::sql`] where it is refused, [`crate::Cause::Log`].
    pub fn drop_table(&self, writer: &mut dyn Storage, table: &Table, cascade: bool) -> Result<(), Error> {
        define::drop_table(&self.shared, writer, table.id, cascade)
    }

    /// ALTER TABLE ... RENAME TO.
    ///
    /// # Errors
    /// [`Error::sql`] for a name that is taken.
    pub fn rename_table(&self, writer: &mut dyn Storage, table: &Table, name: &str) -> Result<Arc<Table>, Error> {
        alter::rename_table(&self.shared, writer, table.id, name)
    }

    /// Notes anew what the engine that keeps a table's rows was told.
    ///
    /// # Errors
    /// [`Error::misuse`] for a table whose rows are kept here.
    pub fn set_engine(&self, writer: &mut dyn Storage, table: &Table, engine: Engine) -> Result<Arc<Table>, Error> {
        alter::set_engine(&self.shared, writer, table.id, engine)
    }

    /// ALTER TABLE ... ADD COLUMN: rows that are there have `value` (the default, evaluated once).
    ///
    /// # Errors
    /// [`Error::sql`] for a name that is taken, [`crate::Cause::Constraint`] if `value` breaks a rule of the column.
    pub fn add_column(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        column: &NewColumn,
        value: &Value,
    ) -> Result<Arc<Table>, Error> {
        alter::add_column(&self.shared, writer, table.id, column, value)
    }

    /// ALTER TABLE ... DROP COLUMN, with the table's own keys, checks, foreign keys and indexes over it.
    /// `cascade`: foreign keys of other tables that reference it go too; otherwise they forbid it.
    ///
    /// # Errors
    /// [`Error::sql`] where it is refused.
    pub fn drop_column(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        column: &str,
        cascade: bool,
    ) -> Result<Arc<Table>, Error> {
        alter::drop_column(&self.shared, writer, table.id, column, cascade)
    }

    /// ALTER TABLE ... DROP CONSTRAINT; none where the table has none of that name. Columns of a primary key stay NOT NULL.
    /// `cascade`: foreign keys that reference a key go too; otherwise they forbid it.
    ///
    /// # Errors
    /// [`Error::sql`] where it is refused.
    pub fn drop_constraint(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        name: &str,
        cascade: bool,
    ) -> Result<Option<Arc<Table>>, Error> {
        constrain::drop_constraint(&self.shared, writer, table.id, name, cascade)
    }

    /// ALTER TABLE ... RENAME COLUMN. `rewrite` gets the text of each check over the column and returns it with the new
    /// name.
    ///
    /// # Errors
    /// [`Error::sql`] for a name that is taken or not there.
    pub fn rename_column(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        from: &str,
        to: &str,
        rewrite: &mut dyn FnMut(&str) -> String,
    ) -> Result<Arc<Table>, Error> {
        alter::rename_column(&self.shared, writer, table.id, from, to, rewrite)
    }

    /// ALTER TABLE ... ALTER COLUMN, where no row has to be written for it.
    ///
    /// # Errors
    /// [`Error::sql`] and [`crate::Cause::NotSupported`] where it is refused, [`crate::Cause::Constraint`] if a row has NULL in what is
    /// to be NOT NULL.
    pub fn alter_column(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        column: &str,
        change: &ColumnChange,
    ) -> Result<Arc<Table>, Error> {
        alter_column::alter_column(&self.shared, writer, table.id, column, change)
    }

    /// Begins ALTER TABLE ... ALTER COLUMN ... TYPE: a column of the new type takes the name and the rules. The caller gives every row
    /// its value, by updates of the same transaction, and calls [`Relations::end_retype`]. The column may be in a foreign key only where
    /// the values stay and both types are keyed alike ([`Type::is_keyed_like`]).
    ///
    /// # Errors
    /// [`Error::sql`] and [`crate::Cause::NotSupported`] where it is refused.
    pub fn begin_retype(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        retype: &Retype<'_>,
    ) -> Result<Arc<Table>, Error> {
        alter_column::begin_retype(&self.shared, writer, table.id, retype)
    }

    /// Ends it: the column as it was goes, and its indexes are made anew.
    ///
    /// # Errors
    /// [`crate::Cause::Constraint`] if rows have a key twice now.
    pub fn end_retype(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        retype: &Retype<'_>,
    ) -> Result<Arc<Table>, Error> {
        alter_column::end_retype(&self.shared, writer, table.id, retype)
    }

    /// ALTER TABLE ADD CONSTRAINT.
    ///
    /// # Errors
    /// [`Error::sql`] for what cannot be, [`crate::Cause::Constraint`] if the rows there have a key twice, or NULL in a primary key.
    pub fn add_constraint(
        &self,
        writer: &mut dyn Storage,
        table: &Table,
        constraint: &NewConstraint,
    ) -> Result<Arc<Table>, Error> {
        constrain::add_constraint(&self.shared, writer, table.id, constraint)
    }

    /// CREATE [UNIQUE] INDEX, over the rows that are there.
    ///
    /// # Errors
    /// [`Error::sql`] for names, [`crate::Cause::Constraint`] if the rows have a key twice.
    pub fn create_index(&self, writer: &mut dyn Storage, table: &Table, index: &NewIndex) -> Result<Arc<Table>, Error> {
        define::create_index(&self.shared, writer, table.id, index)
    }

    /// DROP INDEX.
    ///
    /// # Errors
    /// [`Error::sql`] if there is none, or a constraint needs it.
    pub fn drop_index(&self, writer: &mut dyn Storage, name: &str) -> Result<(), Error> {
        define::drop_index(&self.shared, writer, name)
    }

    /// CREATE VIEW; `replace`: OR REPLACE.
    ///
    /// # Errors
    /// [`Error::sql`] for a name that is taken.
    pub fn create_view(&self, writer: &mut dyn Storage, view: &StoredView, replace: bool) -> Result<(), Error> {
        if !(replace && catalog::entry(writer, &view.name)? == Some(NameEntry::View)) {
            catalog::take_name(writer, &view.name, NameEntry::View)?;
        }
        catalog::put_view(writer, view)
    }

    /// DROP VIEW.
    ///
    /// # Errors
    /// [`Error::sql`] if there is none.
    pub fn drop_view(&self, writer: &mut dyn Storage, name: &str) -> Result<(), Error> {
        if catalog::entry(writer, name)? != Some(NameEntry::View) {
            return Err(Error::sql(format!("view {name} does not exist")));
        }
        catalog::free_name(writer, name)?;
        catalog::delete_view(writer, name)
    }
}
