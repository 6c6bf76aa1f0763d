//! A store in PostgreSQL, or in what speaks its protocol and SQL, for mirrors that outgrow one machine.
//!
//! ```text
//! counterfoil_names      owner, name      -> number of a table
//! counterfoil_kept       table            -> Kept
//! counterfoil_summaries  table, period    -> a summary as served
//! counterfoil_entries    table, record    -> an entry's bytes
//! counterfoil_orders     table, order, position -> record
//! ```
//! Ordinary tables. Keys are BYTEA, numbers in them 8 bytes, most significant first: they sort as bytes do whatever the
//! database's collation is, and none of ours is too large for a BIGINT. An answer reads in one REPEATABLE READ transaction;
//! an update is one transaction, its rows come by binary COPY, and it touches the rows of its records and no others.

use std::collections::HashMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ::postgres::binary_copy::BinaryCopyInWriter;
use ::postgres::error::SqlState;
use ::postgres::types::{ToSql, Type};
use ::postgres::{Client, Config, NoTls};
use counterfoil_tls::postgres::{Address, Encrypted, Unencrypted};
use parking_lot::Mutex;

use crate::places::places;
use crate::store::{Decide, Kept, Place, Reading, Refused, Store, StoreChange, StoreError, TableName, Touched, Visit};

/// Connections that wait for somebody.
const IDLE_MAX: usize = 16;
/// Rows that are asked for at first, and at most, when an order is walked.
const ROWS_FIRST: i64 = 4;
const ROWS_MAX: i64 = 256;
/// Records that are looked for at once.
const RECORDS_AT_ONCE: usize = 4096;
/// How often an update is tried that meets others, and the pause behind the first time, twice as long each time.
const TRIES_MAX: u32 = 6;
const PAUSE_FIRST: Duration = Duration::from_millis(10);

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS counterfoil_names (owner BYTEA, name BYTEA, tab BYTEA NOT NULL, PRIMARY KEY (owner, name));
CREATE TABLE IF NOT EXISTS counterfoil_kept (tab BYTEA PRIMARY KEY, kept BYTEA NOT NULL);
CREATE TABLE IF NOT EXISTS counterfoil_summaries (tab BYTEA, period BYTEA, summary BYTEA NOT NULL, PRIMARY KEY (tab, period));
CREATE TABLE IF NOT EXISTS counterfoil_entries (tab BYTEA, rid BYTEA, entry BYTEA NOT NULL, PRIMARY KEY (tab, rid));
CREATE TABLE IF NOT EXISTS counterfoil_orders (tab BYTEA, ord BYTEA, place BYTEA, rid BYTEA NOT NULL, PRIMARY KEY (tab, ord, place));
";

/// A store in PostgreSQL.
pub struct Postgres {
    config: Config,
    /// How connections are encrypted, if they are.
    encrypted: Option<Encrypted>,
    idle: Arc<Mutex<Vec<Client>>>,
}

fn failed(error: postgres::Error) -> StoreError {
    // What the server says, and nothing of the statement's values.
    match error.as_db_error() {
        Some(error)
            if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(error.code()) =>
        {
            StoreError::Overtaken
        }
        Some(error) => StoreError::Failed(format!("PostgreSQL: {} ({})", error.message(), error.code().code())),
        None => StoreError::Failed(
            Unencrypted::of(&error)
                .map_or_else(|| "PostgreSQL: the connection failed".into(), |unencrypted| unencrypted.to_string()),
        ),
    }
}

impl Postgres {
    /// Connects with a `postgres://` text, and makes the tables that are not there. With `sslmode=require` connections are encrypted and
    /// the server's certificate is checked, by `sslrootcert=FILE` or whom this machine trusts; without, the database is on this machine, or
    /// the way to it is protected otherwise.
    ///
    /// # Errors
    /// [`StoreError::Failed`].
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let wrong = |what| StoreError::Failed(format!("the store's address: {what}"));
        let Address { config, encrypted } = Address::parse(url).map_err(wrong)?;
        let mut config = Config::from(config);
        config.application_name("counterfoil mirror").connect_timeout(Duration::from_secs(5));
        let store = Self { config, encrypted, idle: Arc::default() };
        let client = store.client(TABLES)?;
        store.idle.lock().push(client);
        Ok(store)
    }

    /// A connection in which `first` was done. One that waited may be dead by now, and says so then.
    fn client(&self, first: &str) -> Result<Client, StoreError> {
        loop {
            let Some(mut client) = self.idle.lock().pop() else { break };
            if client.batch_execute(first).is_ok() {
                return Ok(client);
            }
        }
        let connected = match &self.encrypted {
            Some(encrypted) => self.config.connect(encrypted.clone()),
            None => self.config.connect(NoTls),
        };
        let mut client = connected.map_err(failed)?;
        let settings = "SET statement_timeout = '60s'; SET lock_timeout = '30s'";
        client.batch_execute(settings).map_err(failed)?;
        client.batch_execute(first).map_err(failed)?;
        Ok(client)
    }

    fn update_once(
        &self,
        names: &[TableName],
        tables_max: u64,
        decide: &Decide<'_>,
    ) -> Result<Result<Touched, Refused>, StoreError> {
        let mut client = self.client("")?;
        let updated = Writing::begin(&mut client)?.update(names, tables_max, decide);
        // A connection that failed in the middle is closed: nobody knows in what it is.
        if updated.is_ok() {
            self.idle.lock().push(client);
        }
        updated
    }
}

const READ: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";

fn bytes(number: u64) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

impl Store for Postgres {
    fn read(&self, name: &TableName) -> Result<Option<Box<dyn Reading>>, StoreError> {
        let mut reader = Reader { client: Some(self.client(READ)?), idle: self.idle.clone() };
        let Some((table, kept)) = reader.find(name)? else { return Ok(None) };
        Ok(Some(Box::new(Snapshot { reader, table, kept })))
    }

    fn update(
        &self,
        names: &[TableName],
        tables_max: u64,
        decide: &Decide<'_>,
    ) -> Result<Result<Touched, Refused>, StoreError> {
        // Nothing of what was overtaken is there: it is decided anew, by what another mirror beside the same database has written.
        for tried in 0..TRIES_MAX - 1 {
            match self.update_once(names, tables_max, decide) {
                Err(StoreError::Overtaken) => thread::sleep(PAUSE_FIRST * (1 << tried)),
                updated => return updated,
            }
        }
        self.update_once(names, tables_max, decide)
    }
}

/// One write transaction, taken back unless it is committed.
struct Writing<'a>(postgres::Transaction<'a>);

impl<'a> Writing<'a> {
    fn begin(client: &'a mut Client) -> Result<Self, StoreError> {
        let transaction = client.build_transaction().isolation_level(postgres::IsolationLevel::RepeatableRead);
        Ok(Self(transaction.start().map_err(failed)?))
    }

    fn update(
        mut self,
        names: &[TableName],
        tables_max: u64,
        decide: &Decide<'_>,
    ) -> Result<Result<Touched, Refused>, StoreError> {
        let known = self.known(names)?;
        let kept = known.as_ref().map(|table| self.kept(table)).transpose()?;
        let change = match decide(kept.as_ref()) {
            Ok(Some(change)) => change,
            Ok(None) => return Ok(Ok(Touched::Places(Vec::new()))),
            Err(refused) => return Ok(Err(refused)),
        };
        let Some(table) = known.map_or_else(|| self.new_table(tables_max), |table| Ok(Some(table)))? else {
            return Ok(Err(Refused::Forbidden("this mirror keeps as many tables as it may".into())));
        };
        let before = self.apply(&table, names, change)?;
        self.0.commit().map_err(failed)?;
        Ok(Ok(Touched::by(change, before)))
    }

    fn known(&mut self, names: &[TableName]) -> Result<Option<Vec<u8>>, StoreError> {
        for name in names {
            let owner = &name.owner[..];
            let found = self
                .0
                .query_opt(
                    "SELECT tab FROM counterfoil_names WHERE owner = $1 AND name = $2",
                    &[&owner, &name.name.as_bytes()],
                )
                .map_err(failed)?;
            if let Some(row) = found {
                return Ok(Some(row.get(0)));
            }
        }
        Ok(None)
    }

    /// What is kept of a table, which another mirror beside the same database cannot change before this transaction ends.
    fn kept(&mut self, table: &Vec<u8>) -> Result<Kept, StoreError> {
        let row = self.0.query_opt("SELECT kept FROM counterfoil_kept WHERE tab = $1 FOR UPDATE", &[table]);
        let row = row.map_err(failed)?.ok_or(StoreError::Damaged("what is kept of a table"))?;
        Kept::from_bytes(row.get(0))
    }

    /// The next number. Of two mirrors that take the same one, the second to commit fails.
    fn new_table(&mut self, tables_max: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let row = self.0.query_one("SELECT count(*), max(encode(tab, 'hex')) FROM counterfoil_kept", &[]);
        let row = row.map_err(failed)?;
        if row.get::<_, i64>(0) as u64 >= tables_max {
            return Ok(None);
        }
        let last = row.get::<_, Option<&str>>(1).map_or(Ok(0), |text| u64::from_str_radix(text, 16));
        Ok(Some(bytes(last.map_err(|_| StoreError::Damaged("a number in PostgreSQL"))? + 1)))
    }

    fn execute(&mut self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<(), StoreError> {
        self.0.execute(statement, values).map(drop).map_err(failed)
    }

    /// Gives the places where entries were that are others now.
    fn apply(&mut self, table: &Vec<u8>, names: &[TableName], change: &StoreChange) -> Result<Vec<Place>, StoreError> {
        for name in names {
            let (owner, name) = (&name.owner[..], name.name.as_bytes());
            self.execute(
                "INSERT INTO counterfoil_names VALUES ($1, $2, $3) ON CONFLICT (owner, name) DO UPDATE SET tab = $3",
                &[&owner, &name, table],
            )?;
        }
        self.execute(
            "INSERT INTO counterfoil_kept VALUES ($1, $2) ON CONFLICT (tab) DO UPDATE SET kept = $2",
            &[table, &change.kept.to_bytes()],
        )?;
        let mut left = Vec::new();
        if change.is_anew {
            for part in ["summaries", "entries", "orders"] {
                self.execute(&format!("DELETE FROM counterfoil_{part} WHERE tab = $1"), &[table])?;
            }
        } else {
            left = self.remove(table, change)?;
        }
        let summaries =
            change.summaries.iter().map(|(period, summary)| vec![table.clone(), bytes(*period), summary.clone()]);
        self.copy("summaries (tab, period, summary)", 3, summaries)?;
        let entries = change.put.iter().map(|(rid, entry, _)| vec![table.clone(), bytes(*rid), entry.clone()]);
        self.copy("entries (tab, rid, entry)", 3, entries)?;
        let orders = change.put.iter().flat_map(|(rid, _, places)| places.iter().map(move |place| (rid, place)));
        let orders = orders.map(|(rid, (order, place))| vec![table.clone(), vec![*order], place.clone(), bytes(*rid)]);
        self.copy("orders (tab, ord, place, rid)", 4, orders)?;
        Ok(left)
    }

    /// Takes all entries of an update from their places, before any takes one: a row may move to where another one was.
    fn remove(&mut self, table: &Vec<u8>, change: &StoreChange) -> Result<Vec<Place>, StoreError> {
        let rids = change.gone.iter().chain(change.put.iter().map(|(rid, _, _)| rid));
        let rids: Vec<Vec<u8>> = rids.copied().map(bytes).collect();
        let mut left = Vec::new();
        for rids in rids.chunks(RECORDS_AT_ONCE) {
            let removed = self
                .0
                .query(
                    "DELETE FROM counterfoil_entries WHERE tab = $1 AND rid = ANY($2) RETURNING entry",
                    &[table, &rids],
                )
                .map_err(failed)?;
            let mut gone: HashMap<u8, Vec<Vec<u8>>> = HashMap::new();
            for row in removed {
                let at: Vec<Place> = places(row.get(0), &change.definition)?.1;
                at.iter().for_each(|(order, place)| gone.entry(*order).or_default().push(place.clone()));
                left.extend(at);
            }
            for (order, places) in gone {
                self.execute(
                    "DELETE FROM counterfoil_orders WHERE tab = $1 AND ord = $2 AND place = ANY($3)",
                    &[table, &vec![order], &places],
                )?;
            }
        }
        Ok(left)
    }

    fn copy(&mut self, into: &str, columns: usize, rows: impl Iterator<Item = Vec<Vec<u8>>>) -> Result<(), StoreError> {
        let mut rows = rows.peekable();
        if rows.peek().is_none() {
            return Ok(());
        }
        let writer = self.0.copy_in(&format!("COPY counterfoil_{into} FROM STDIN BINARY")).map_err(failed)?;
        let mut writer = BinaryCopyInWriter::new(writer, &vec![Type::BYTEA; columns]);
        for row in rows {
            writer.write_raw(row.iter().map(|value| value as &dyn ToSql)).map_err(failed)?;
        }
        writer.finish().map(drop).map_err(failed)
    }
}

/// A connection in a read transaction. Dropped, it waits for the next one.
struct Reader {
    client: Option<Client>,
    idle: Arc<Mutex<Vec<Client>>>,
}

impl Reader {
    fn find(&mut self, name: &TableName) -> Result<Option<(Vec<u8>, Kept)>, StoreError> {
        let owner = &name.owner[..];
        let found = self.query(
            "SELECT k.tab, k.kept FROM counterfoil_names n JOIN counterfoil_kept k ON k.tab = n.tab
             WHERE n.owner = $1 AND n.name = $2",
            &[&owner, &name.name.as_bytes()],
        )?;
        found.first().map(|row| Ok((row.get(0), Kept::from_bytes(row.get(1))?))).transpose()
    }

    fn query(&mut self, statement: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<postgres::Row>, StoreError> {
        let client = self.client.as_mut().ok_or(StoreError::Damaged("a snapshot"))?;
        client.query(statement, values).map_err(failed)
    }
}

/// A table within one read transaction.
struct Snapshot {
    reader: Reader,
    table: Vec<u8>,
    kept: Kept,
}

impl Snapshot {
    /// Walks an order in parts, each some times larger than the one before: most walks need a neighbour or two.
    fn walk(&mut self, order: u8, at: &[u8], upward: bool, visit: &mut Visit<'_>) -> Result<(), StoreError> {
        let statement = |sign: &str, direction: &str| {
            format!(
                "SELECT o.place, e.entry FROM counterfoil_orders o
                 LEFT JOIN counterfoil_entries e ON e.tab = o.tab AND e.rid = o.rid
                 WHERE o.tab = $1 AND o.ord = $2 AND o.place {sign} $3 ORDER BY o.place {direction} LIMIT $4"
            )
        };
        let (first, next) = if upward { (">=", ">") } else { ("<", "<") };
        let direction = if upward { "ASC" } else { "DESC" };
        let (table, order) = (self.table.clone(), vec![order]);
        let (mut at, mut sign, mut rows_most) = (at.to_vec(), first, ROWS_FIRST);
        loop {
            let rows = self.reader.query(&statement(sign, direction), &[&table, &order, &at, &rows_most])?;
            let is_last = (rows.len() as i64) < rows_most;
            for row in rows {
                let entry: Option<&[u8]> = row.get(1);
                at = row.get(0);
                if !visit(&at, entry.ok_or(StoreError::Damaged("an entry that its order names"))?)? {
                    return Ok(());
                }
            }
            if is_last {
                return Ok(());
            }
            (sign, rows_most) = (next, (rows_most * 4).min(ROWS_MAX));
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        let Some(mut client) = self.client.take() else { return };
        if client.batch_execute("ROLLBACK").is_ok() {
            let mut idle = self.idle.lock();
            if idle.len() < IDLE_MAX {
                idle.push(client);
            }
        }
    }
}

impl Reading for Snapshot {
    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn summary(&mut self, period: u64) -> Result<Option<Vec<u8>>, StoreError> {
        let (table, period) = (self.table.clone(), bytes(period));
        let statement = "SELECT summary FROM counterfoil_summaries WHERE tab = $1 AND period = $2";
        Ok(self.reader.query(statement, &[&table, &period])?.first().map(|row| row.get(0)))
    }

    fn upward(&mut self, order: u8, from: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.walk(order, from, true, visit)
    }

    fn downward(&mut self, order: u8, before: &[u8], visit: &mut Visit<'_>) -> Result<(), StoreError> {
        self.walk(order, before, false, visit)
    }
}
