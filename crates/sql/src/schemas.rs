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

    /// COMMENT ON: of what is there it is taken, and said that it is not kept.
    pub(crate) fn comment(&mut self, on: CommentObject, name: &ObjectName) -> Result<Outcome> {
        self.to_write()?;
        match on {
            CommentObject::Table | CommentObject::View => drop(self.commented(&table_name(name)?)?),
            CommentObject::Column => self.commented_column(name)?,
            _ => {}
        }
        self.notices.push("comments are not kept".into());
        Ok(Outcome::Done("COMMENT"))
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
