//! CREATE TABLE ... WITH (engine = 'published', ...), and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use counterfoil_relation::{Engine as Told, NewTable, Table};
use datafusion::sql::sqlparser::ast::CreateTable;

use super::asking::{Asking, apart};
use super::{MAX_AGE, OWNER, SERVER, Source, TABLE, Verifier};
use crate::define::reserved;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::series;
use crate::session::{Outcome, Session};
use crate::transaction::Change;
use crate::types;

/// Whether a published table can be told this.
pub(crate) fn option_is_known(name: &str) -> bool {
    [SERVER, OWNER, TABLE, MAX_AGE].contains(&name)
}

/// How old an answer may be: seconds, or a span of time.
pub(super) fn age(text: &str) -> Result<Duration> {
    if let Ok(seconds) = text.trim().parse::<u32>() {
        return Ok(Duration::from_secs(u64::from(seconds)));
    }
    let wrong = || Error::Sql(format!("{MAX_AGE} = '{text}': seconds are due, or a span of time such as '1 hour'"));
    let microseconds = series::span(MAX_AGE, text).map_err(|_| wrong())?;
    u64::try_from(microseconds).map(Duration::from_micros).map_err(|_| wrong())
}

impl Engine {
    /// Who asks for published tables.
    pub(crate) fn verifier(&self) -> Result<&Arc<dyn Verifier>> {
        self.verifier
            .get()
            .ok_or_else(|| Error::NotSupported("published tables, in a program built without them".into()))
    }
}

impl Session {
    /// Makes a published table: its columns are those that its owner signed.
    pub(crate) fn create_published(&mut self, create: &CreateTable, name: String, told: Told) -> Result<Outcome> {
        self.rights.to_reach_out()?;
        self.to_write()?;
        if create.query.is_some() {
            return Err(Error::NotSupported("CREATE TABLE ... AS for a published table".into()));
        }
        let done = Outcome::Done("CREATE TABLE");
        let view = self.view()?;
        if self.is_taken(&view, &name, create.if_not_exists)? {
            return Ok(done);
        }
        drop(view);
        let given = self.new_table(name, &create.columns, &create.constraints)?;
        let source = Source::of(&given.name, &told)?;
        let verifier = self.engine().verifier()?.clone();
        let (wanted, asker) = (Arc::new(()), verifier.clone());
        let mut asking = Asking::of(&self.planner.means.pool, &wanted);
        let defined = apart(move || asker.define(&source, &mut asking));
        let defined = self.engine().executor.run(&self.planner.interrupt, defined)?;
        drop(wanted);
        defined.columns.iter().try_for_each(|column| reserved(&column.name))?;
        let engine = Told { options: defined.source.options(&given.name, &told), ..told };
        let table = NewTable { columns: defined.columns.clone(), engine: Some(engine), ..NewTable::default() };
        let table = NewTable { name: given.name.clone(), ..table };
        check_given(&given, &table)?;
        self.change(|session, change| {
            // Somebody may have been faster, while the server was asked.
            if session.is_taken(&*change.lease, &table.name, create.if_not_exists)? {
                return Ok(Outcome::Done("CREATE TABLE"));
            }
            let relations = session.engine().relations.clone();
            relations.create_table(&mut *change.lease, &table).map_err(Error::Relation)?;
            verifier.remember(&mut change.lease, &defined)?;
            Ok(done)
        })
    }
}

/// Columns may be left out; where they are given they are the owner's, so that what `export --all` wrote can be run again, and
/// nothing is promised that nobody signed.
fn check_given(given: &NewTable, owned: &NewTable) -> Result<()> {
    let is_bare = given.primary_key.is_none()
        && given.uniques.is_empty()
        && given.checks.is_empty()
        && given.foreign_keys.is_empty();
    if !is_bare {
        return Err(Error::NotSupported(format!(
            "constraints of table {}, which is published: its rows are its owner's",
            given.name
        )));
    }
    if given.columns.is_empty() || given.columns == owned.columns {
        return Ok(());
    }
    let column = |column: &counterfoil_relation::NewColumn| format!("{} {}", column.name, types::name(&column.kind));
    let columns: Vec<String> = owned.columns.iter().map(column).collect();
    Err(Error::Sql(format!(
        "table {} has other columns, as its owner says: leave them out, or write ({})",
        given.name,
        columns.join(", ")
    )))
}

/// Forgets what was seen of a table that goes, unless another table of this database stands for the same one.
pub(crate) fn forget(engine: &Engine, change: &mut Change, table: &Table) -> Result<()> {
    let (Some(verifier), Ok(Some(source))) = (engine.verifier.get(), Source::of_table(table)) else { return Ok(()) };
    let is_same = |other: &Arc<Table>| {
        let of = Source::of_table(other).ok().flatten();
        other.id != table.id
            && of.is_some_and(|of| (of.owner, of.table) == (source.owner.clone(), source.table.clone()))
    };
    match super::all(engine, &*change.lease)?.iter().any(is_same) {
        true => Ok(()),
        false => verifier.forget(&mut change.lease, &source),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_seconds_or_spans() {
        for (text, seconds) in [("60", 60), ("0", 0), ("1 hour", 3600), ("2 days", 172_800), ("500 ms", 0)] {
            assert_eq!(age(text).map(|age| age.as_secs()), Ok(seconds), "{text}");
        }
        for text in ["", "-1", "soon", "1 fortnight", "99999999999"] {
            assert!(age(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_source_is_what_the_options_say() {
        let told = |options: &[(&str, &str)]| Told {
            name: super::super::ENGINE.into(),
            options: options.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        };
        let whole = told(&[("max_age", "1 hour"), ("owner", "o"), ("server", "dir:/x")]);
        let source = Source::of("t", &whole).unwrap();
        assert_eq!((&source.table[..], source.max_age), ("t", Some(Duration::from_secs(3600))));
        let options = source.options("t", &whole);
        assert_eq!(Source::of("t", &Told { options, ..whole.clone() }), Ok(source.clone()));
        // Under another name the owner's has to be said.
        let options = source.options("mine", &whole);
        assert_eq!(Source::of("mine", &Told { options, ..whole.clone() }), Ok(source));
        for missing in [&[("owner", "o")][..], &[("server", "dir:/x")], &[("server", ""), ("owner", "o")]] {
            assert!(Source::of("t", &told(missing)).is_err());
        }
    }
}
