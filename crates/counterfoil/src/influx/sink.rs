//! What the listener writes to: the database, through one connection.
//!
//! 1. Batches that wait together are one transaction; whoever is told that a line is stored finds it there after a power cut.
//! 2. What is wrong with a line is answered to its client alone; what is wrong with the database to all.
//! 3. A device that failed, and an image that cannot be trusted, end the serving: whoever started it is told.

use std::sync::Arc;

use counterfoil_influx::Schema;
use counterfoil_influx::listener::{Access, Credentials, Sink, SinkError, Write, Written};
use parking_lot::Mutex;

use super::databases::{Databases, Entry, TABLE_OPTION};
use super::points::{self, Rows};
use super::schema::Known;
use crate::connection::Connection;
use crate::database::Database;
use crate::ending::Ending;
use crate::error::{Error, Kind, Result};
use crate::schema::quoted;
use crate::users::Role;

pub(super) struct DatabaseSink {
    database: Database,
    connection: Mutex<Connection>,
    may_create: bool,
    asks_who: bool,
    ending: Ending,
}

impl DatabaseSink {
    pub(super) fn new(database: Database, may_create: bool, asks_who: bool, ending: Ending) -> Result<Self> {
        let connection = Mutex::new(database.connect()?);
        Ok(Self { database, connection, may_create, asks_who, ending })
    }

    /// What a client is told of an error, and whoever started us where it is the end.
    fn told(&self, error: &Error) -> SinkError {
        let text = error.to_string();
        match error.kind() {
            Kind::Full => SinkError::Full(text),
            Kind::Locked | Kind::Misuse | Kind::Interrupted | Kind::SnapshotTooOld => SinkError::Unavailable(text),
            Kind::Input | Kind::Constraint | Kind::Sql | Kind::NotSupported | Kind::NotFound => {
                SinkError::Refused(text)
            }
            _ => {
                self.ending.failed(error.clone());
                SinkError::Failed("the database cannot be written now: see what its server says".into())
            }
        }
    }

    fn databases_now(&self) -> Result<Databases> {
        Databases::of(&self.database.snapshot()?)
    }

    /// The database of this name, made if it is not there.
    fn made(&self, name: &str) -> Result<Entry> {
        let present = self.databases_now()?;
        if let Some(entry) = present.find(name) {
            return Ok(entry.clone());
        }
        // Said before the writer is taken, and asked again when nobody else can change it.
        present.get_or_plan(name)?;
        self.database.change(|writer| {
            let mut all = Databases::of(writer)?;
            let entry = all.get_or_plan(name)?;
            if all.find(name).is_none() {
                all.add(entry.clone());
                all.store(writer)?;
            }
            Ok(entry)
        })
    }

    fn write_all(&self, connection: &mut Connection, group: Vec<Write>) -> Vec<Result<Written, SinkError>> {
        let mut tables = Vec::new();
        let mut outcomes = Vec::new();
        for (write, Write { database, batch }) in group.into_iter().enumerate() {
            let entry = self.made(&database);
            outcomes.push(entry.as_ref().map(|_| Written::default()).map_err(|error| self.told(error)));
            let Ok(entry) = entry else { continue };
            for lines in batch.into_tables() {
                let name = entry.table(&lines.name);
                tables.push((write, name, entry.name.clone(), Rows::new(lines)));
            }
        }
        let points = tables.iter_mut().map(|(_, name, database, rows)| {
            rows.points(
                std::mem::take(name),
                self.may_create,
                vec![(TABLE_OPTION.to_owned(), std::mem::take(database))],
            )
        });
        let points: Vec<_> = points.collect();
        let appended = connection.append(&points);
        drop(points);
        for (write, outcome) in outcomes.iter_mut().enumerate() {
            match (&appended, outcome) {
                (Ok(appended), Ok(written)) => {
                    let mine = tables.iter().zip(appended).filter(|((of, ..), _)| *of == write);
                    written.rejects = points::rejects(mine.map(|((.., rows), appended)| (rows, appended)));
                }
                (Err(error), outcome @ Ok(_)) => *outcome = Err(self.told(error)),
                (_, Err(_)) => {}
            }
        }
        outcomes
    }

    fn drop_now(&self, name: &str) -> Result<()> {
        let mut connection = self.connection.lock();
        if self.databases_now()?.find(name).is_none() {
            return Ok(());
        }
        let mut transaction = connection.transaction()?;
        let is_of_it = |table: &&Arc<counterfoil_sql::relation::Table>| {
            let options = table.engine.as_ref().map(|engine| engine.options.as_slice()).unwrap_or_default();
            options.iter().any(|(option, value)| option == TABLE_OPTION && value == name)
        };
        let tables = self.database.tables(&transaction.view()?)?;
        for table in tables.iter().filter(is_of_it) {
            transaction.execute(&format!("DROP TABLE {}", quoted(&table.name)), &[])?;
        }
        transaction.commit()?;
        // A cut before this leaves an empty database, which can be dropped again.
        self.database.change(|writer| {
            let mut all = Databases::of(writer)?;
            all.remove(name);
            all.store(writer)
        })
    }

    fn role(&self, credentials: &Credentials) -> Result<Option<Role>> {
        let users = self.database.users();
        match credentials {
            Credentials::None => Ok(None),
            Credentials::Token(token) => users.by_token(token.reveal().as_bytes()),
            Credentials::Password { user, password } => users.by_password(user, password.reveal().as_bytes()),
        }
    }
}

impl Sink for DatabaseSink {
    fn write(&self, group: Vec<Write>) -> Vec<Result<Written, SinkError>> {
        let mut connection = self.connection.lock();
        self.write_all(&mut connection, group)
    }

    fn schema(&self, database: &str) -> Result<Arc<dyn Schema>, SinkError> {
        let entry =
            self.databases_now().and_then(|all| all.get_or_plan(database)).map_err(|error| self.told(&error))?;
        Ok(Arc::new(Known::newest(self.database.clone(), entry, self.may_create)))
    }

    fn authorize(&self, credentials: &Credentials, access: &Access) -> Result<(), SinkError> {
        if !self.asks_who {
            return Ok(());
        }
        let role = self.role(credentials).map_err(|error| self.told(&error))?;
        match (role, access) {
            (None, _) => Err(SinkError::Unauthenticated),
            (Some(Role::Writer), _) | (Some(Role::Reader), Access::ListDatabases) => Ok(()),
            (Some(Role::Reader), _) => {
                Err(SinkError::Forbidden("this user may only read: ask for one with the role writer".to_owned()))
            }
        }
    }

    fn databases(&self) -> Result<Vec<String>, SinkError> {
        let all = self.databases_now().map_err(|error| self.told(&error))?;
        Ok(all.names().map(str::to_owned).collect())
    }

    fn create_database(&self, name: &str) -> Result<(), SinkError> {
        self.made(name).map(drop).map_err(|error| self.told(&error))
    }

    fn drop_database(&self, name: &str) -> Result<(), SinkError> {
        self.drop_now(name).map_err(|error| self.told(&error))
    }

    fn health(&self) -> Result<(), SinkError> {
        match self.ending.is_over() {
            true => Err(SinkError::Unavailable("the server ends".into())),
            false => Ok(()),
        }
    }
}
