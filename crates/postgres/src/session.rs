//! A client that was let in: its messages, one after another.
//!
//! 1. Whatever is wrong with a statement is told, and the connection goes on; a message that cannot be understood ends it.
//! 2. In a group of messages up to Sync the first error drops the rest.
//! 3. Several statements in one Query are one transaction, unless one of them says where transactions begin and end.
//! 4. Statements, portals and their bytes are bounded.

use std::collections::HashMap;

use counterfoil::{Connection, Ending, TransactionState, statements};

use crate::budget::Share;
use crate::cancel::Cancel;
use crate::copy::{CopyEnd, CopyIn};
use crate::limits::Limits;
use crate::parameter;
use crate::pass::Pass;
use crate::portal::{Portal, Prepared, Ran};
use crate::request::{Named, Request};
use crate::rows::{self, Format};
use crate::sqlstate::{Refusal, Stopped, notice};
use crate::wire::{Came, Ended, Stream, Wire, put_text};

/// Settings whose changes clients are told of: of those that can change.
const REPORTED: [&str; 2] = ["application_name", "default_transaction_read_only"];
/// Statements that a client may have prepared at a time.
const PREPARED_MAX: usize = 1000;
/// Portals that a client may have at a time: each may hold rows that were read ahead.
const PORTALS_MAX: usize = 100;
/// Bytes of the names, texts, types and values of all of them.
const HELD_BYTES_MAX: usize = 64 << 20;

/// What a client is let in with.
pub struct LetIn {
    /// A connection of its own.
    pub connection: Connection,
    /// Why it was.
    pub pass: Pass,
    /// What others end its statements with.
    pub cancel: Cancel,
    /// What it is told first.
    pub notices: Vec<String>,
}

/// A client that was let in.
pub struct Session<S> {
    wire: Wire<S>,
    connection: Connection,
    pass: Pass,
    cancel: Cancel,
    limits: Limits,
    ending: Ending,
    notices: Vec<String>,
    /// Settings as the client was told them last.
    reported: [Option<String>; REPORTED.len()],
    prepared: HashMap<String, Prepared>,
    portals: HashMap<String, Portal>,
    /// Room for them.
    held: Share,
    /// Whether messages are dropped up to the next Sync.
    is_skipping: bool,
}

impl<S: Stream> Session<S> {
    /// A client that says what it wants on this wire.
    pub fn new(wire: Wire<S>, guest: LetIn, limits: Limits, ending: Ending) -> Self {
        let LetIn { mut connection, pass, cancel, notices } = guest;
        connection.name_as_postgresql();
        let (prepared, portals, held) = (HashMap::new(), HashMap::new(), Share::of(wire.budget()));
        let (reported, is_skipping) = (Default::default(), false);
        Session {
            wire,
            connection,
            pass,
            cancel,
            limits,
            ending,
            notices,
            reported,
            prepared,
            portals,
            held,
            is_skipping,
        }
    }

    /// Serves it until it says good bye, is gone, or cannot be understood.
    pub fn serve(mut self) {
        let ended = self.begin().and_then(|()| self.each());
        if let Err(Ended::Malformed(what)) = ended {
            let _ = Refusal::malformed(what).send(&mut self.wire);
        }
        // Whoever says good bye may still read what it asked for before.
        self.wire.close();
    }

    fn begin(&mut self) -> Result<(), Ended> {
        let notices = std::mem::take(&mut self.notices);
        notices.iter().try_for_each(|text| notice(&mut self.wire, text))?;
        self.ready()
    }

    fn each(&mut self) -> Result<(), Ended> {
        loop {
            let kind = match self.wire.next(self.limits.message_bytes_max)? {
                Came::Whole(kind) => kind,
                Came::Dropped(kind) => {
                    self.dropped(kind)?;
                    continue;
                }
            };
            let body = self.wire.take_body();
            let request = Request::read(kind, &body).map_err(|malformed| Ended::Malformed(malformed.0))?;
            if request == Request::Terminate {
                return Ok(());
            }
            if !self.may_go_on()? {
                return Ok(());
            }
            self.answer(request)?;
            self.wire.give_back(body);
        }
    }

    /// Whether the client is still one who may come in; else, or where that cannot be told, it is told so.
    fn may_go_on(&mut self) -> Result<bool, Ended> {
        let refusal = match self.pass.holds() {
            Ok(true) => return Ok(true),
            Ok(false) => Refusal::fatal("28000", "the user that came in is none any more"),
            Err(error) => error.into(),
        };
        self.told(Err(refusal.into()))?;
        Ok(false)
    }

    /// A message for which there was no room: refused as if it had been understood.
    fn dropped(&mut self, kind: u8) -> Result<(), Ended> {
        // What is left of rows that were refused is not looked at, and neither is what comes before Sync.
        if kind == b'd' || self.is_skipping {
            return Ok(());
        }
        self.is_skipping = kind != b'Q';
        self.told(Err(no_room().into()))?;
        if self.is_skipping { Ok(()) } else { self.ready() }
    }

    fn answer(&mut self, request: Request<'_>) -> Result<(), Ended> {
        let done = match request {
            Request::Sync => {
                self.is_skipping = false;
                return self.ready();
            }
            Request::Flush => return self.wire.flush(),
            _ if self.is_skipping => return Ok(()),
            Request::Query(text) => {
                let done = self.query(text);
                self.told(done)?;
                return self.ready();
            }
            Request::Parse { name, sql, types } => self.parse(name, sql, types),
            Request::Bind { portal, statement, formats, values, wanted } => {
                self.bind(portal, statement, &formats, &values, &wanted)
            }
            Request::Describe(named) => self.describe(named),
            Request::Execute { portal, rows_max } => self.execute(portal, rows_max),
            Request::Close(named) => self.close(named),
            // What is left of rows that were refused.
            Request::CopyData(_) | Request::CopyDone | Request::CopyFail(_) | Request::Terminate => return Ok(()),
        };
        self.is_skipping = done.is_err();
        self.told(done)
    }

    /// Tells what went wrong; a client that is gone is not told.
    fn told(&mut self, done: Result<(), Stopped>) -> Result<(), Ended> {
        self.tell_notices()?;
        match done {
            Ok(()) => Ok(()),
            Err(Stopped::Refused(refusal)) => {
                // Whatever was wrong: what comes next in the transaction may have counted on it.
                self.connection.fail_transaction();
                if let Some(error) = refusal.end() {
                    self.ending.failed(error.clone());
                }
                refusal.send(&mut self.wire)?;
                if refusal.is_fatal() { Err(Ended::Gone) } else { Ok(()) }
            }
            Err(Stopped::Ended(ended)) => Err(ended),
        }
    }

    fn tell_notices(&mut self) -> Result<(), Ended> {
        self.connection.take_notices().iter().try_for_each(|text| notice(&mut self.wire, text))
    }

    /// Says that the next message may come, and whether a transaction is open.
    fn ready(&mut self) -> Result<(), Ended> {
        let state = match self.connection.transaction_state() {
            TransactionState::Idle => b'I',
            TransactionState::Open => b'T',
            TransactionState::Failed => b'E',
        };
        if state == b'I' {
            self.portals.clear();
        }
        if self.held.is_taken() {
            self.held.shrink(self.bytes());
        }
        self.report()?;
        self.wire.send(b'Z', |out| out.push(state))
    }

    /// Tells settings that clients keep track of, where they are not as they were told last.
    fn report(&mut self) -> Result<(), Ended> {
        for (name, reported) in REPORTED.iter().zip(&mut self.reported) {
            let value = self.connection.setting(name);
            if value != *reported {
                self.wire.send(b'S', |out| {
                    put_text(out, name);
                    put_text(out, value.as_deref().unwrap_or_default());
                })?;
                *reported = value;
            }
        }
        Ok(())
    }

    fn query(&mut self, text: &str) -> Result<(), Stopped> {
        let pieces = statements::split(text);
        if pieces.is_empty() {
            return Ok(self.wire.send(b'I', |_| ())?);
        }
        let idle = self.connection.transaction_state() == TransactionState::Idle;
        let is_one = idle && pieces.len() > 1 && pieces.iter().all(|piece| may_be_grouped(piece.text));
        if is_one {
            self.connection.execute("BEGIN", &[])?;
        }
        self.cancel.begin();
        let ran = pieces.iter().try_for_each(|piece| {
            if self.cancel.is_asked() {
                return Err(Refusal::new("57014", "interrupted").into());
            }
            self.statement(piece.text)
        });
        if is_one {
            let end = if ran.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = self.connection.execute(end, &[]);
            ran?;
            ended?;
            return Ok(());
        }
        ran
    }

    fn statement(&mut self, text: &str) -> Result<(), Stopped> {
        if self.is_forgotten(text) {
            return self.complete("DEALLOCATE");
        }
        let mut portal = Portal::new((text.into(), Vec::new()), Vec::new(), Vec::new(), None);
        if let Some(schema) = portal.start(&mut self.connection)? {
            rows::describe(&mut self.wire, &schema, &[])?;
        }
        match portal.run(&mut self.connection, &mut self.wire, 0)? {
            Ran::CopyIn => self.copy_in(text),
            Ran::Complete(tag) => self.complete(&tag),
            Ran::Empty | Ran::Suspended => Ok(()),
        }
    }

    /// Forgets statements of the protocol that SQL names; whether that was all that was to be done.
    fn is_forgotten(&mut self, text: &str) -> bool {
        // More words than these have none of them.
        let words: Vec<&str> = text.split_ascii_whitespace().take(4).collect();
        match words.as_slice() {
            [first, .., last] if first.eq_ignore_ascii_case("DEALLOCATE") && !last.eq_ignore_ascii_case("ALL") => {
                let folded = last.to_ascii_lowercase();
                self.prepared
                    .remove(last.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(&folded))
                    .is_some()
            }
            [first, last] if last.eq_ignore_ascii_case("ALL") => {
                let idle = self.connection.transaction_state() == TransactionState::Idle;
                if first.eq_ignore_ascii_case("DEALLOCATE") || (first.eq_ignore_ascii_case("DISCARD") && idle) {
                    self.prepared.clear();
                }
                false
            }
            _ => false,
        }
    }

    fn complete(&mut self, tag: &str) -> Result<(), Stopped> {
        Ok(self.wire.send(b'C', |out| put_text(out, tag))?)
    }

    /// Takes rows. They are committed when the client has said that they are all of them: it may give them up behind the line
    /// that ends them, too.
    fn copy_in(&mut self, sql: &str) -> Result<(), Stopped> {
        // Text, of columns whose number nobody minds.
        self.wire.send(b'G', |out| out.extend_from_slice(&[0, 0, 0]))?;
        let is_alone = self.connection.transaction_state() == TransactionState::Idle;
        if is_alone {
            self.connection.execute("BEGIN", &[])?;
        }
        let copied = self.rows_in(sql);
        // Before the next statement, which has notices of its own.
        self.tell_notices()?;
        if is_alone {
            let end = if copied.is_ok() { "COMMIT" } else { "ROLLBACK" };
            let ended = self.connection.execute(end, &[]);
            let tag = format!("COPY {}", copied?);
            ended?;
            return self.complete(&tag);
        }
        self.complete(&format!("COPY {}", copied?))
    }

    fn rows_in(&mut self, sql: &str) -> Result<u64, Stopped> {
        let mut rows = CopyIn::new(&mut self.wire, self.limits.message_bytes_max);
        let copied = self.connection.copy_in(sql, &mut rows);
        match rows.finish() {
            CopyEnd::Over(ended) => Err(ended.into()),
            CopyEnd::Dropped => Err(no_room().into()),
            CopyEnd::GivenUp => Err(Refusal::new("57014", "the client gave the rows up, and none is there").into()),
            CopyEnd::Done | CopyEnd::Coming => Ok(copied?),
        }
    }

    fn parse(&mut self, name: &str, sql: &str, types: Vec<u32>) -> Result<(), Stopped> {
        if !name.is_empty() && self.prepared.contains_key(name) {
            return Err(Refusal::new("42P05", "there is a prepared statement of this name already").into());
        }
        self.prepared.remove(name);
        self.holds(name.len() + sql.len() + 8 * types.len())?;
        if self.prepared.len() >= PREPARED_MAX {
            return Err(Refusal::new("53400", "too many prepared statements: close some").into());
        }
        // Without blanks and comments before it: its first word says what sort it is.
        let sql = match statements::split(sql).as_slice() {
            [] => "",
            [statement] => statement.text,
            _ => return Err(Refusal::new("42601", "a prepared statement is one statement").into()),
        };
        let wanted = match statements::is_blank(sql) || statements::copies_in(sql) {
            true => 0,
            false => self.connection.prepare(sql)?.parameter_count(),
        };
        let mut types = types;
        types.resize(wanted.max(types.len()), 0);
        self.prepared.insert(name.to_owned(), Prepared { sql: sql.into(), types, told: None });
        Ok(self.wire.send(b'1', |_| ())?)
    }

    fn bind(
        &mut self,
        name: &str,
        statement: &str,
        formats: &[i16],
        values: &[Option<&[u8]>],
        wanted: &[i16],
    ) -> Result<(), Stopped> {
        let prepared = self.prepared.get_mut(statement).ok_or_else(no_statement)?;
        if values.len() != prepared.types.len() {
            let text = format!("the statement has {} parameters and {} came", prepared.types.len(), values.len());
            return Err(Refusal::new("08P01", text).into());
        }
        let format = |at: usize| format(formats.get(if formats.len() == 1 { 0 } else { at }).copied().unwrap_or(0));
        let guessed = |(at, kind): (usize, &u32)| *kind == 0 && format(at) == Format::Binary && values[at].is_some();
        if prepared.types.iter().enumerate().any(guessed) {
            prepared.told(&mut self.connection)?;
        }
        let told = prepared.told.as_ref();
        // A text of a type that the client left open stands for what is wanted where it stands; bytes are of the type it was told.
        let kind = |at: usize| match (prepared.types[at], format(at), told) {
            (0, Format::Binary, Some(told)) => told.types[at],
            (kind, ..) => kind,
        };
        let value = |(at, value): (usize, &Option<&[u8]>)| match value {
            None => Ok(counterfoil::Value::Null),
            Some(bytes) => parameter::read(kind(at), format(at), bytes),
        };
        let values = values.iter().enumerate().map(value).collect::<Result<Vec<_>, Refusal>>()?;
        let wanted = wanted.iter().copied().map(self::format).collect();
        if !name.is_empty() && self.portals.contains_key(name) {
            return Err(Refusal::new("42P03", "there is a portal of this name already").into());
        }
        let told = told.map(|told| told.columns.clone());
        let portal = Portal::new((prepared.sql.clone(), prepared.types.clone()), values, wanted, told);
        self.portals.remove(name);
        self.holds(name.len() + portal.bytes())?;
        if self.portals.len() >= PORTALS_MAX {
            return Err(Refusal::new("53400", "too many portals: close some").into());
        }
        self.portals.insert(name.to_owned(), portal);
        Ok(self.wire.send(b'2', |_| ())?)
    }

    /// Refuses to hold so many bytes more.
    fn holds(&mut self, more: usize) -> Result<(), Refusal> {
        let bytes = more + self.bytes();
        if bytes > HELD_BYTES_MAX {
            return Err(Refusal::new("53400", "too much is held for this client: close statements and portals"));
        }
        if self.held.is_enlarged(bytes) { Ok(()) } else { Err(no_room()) }
    }

    /// Bytes of what is held.
    fn bytes(&self) -> usize {
        let prepared = self.prepared.iter().map(|(name, prepared)| name.len() + prepared.bytes());
        let portals = self.portals.iter().map(|(name, portal)| name.len() + portal.bytes());
        prepared.sum::<usize>() + portals.sum::<usize>()
    }

    fn describe(&mut self, named: Named<'_>) -> Result<(), Stopped> {
        match named {
            Named::Portal(name) => {
                let Some(portal) = self.portals.get_mut(name) else {
                    // A cursor of SQL is a portal, too.
                    let columns = self.connection.cursor_columns(name).map_err(|_| no_portal())?;
                    return Ok(rows::describe(&mut self.wire, &columns, &[])?);
                };
                let columns = match answers(portal.sql()) {
                    Answers::Rows => portal.start(&mut self.connection)?,
                    // Nothing changes before it is told to.
                    Answers::RowsOfChange => portal.promise(&mut self.connection)?,
                    Answers::Nothing => None,
                };
                match columns {
                    Some(schema) => {
                        let formats = portal.formats(schema.fields().len())?;
                        rows::describe(&mut self.wire, &schema, &formats)?;
                    }
                    None => self.wire.send(b'n', |_| ())?,
                }
            }
            Named::Statement(name) => {
                let prepared = self.prepared.get_mut(name).ok_or_else(no_statement)?;
                let told = prepared.told(&mut self.connection)?;
                self.wire.send(b't', |out| {
                    out.extend_from_slice(&(told.types.len() as u16).to_be_bytes());
                    told.types.iter().for_each(|kind| out.extend_from_slice(&kind.to_be_bytes()));
                })?;
                match &told.columns {
                    Some(schema) => rows::describe(&mut self.wire, schema, &[])?,
                    None => self.wire.send(b'n', |_| ())?,
                }
            }
        }
        Ok(())
    }

    fn execute(&mut self, name: &str, rows_max: i32) -> Result<(), Stopped> {
        let portal = self.portals.get_mut(name).ok_or_else(no_portal)?;
        // Less than none means all, as for PostgreSQL.
        let rows_max = u64::try_from(rows_max).unwrap_or(0);
        match portal.run(&mut self.connection, &mut self.wire, rows_max)? {
            Ran::Complete(tag) => {
                let ends = statements::is_transaction_control(portal.sql());
                if ends && self.connection.transaction_state() == TransactionState::Idle {
                    // They saw what may be undone.
                    self.portals.clear();
                }
                self.complete(&tag)
            }
            Ran::Empty => Ok(self.wire.send(b'I', |_| ())?),
            Ran::Suspended => Ok(self.wire.send(b's', |_| ())?),
            Ran::CopyIn => {
                let sql = portal.sql().to_owned();
                self.copy_in(&sql)
            }
        }
    }

    fn close(&mut self, named: Named<'_>) -> Result<(), Stopped> {
        match named {
            Named::Statement(name) => drop(self.prepared.remove(name)),
            Named::Portal(name) => drop(self.portals.remove(name)),
        }
        Ok(self.wire.send(b'3', |_| ())?)
    }
}

fn no_room() -> Refusal {
    Refusal::new(
        "53200",
        "there is no room for so much now, what all clients send and hold is bounded: try again later",
    )
}

fn no_statement() -> Refusal {
    Refusal::new("26000", "there is no prepared statement of this name")
}

fn no_portal() -> Refusal {
    Refusal::new("34000", "there is no portal of this name")
}

fn format(number: i16) -> Format {
    if number == 1 { Format::Binary } else { Format::Text }
}

/// Whether a statement may stand among others in a transaction that nobody asked for.
fn may_be_grouped(text: &str) -> bool {
    !statements::is_transaction_control(text)
        && !matches!(statements::first_word(text).as_str(), "VACUUM" | "SAVEPOINT" | "RELEASE")
}

/// Whether a text has one of these words, wherever it stands.
fn has_word(sql: &str, words: &[&str]) -> bool {
    let is_one = |word: &str| words.iter().any(|it| word.eq_ignore_ascii_case(it));
    sql.split(|letter: char| !letter.is_ascii_alphabetic()).any(is_one)
}

/// What a statement may answer.
enum Answers {
    Rows,
    /// Rows, of a statement that may change something.
    RowsOfChange,
    Nothing,
}

fn answers(sql: &str) -> Answers {
    match statements::first_word(sql).as_str() {
        "SELECT" | "VALUES" | "TABLE" | "SHOW" | "DESCRIBE" => Answers::Rows,
        "WITH" if !has_word(sql, &["INSERT", "UPDATE", "DELETE", "MERGE"]) => Answers::Rows,
        "INSERT" | "UPDATE" | "DELETE" | "MERGE" if !has_word(sql, &["RETURNING"]) => Answers::Nothing,
        "WITH" | "EXPLAIN" | "EXECUTE" | "FETCH" | "INSERT" | "UPDATE" | "DELETE" | "MERGE" => Answers::RowsOfChange,
        _ if sql.starts_with('(') => Answers::Rows,
        _ => Answers::Nothing,
    }
}
