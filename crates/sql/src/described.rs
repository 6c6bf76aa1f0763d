//! Descriptions that were given before. A driver asks for the same one with each row that it stores, and planning it takes a hundred
//! times as long as storing a row.
//!
//! What a statement wants and answers follows from its text, the types that were given and the tables that it names. So a
//! description holds for as long as all of these are as they were; what names views, the catalogue or functions in FROM is
//! described anew.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

use counterfoil_relation::{Named, Table};
use datafusion::arrow::datatypes::DataType;
use datafusion::sql::sqlparser::ast::{Statement, visit_relations};

use crate::description::Description;
use crate::error::{Error, Result};
use crate::session::Session;
use crate::statement::table_name;

/// So many at most are known.
const DESCRIBED_MAX: usize = 64;
/// Of texts up to this long.
const TEXT_BYTES_MAX: usize = 4 << 10;

/// Descriptions by the texts of their statements.
#[derive(Default)]
pub(crate) struct Described(HashMap<String, Known>);

struct Known {
    given: Vec<Option<DataType>>,
    tables: Vec<Arc<Table>>,
    description: Description,
}

impl Described {
    /// What was said of a text, if it holds.
    pub(crate) fn known(&self, text: &str, given: &[Option<DataType>], tables: &[Arc<Table>]) -> Option<Description> {
        let known = self.0.get(text)?;
        let are_same = |one: &[Arc<Table>], other: &[Arc<Table>]| {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| Arc::ptr_eq(one, other))
        };
        (known.given == given && are_same(&known.tables, tables)).then(|| known.description.clone())
    }

    pub(crate) fn note(
        &mut self,
        text: &str,
        given: &[Option<DataType>],
        tables: Vec<Arc<Table>>,
        description: &Description,
    ) {
        if text.len() > TEXT_BYTES_MAX {
            return;
        }
        if self.0.len() >= DESCRIBED_MAX {
            self.0.clear();
        }
        self.0.insert(text.to_owned(), Known { given: given.to_vec(), tables, description: description.clone() });
    }
}

impl Session {
    /// The tables from which all that follows what a statement wants and answers; none where it names anything else.
    pub(crate) fn tables_described_by(&mut self, statement: &Statement) -> Result<Option<Vec<Arc<Table>>>> {
        let (Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_)) = statement
        else {
            return Ok(None);
        };
        let mut names = HashSet::new();
        let named = visit_relations(statement, |name| match table_name(name) {
            Ok(name) => {
                names.insert(name);
                ControlFlow::Continue(())
            }
            Err(_) => ControlFlow::Break(()),
        });
        if named.is_break() {
            return Ok(None);
        }
        let view = self.view()?;
        let mut names: Vec<String> = names.into_iter().collect();
        names.sort();
        let mut tables = Vec::with_capacity(names.len());
        for name in names {
            match self.engine().relations.named(&view, &name).map_err(Error::Relation)? {
                Some(Named::Table(table)) => tables.push(table),
                _ => return Ok(None),
            }
        }
        Ok(Some(tables))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_is_bounded_and_of_the_types_that_were_given() {
        let mut described = Described::default();
        for number in 0..2 * DESCRIBED_MAX {
            described.note(&format!("SELECT {number}"), &[None], Vec::new(), &Description::default());
            assert!(described.0.len() <= DESCRIBED_MAX);
        }
        let last = format!("SELECT {}", 2 * DESCRIBED_MAX - 1);
        assert!(described.known(&last, &[None], &[]).is_some());
        assert!(described.known(&last, &[Some(DataType::Int64)], &[]).is_none());
        let long = "x".repeat(TEXT_BYTES_MAX + 1);
        described.note(&long, &[], Vec::new(), &Description::default());
        assert!(described.known(&long, &[], &[]).is_none());
    }
}
