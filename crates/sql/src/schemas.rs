//! What scripts of PostgreSQL say that has nothing to do here: the one schema that there is, and comments, which are not kept.

use std::sync::Arc;

use counterfoil_relation::{Named, Table};
use datafusion::sql::sqlparser::ast::{CommentObject, ObjectName, SchemaName};

use crate::SCHEMA;
use crate::error::{self, Error, Result};
use crate::session::{Outcome, Session};
use crate::statement::{self, table_name};

impl Session {
    /// CREATE SCHEMA: there is one.
    pub(crate) fn create_schema(&mut self, name: &SchemaName, if_not_exists: bool) -> Result<Outcome> {
        let named = match name {
            SchemaName::Simple(name) | SchemaName::NamedAuthorization(name, _) => statement::parts(name)?.join("."),
            SchemaName::UnnamedAuthorization(_) => String::new(),
        };
        match (named == SCHEMA, if_not_exists) {
            (true, true) => Ok(Outcome::Done("CREATE SCHEMA")),
            (true, false) => Err(Error::Taken(error::Named::Schema, format!("there is a schema {SCHEMA} already"))),
            (false, _) => Err(Error::NotSupported(format!(
                "CREATE SCHEMA: {SCHEMA} is the one schema, give tables names that say what they belong to"
            ))),
        }
    }

    /// COMMENT ON: of what is there it is taken, and said that it is not kept. Of what only PostgreSQL has (roles, types, extensions) it is
    /// taken as it is said.
    pub(crate) fn comment(&mut self, on: CommentObject, name: &ObjectName) -> Result<Outcome> {
        self.to_write()?;
        match on {
            CommentObject::Table | CommentObject::View | CommentObject::Index => self.commented_whole(on, name)?,
            CommentObject::Column => self.commented_column(name)?,
            CommentObject::Schema if statement::parts(name)?.join(".") != SCHEMA => {
                return Err(Error::NotFound(format!("no schema {name}: {SCHEMA} is the one schema")));
            }
            _ => {}
        }
        self.notices.push("comments are not kept".into());
        Ok(Outcome::Done("COMMENT"))
    }

    /// A table, a view or an index, as it is called.
    fn commented_whole(&mut self, on: CommentObject, name: &ObjectName) -> Result<()> {
        let name = table_name(name)?;
        let view = self.view()?;
        match (on, self.engine().relations.named(&view, &name).map_err(Error::Relation)?) {
            (CommentObject::Table, Some(Named::Table(_)))
            | (CommentObject::View, Some(Named::View(_)))
            | (CommentObject::Index, Some(Named::Index(..))) => Ok(()),
            (on, _) => Err(Error::NoTable(format!("no {} {name}", on.to_string().to_lowercase()))),
        }
    }

    fn commented_column(&mut self, name: &ObjectName) -> Result<()> {
        let mut of = name.clone();
        let Some(last) = of.0.pop().filter(|_| !of.0.is_empty()) else {
            return Err(Error::Sql("a column is named behind its table: COMMENT ON COLUMN t.c".into()));
        };
        let (table, column) = (table_name(&of)?, statement::parts(&ObjectName(vec![last]))?.join("."));
        match self.commented(&table)? {
            Some(known) if known.column(&column).is_none() => {
                Err(Error::NoColumn(format!("no column {column} in table {table}")))
            }
            _ => Ok(()),
        }
    }

    /// A table that there is; none for a view.
    fn commented(&mut self, name: &str) -> Result<Option<Arc<Table>>> {
        let view = self.view()?;
        match self.engine().relations.named(&view, name).map_err(Error::Relation)? {
            Some(Named::Table(table)) => Ok(Some(table)),
            Some(Named::View(_)) => Ok(None),
            _ => Err(Error::NoTable(format!("no table {name}"))),
        }
    }
}
