//! What answers for published tables: it asks their servers, checks what they say, and remembers what was seen.

use std::sync::{Arc, Weak};

use counterfoil_log::{View, Writer, record_space};
use counterfoil_proof::{Definition, Owner, Type};
use counterfoil_reader::{self as reader, Opened, Terms};
use counterfoil_relation::{NewColumn, Table, Type as ColumnType};
use counterfoil_sql::{self as sql, Asking, Defined, Source, Verdict, VerifiedTable};

use super::asked::Asked;
use super::bounded::{Bounded, Bounds};
use super::seen::{self, Kept, NAME_BYTES_MAX, Seen};
use super::server::Server;
use crate::asking;
use crate::convert::to_sql;
use crate::database::{Database, Inner};
use crate::error::{Error, Kind, Result};

/// Memory for what comes from a server, and for what it becomes until its rows are columns: so many times its bytes.
pub(super) const TIMES: usize = 4;

/// What answers for the published tables of an open database.
pub(crate) struct Verifying(Arc<Shared>);

pub(super) struct Shared {
    inner: Weak<Inner>,
    pub seen: Seen,
}

impl Verifying {
    pub fn new(inner: Weak<Inner>) -> Self {
        Self(Arc::new(Shared { inner, seen: Seen::default() }))
    }
}

impl Shared {
    pub fn database(&self) -> Result<Database> {
        let closed = || Error::new(Kind::Misuse, "the database is closed");
        Ok(Database { inner: self.inner.upgrade().ok_or_else(closed)? })
    }
}

/// A source that was understood.
#[derive(Clone)]
pub(super) struct Place {
    pub server: Server,
    pub owner: Owner,
    pub table: String,
    pub max_age: u64,
    /// The name of the record of what was seen.
    pub record: Vec<u8>,
}

impl Place {
    pub fn of(source: &Source) -> Result<Self> {
        let server = Server::parse(&source.server)?;
        let wrong = |error: counterfoil_proof::NoOwner| Error::new(Kind::Sql, error.to_string());
        let owner: Owner = source.owner.parse().map_err(wrong)?;
        let table = source.table.clone();
        if table.len() > NAME_BYTES_MAX {
            let long = format!("a published table whose name is longer than {NAME_BYTES_MAX} bytes");
            return Err(Error::new(Kind::NotSupported, long));
        }
        let max_age = source.max_age.map_or(u64::MAX, asking::milliseconds);
        let record = seen::record_name(&owner, &table);
        Ok(Self { server, owner, table, max_age, record })
    }

    pub fn terms(&self) -> Result<Terms> {
        let clock_error = asking::milliseconds(asking::CLOCK_ERROR);
        Ok(Terms { owner: self.owner, now: super::now()?, clock_error, max_age: self.max_age, hints: true })
    }

    /// Opens it, and says what is to be kept of it from now on.
    pub fn open(
        &self,
        before: Option<&Kept>,
        asking: &Asking,
    ) -> Result<(Opened<Bounded>, Arc<Bounds>, Kept), Failure> {
        let bounds = Arc::new(Bounds::default());
        bounds.begin(asking.room() / TIMES, asking.wanted());
        let fetch = Bounded { fetch: self.server.fetch()?, bounds: bounds.clone() };
        let mut memory = before.map(|before| before.memory.clone());
        let opened = Opened::at(fetch, &self.table, &self.terms()?, &mut memory);
        let opened = opened.map_err(|error| Failure::told(error, &bounds))?;
        asking.take(bounds.brought())?;
        let nothing = || Error::new(Kind::Bug, "a table that was seen and is not remembered");
        let definition = opened.definition().clone();
        let kept = Kept { memory: memory.ok_or_else(nothing)?, definition };
        Ok((opened, bounds, kept))
    }
}

/// Why a server gave no rows.
pub(super) enum Failure {
    Reader(reader::Error),
    Ours(sql::Error),
}

impl Failure {
    /// A reader's error; where there was no room for what a server had to say, that is the reason.
    pub fn told(error: reader::Error, bounds: &Bounds) -> Self {
        match bounds.is_exhausted() {
            false => Self::Reader(error),
            true => Self::Ours(sql::Error::Memory(
                "the answer of a server needs more working memory than the query may take: let it look at fewer rows, or \
                 give it more (--ram)"
                    .into(),
            )),
        }
    }

    /// As the SQL floor says it. The table was there when it was made: a server that has not got it now holds it back, and one
    /// that has another one there says something else than was asked.
    pub fn of_query(self, server: &Server) -> sql::Error {
        match self {
            Self::Ours(error) => error,
            Self::Reader(error @ reader::Error::NoTable(_)) => {
                told(Error::new(Kind::Network, error.to_string()).at(server).advise("try again, or ask another server"))
            }
            Self::Reader(error @ reader::Error::Sql(_)) => {
                let other = Error::new(Kind::NotVerified, error.to_string()).at(server);
                told(other.advise("do not use what it says; ask another server"))
            }
            Self::Reader(error) => told(asking::told(error, &server.to_string())),
        }
    }
}

impl From<reader::Error> for Failure {
    fn from(error: reader::Error) -> Self {
        Self::Reader(error)
    }
}

impl From<sql::Error> for Failure {
    fn from(error: sql::Error) -> Self {
        Self::Ours(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(told(error))
    }
}

/// An error as the SQL floor says it.
pub(super) fn told(error: Error) -> sql::Error {
    to_sql(error)
}

impl sql::Verifier for Verifying {
    fn define(&self, source: &Source, asking: &mut Asking) -> sql::Result<Defined> {
        let place = Place::of(source).map_err(told)?;
        let database = self.0.database().map_err(told)?;
        let before = self.0.seen.newest(&database, &place.record).map_err(told)?;
        drop(database);
        let opened = place.open(before.as_ref(), asking);
        let (_, _, kept) = opened.map_err(|failure| match failure {
            Failure::Reader(error) => told(asking::told(error, &place.server.to_string())),
            Failure::Ours(error) => error,
        })?;
        let columns = columns(&kept.definition).map_err(told)?;
        let source = Source { server: place.server.to_string(), ..source.clone() };
        let seen = kept.to_bytes();
        self.0.seen.note(&place.record, kept);
        Ok(Defined { source, columns, seen })
    }

    fn remember(&self, writer: &mut Writer, defined: &Defined) -> sql::Result<()> {
        let place = Place::of(&defined.source).map_err(told)?;
        let kept = Kept::from_bytes(&defined.seen).map_err(told)?;
        seen::write(writer, &place.record, &kept).map_err(told)
    }

    fn forget(&self, writer: &mut Writer, source: &Source) -> sql::Result<()> {
        let place = Place::of(source).map_err(told)?;
        self.0.seen.forget(&place.record);
        match writer.record(record_space::SETTING, &place.record) {
            Some(_) => Ok(writer.delete_record(record_space::SETTING, &place.record)?),
            None => Ok(()),
        }
    }

    fn table(&self, source: &Source, table: &Arc<Table>) -> sql::Result<Arc<dyn VerifiedTable>> {
        let place = Place::of(source).map_err(told)?;
        let database = self.0.database().map_err(told)?;
        let kept = self.0.seen.newest(&database, &place.record).map_err(told)?;
        let definition = kept.map(|kept| kept.definition).filter(|definition| is_of(definition, table));
        Ok(Arc::new(Asked::new(self.0.clone(), place, table.clone(), definition)))
    }

    fn keep_seen(&self) -> Option<String> {
        if !self.0.seen.waits() {
            return None;
        }
        self.0.seen.write_waiting(&self.0.database().ok()?)
    }

    fn told(&self, verdict: &Verdict) -> String {
        let Verdict { as_of, age, signatures, period } = *verdict;
        reader::Verdict { as_of, age, signatures, period }.to_string()
    }
}

/// The columns of a table that stands for a published one.
fn columns(definition: &Definition) -> Result<Vec<NewColumn>> {
    let column = |column: &counterfoil_proof::Column| Ok(NewColumn::new(&column.name, kind(column.kind)?));
    definition.columns.iter().map(column).collect()
}

/// Whether a table stands for this.
pub(super) fn is_of(definition: &Definition, table: &Table) -> bool {
    let is_same = |(column, own): (&counterfoil_proof::Column, &counterfoil_relation::Column)| {
        column.name == own.name && kind(column.kind).is_ok_and(|kind| kind == own.kind)
    };
    definition.columns.len() == table.columns.len() && definition.columns.iter().zip(&table.columns).all(is_same)
}

fn kind(published: Type) -> Result<ColumnType> {
    Ok(match published {
        Type::Boolean => ColumnType::Boolean,
        Type::SmallInt => ColumnType::SmallInt,
        Type::Integer => ColumnType::Integer,
        Type::BigInt => ColumnType::BigInt,
        Type::Real => ColumnType::Real,
        Type::Double => ColumnType::Double,
        Type::Numeric(precision, scale) => ColumnType::Numeric { precision, scale },
        Type::Text => ColumnType::Text,
        Type::Bytea => ColumnType::Bytea,
        Type::Date => ColumnType::Date,
        Type::Time => ColumnType::Time,
        Type::Timestamp => ColumnType::Timestamp { nanoseconds: false },
        Type::TimestampNanos => ColumnType::Timestamp { nanoseconds: true },
        Type::TimestampTz => ColumnType::TimestampTz,
        Type::Uuid => ColumnType::Uuid,
        _ => return Err(Error::new(Kind::NotSupported, "a column of a type of a later version")),
    })
}
