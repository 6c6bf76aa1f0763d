//! A sink that keeps what it needs to know in memory, and fails or waits on request.
#![allow(dead_code, reason = "each test uses a part of it")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use counterfoil_influx::listener::{Access, Credentials, Sink, SinkError, Write, Written};
use counterfoil_influx::{Column, FieldType, Kind, Problem, Schema, Table, Values};

/// The columns of every measurement.
type Columns = HashMap<String, HashMap<String, Kind>>;

#[derive(Default)]
pub struct Database {
    columns: Columns,
    pub rows: u64,
    pub values: u64,
    /// Rows as text, where they are kept.
    pub kept: Vec<String>,
}

#[derive(Default)]
pub struct Memory {
    pub databases: Mutex<BTreeMap<String, Database>>,
    /// Calls of `write`, each a commit.
    pub commits: Mutex<u64>,
    /// How long a commit takes.
    pub delay: Mutex<Duration>,
    /// What the next writes end in.
    pub error: Mutex<Option<SinkError>>,
    /// Whether tokens and passwords are asked for: `secret` writes, `reader` reads.
    pub locked: bool,
    pub keep: bool,
}

impl Memory {
    pub fn with(name: &str) -> Arc<Memory> {
        let memory = Arc::new(Memory { keep: true, ..Memory::default() });
        memory.create_database(name).unwrap();
        memory
    }

    pub fn look<T>(&self, name: &str, at: impl FnOnce(&Database) -> T) -> T {
        at(self.databases.lock().unwrap().get(name).expect("a database"))
    }

    pub fn rows(&self, name: &str) -> u64 {
        self.look(name, |database| database.rows)
    }
}

struct Known(Columns);

impl Schema for Known {
    fn column(&self, measurement: &str, name: &str) -> Option<Kind> {
        self.0.get(measurement)?.get(name).copied()
    }

    fn takes(&self, measurement: &str) -> Result<(), Problem> {
        match measurement {
            "forbidden" => Err(Problem::NoTable(measurement.to_owned())),
            _ => Ok(()),
        }
    }
}

impl Database {
    fn take(&mut self, table: &Table, keep: bool, written: &mut Written) {
        let columns = self.columns.entry(table.name.clone()).or_default();
        for name in table.tags.names() {
            columns.entry(name.clone()).or_insert(Kind::Tag);
        }
        let mut conflicts = Vec::new();
        for column in &table.fields {
            let kind = Kind::Field(column.values.field_type());
            match *columns.entry(column.name.clone()).or_insert(kind) {
                Kind::Field(known) if Kind::Field(known) != kind => conflicts.push((column, known)),
                _ => (),
            }
        }
        for row in 0..table.rows() {
            match conflicts.iter().find(|(column, _)| column.place(row as u32).is_some()) {
                Some((column, known)) => written.rejects.push(table.reject(row, conflict(column, *known))),
                None => {
                    self.rows += 1;
                    self.values += table.fields.iter().filter(|field| field.place(row as u32).is_some()).count() as u64;
                    if keep {
                        self.kept.push(spelled(table, row));
                    }
                }
            }
        }
    }
}

fn conflict(column: &Column, known: FieldType) -> Problem {
    Problem::TypeConflict { field: column.name.clone(), line: column.values.field_type(), column: known }
}

fn spelled(table: &Table, row: usize) -> String {
    let mut text = table.name.clone();
    for (name, value) in table.tags.set(table.sets[row]) {
        text += &format!(",{}={value}", table.tags.names()[name]);
    }
    for column in &table.fields {
        let Some(place) = column.place(row as u32) else { continue };
        let value = match &column.values {
            Values::Float(values) => values[place].to_string(),
            Values::Integer(values) => format!("{}i", values[place]),
            Values::Unsigned(values) => format!("{}u", values[place]),
            Values::Boolean(values) => values[place].to_string(),
            Values::Text(values) => format!("{:?}", values.get(place).unwrap()),
            Values::Quality(values) => format!("q{}", values[place]),
            _ => unreachable!(),
        };
        text += &format!(" {}={value}", column.name);
    }
    format!("{text} @{}", table.times[row])
}

impl Sink for Memory {
    fn write(&self, group: Vec<Write>) -> Vec<Result<Written, SinkError>> {
        *self.commits.lock().unwrap() += 1;
        let delay = *self.delay.lock().unwrap();
        std::thread::sleep(delay);
        let one = |write: Write| {
            if let Some(error) = self.error.lock().unwrap().clone() {
                return Err(error);
            }
            let mut databases = self.databases.lock().unwrap();
            let database =
                databases.get_mut(&write.database).ok_or(SinkError::UnknownDatabase(write.database.clone()))?;
            let mut written = Written::default();
            write.batch.into_tables().iter().for_each(|table| database.take(table, self.keep, &mut written));
            Ok(written)
        };
        group.into_iter().map(one).collect()
    }

    fn schema(&self, database: &str) -> Result<Arc<dyn Schema>, SinkError> {
        match self.databases.lock().unwrap().get(database) {
            Some(database) => Ok(Arc::new(Known(database.columns.clone()))),
            None => Err(SinkError::UnknownDatabase(database.to_owned())),
        }
    }

    fn authorize(&self, credentials: &Credentials, access: &Access) -> Result<(), SinkError> {
        let secret = match credentials {
            _ if !self.locked => return Ok(()),
            Credentials::Token(token) => token.reveal(),
            Credentials::Password { user, password } if user == "me" => password.reveal(),
            _ => return Err(SinkError::Unauthenticated),
        };
        match (secret, access) {
            ("secret", _) | ("reader", Access::ListDatabases) => Ok(()),
            ("reader", _) => Err(SinkError::Forbidden("this user may read only: ask for the role writer".to_owned())),
            _ => Err(SinkError::Unauthenticated),
        }
    }

    fn databases(&self) -> Result<Vec<String>, SinkError> {
        Ok(self.databases.lock().unwrap().keys().cloned().collect())
    }

    fn create_database(&self, name: &str) -> Result<(), SinkError> {
        if name == "bad/name" {
            return Err(SinkError::Refused("a name has no slash".to_owned()));
        }
        self.databases.lock().unwrap().entry(name.to_owned()).or_default();
        Ok(())
    }

    fn drop_database(&self, name: &str) -> Result<(), SinkError> {
        self.databases.lock().unwrap().remove(name);
        Ok(())
    }

    fn health(&self) -> Result<(), SinkError> {
        self.error.lock().unwrap().clone().map_or(Ok(()), Err)
    }
}
