//! The errors of the floors below, as people and programs get them: one kind, one line, and what to do.

use counterfoil_flash as flash;
use counterfoil_log as log;
use counterfoil_relation as relation;
use counterfoil_sql as sql;
use counterfoil_vault as vault;
use flash::lock::{Holder, LockError};

use crate::error::{Error, Kind};
use crate::position::Position;
use crate::rule::BrokenRule;

const SAVE: &str = "restore a backup, or save what authenticates with `counterfoil salvage`";
const TPM: &str =
    "see that this user may use it, and that its owner has no password or COUNTERFOIL_TPM_PASSWORD_FILE names it";
const ADOPT: &str = "put the newest image back, or accept this one with `counterfoil counter adopt`";

pub(crate) fn no_entropy() -> Error {
    Error::new(Kind::Device, "the system's source of randomness failed").advise("nothing is sealed without it")
}

impl From<flash::Error> for Error {
    fn from(error: flash::Error) -> Self {
        match error {
            flash::Error::Device { operation, code, .. } => {
                let system = std::io::Error::from_raw_os_error(code);
                Error::host(&format!("{operation} the database"), "", &system).without_place()
            }
            flash::Error::Full { .. } => {
                Error::new(Kind::Full, "no room left").advise("make room on the disk, or raise the size limit")
            }
            flash::Error::ReadOnly => {
                Error::new(Kind::Device, "the database can only be read").advise("check the permissions")
            }
            flash::Error::Latched => latched(),
            flash::Error::WrongSort { wanted } => {
                Error::new(Kind::Misuse, format!("this is not {wanted}")).advise("check the name")
            }
            flash::Error::Occupied { by } => {
                Error::new(Kind::Misuse, format!("the device carries {by}")).advise("use --erase if it may be lost")
            }
            flash::Error::OutOfRange { .. } => {
                Error::new(Kind::Corrupt, "the database ends before its data do").advise(SAVE)
            }
            flash::Error::Shape { reason } => Error::new(Kind::Misuse, reason),
            other => Error::new(Kind::Device, other.to_string()),
        }
    }
}

fn latched() -> Error {
    Error::new(Kind::Device, "an earlier write failed, so nobody knows what is on the medium")
        .advise("open the database again")
}

impl From<log::Error> for Error {
    fn from(error: log::Error) -> Self {
        let text = error.to_string();
        match error.cause() {
            log::Cause::Device(error) => (*error).into(),
            log::Cause::Corrupt { .. } => Error::new(Kind::Corrupt, text).advise(SAVE),
            log::Cause::Tampered { .. } => Error::new(Kind::Tampered, text).advise(SAVE),
            log::Cause::RolledBack { .. } => Error::new(Kind::RolledBack, text).advise(ADOPT),
            log::Cause::CounterLost { .. } => Error::new(Kind::CounterLost, text).advise(ADOPT),
            log::Cause::CounterHeld { process } => held(*process),
            log::Cause::CounterFailed { operation, code } => counter_failed(operation, *code),
            log::Cause::Full { pinned: Some(commit), .. } => {
                let held = format!("no room left in the database while a reader holds snapshot {commit}");
                Error::new(Kind::Full, held).advise("end the readers, or try again later: one is waited for five minutes, unless snapshot_max_age says otherwise")
            }
            log::Cause::Full { .. } => Error::new(Kind::Full, "no room left in the database").advise(
                "drop or truncate a table, delete rows that lie together, or restore a backup into a larger database",
            ),
            log::Cause::Misuse(_) => Error::new(Kind::Misuse, text),
            log::Cause::TooLarge { .. } => Error::new(Kind::Input, text),
            log::Cause::NoEntropy => no_entropy(),
            log::Cause::Latched => latched(),
            _ => Error::new(Kind::Bug, text).advise("please report it"),
        }
    }
}

impl From<relation::Error> for Error {
    fn from(error: relation::Error) -> Self {
        let text = error.to_string();
        match error.cause() {
            relation::Cause::Constraint(violation) => {
                Error::new(Kind::Constraint, text).with_rule(BrokenRule::of(violation))
            }
            relation::Cause::Sql(_) => Error::new(Kind::Sql, text),
            relation::Cause::NotSupported(_) => Error::new(Kind::NotSupported, text),
            relation::Cause::Misuse(_) => Error::new(Kind::Misuse, text),
            relation::Cause::Corrupt { .. } => Error::new(Kind::Corrupt, text).advise(SAVE),
            relation::Cause::Log { table, source } => {
                let error = Error::from(source.clone());
                if table.is_empty() { error } else { error.at(format!("table {table}")) }
            }
            _ => Error::new(Kind::Bug, text).advise("please report it"),
        }
    }
}

impl From<sql::Error> for Error {
    fn from(error: sql::Error) -> Self {
        let kind = match &error {
            sql::Error::Sql(_)
            | sql::Error::DivisionByZero
            | sql::Error::OutOfRange
            | sql::Error::Overflow(_)
            | sql::Error::Undefined(_)
            | sql::Error::NotValid(_)
            | sql::Error::ZeroInText => Kind::Sql,
            sql::Error::Constraint(_) | sql::Error::TooLarge(_) | sql::Error::TooLong(_) | sql::Error::Twice(_) => {
                Kind::Constraint
            }
            sql::Error::NotSupported(_) => Kind::NotSupported,
            sql::Error::NoTable(_) | sql::Error::NoColumn(_) | sql::Error::NoCursor(_) | sql::Error::NotFound(_) => {
                Kind::NotFound
            }
            sql::Error::Taken(sql::Named::Table | sql::Named::Schema, _) => Kind::Sql,
            sql::Error::Misuse(_)
            | sql::Error::Failed
            | sql::Error::ReadOnly
            | sql::Error::Begun(_)
            | sql::Error::Taken(..) => Kind::Misuse,
            sql::Error::Input(_) => Kind::Input,
            sql::Error::Memory(_) => Kind::Full,
            sql::Error::Locked(_) | sql::Error::Conflict(_) => Kind::Locked,
            sql::Error::Network(_) => Kind::Network,
            sql::Error::NotVerified(text, verdict) => {
                return Error::new(Kind::NotVerified, text.clone()).with_verdict(*verdict);
            }
            sql::Error::Interrupted | sql::Error::TimedOut => Kind::Interrupted,
            sql::Error::Host(_) => Kind::Device,
            sql::Error::Relation(inner) => return Error::from(inner.clone()).with_state(error.sqlstate()),
            sql::Error::Log(error) => return error.clone().into(),
            sql::Error::At(error, position) => {
                let told = Error::from((**error).clone());
                return match position {
                    sql::Position::Statement { line, column } => {
                        let position = Position { line: *line, column: Some(*column) };
                        told.at_position(position).advise("check what stands there")
                    }
                    sql::Position::Rows { line } => told.at_position(Position::of_line(*line)),
                    sql::Position::File { name, line } => told.at(name).at_position(Position::of_line(*line)),
                };
            }
            _ => Kind::Bug,
        };
        let told = Error::new(kind, error.to_string()).with_state(error.sqlstate());
        match advice(&error) {
            Some(advice) => told.advise(advice),
            None => told,
        }
    }
}

/// What to do about an error of a statement that does not say it itself, where one thing is likely.
fn advice(error: &sql::Error) -> Option<&'static str> {
    let says_it = |text: &str| text.contains(": ");
    Some(match error {
        sql::Error::NoTable(text) if !says_it(text) => "SHOW TABLES lists what there is",
        sql::Error::NoColumn(text) if !says_it(text) => "DESCRIBE lists the columns of a table",
        sql::Error::NoCursor(text) if !says_it(text) => "DECLARE it first",
        sql::Error::Taken(sql::Named::Table, text) if !says_it(text) => "choose another name, or DROP that one first",
        sql::Error::DivisionByZero => "divide by NULLIF(..., 0), which gives NULL there",
        sql::Error::OutOfRange => "CAST it to a larger type first",
        sql::Error::ReadOnly => "change rows in a transaction that is not",
        sql::Error::ZeroInText => "keep bytes in BYTEA",
        _ => return None,
    })
}

/// Back through the SQL floor: what opening the writer answers there, and what asks for published tables.
pub(crate) fn to_sql(error: Error) -> sql::Error {
    let text = error.to_string();
    match error.kind() {
        Kind::Sql => sql::Error::Sql(text),
        Kind::NotFound => sql::Error::NotFound(text),
        Kind::Input => sql::Error::Input(text),
        Kind::Full => sql::Error::Memory(text),
        Kind::Network => sql::Error::Network(text),
        Kind::NotVerified => sql::Error::NotVerified(text, error.verdict()),
        Kind::Locked => sql::Error::Locked(text),
        Kind::Interrupted => sql::Error::Interrupted,
        Kind::Misuse => sql::Error::Misuse(text),
        // It says so itself, there.
        Kind::NotSupported => sql::Error::NotSupported(text.trim_start_matches("not supported: ").to_owned()),
        Kind::Device => sql::Error::Host(text),
        _ => sql::Error::Bug(text),
    }
}

impl From<vault::HeaderError> for Error {
    fn from(error: vault::HeaderError) -> Self {
        use vault::HeaderError as Header;
        let text = error.to_string();
        match error {
            Header::NotADatabase => Error::new(Kind::NotADatabase, text).advise("check the name"),
            Header::Format { .. } => Error::new(Kind::NotSupported, text)
                .advise("open it with the version that made it, and use `export --all` there"),
            Header::Corrupt { .. } => Error::new(Kind::Corrupt, text).advise("restore a backup"),
            Header::WrongKey { .. } => Error::new(Kind::WrongKey, text).advise("try another, or the recovery code"),
            Header::Tampered { .. } => Error::new(Kind::Tampered, text).advise("restore a backup"),
            Header::Cost { .. } => Error::new(Kind::Corrupt, text).advise("restore a backup"),
            Header::OutOfMemory { .. } => Error::new(Kind::Device, text).advise("free some memory"),
            Header::EmptyPassphrase | Header::LastSlot => Error::new(Kind::Misuse, text),
            Header::NoFreeSlot => Error::new(Kind::Misuse, text).advise("remove one first"),
            Header::NoSuchSlot { .. } => Error::new(Kind::NotFound, text).advise("see `counterfoil key list`"),
            Header::NoEntropy => no_entropy(),
            Header::Device(error) => error.into(),
            Header::Tpm(error) => tpm_failed(error),
            _ => Error::new(Kind::Bug, text).advise("please report it"),
        }
    }
}

/// The counter's folder, not the database, is in trouble: what was acknowledged before is safe.
fn counter_failed(operation: &str, code: i32) -> Error {
    if code < 0 {
        // What a TPM answered.
        let text = format!("the counter could not be {operation}: the TPM answered {:#x}", code.unsigned_abs());
        return Error::new(Kind::Device, text).advise(TPM);
    }
    let system = std::io::Error::from_raw_os_error(code);
    let failed = format!("the counter could not be {operation}: {}", crate::error::system(&system));
    Error::new(Kind::Device, failed).advise(
        "check the folder that COUNTERFOIL_STATE_DIR, or the folder or TPM that `counterfoil counter show` names, then \
         open the database again",
    )
}

fn tpm_failed(error: vault::TpmError) -> Error {
    match error {
        vault::TpmError::NotAuthentic { .. } => Error::new(Kind::Tampered, error.to_string())
            .advise("somebody is between this program and the TPM, or it was replaced"),
        other => Error::new(Kind::Device, other.to_string()).advise(TPM),
    }
}

/// Nobody said where the file counter is that the database is bound to.
pub(crate) fn no_place_for_counter() -> Error {
    Error::new(Kind::Misuse, "the database is bound to a file counter, and nothing says where it is")
        .advise("set COUNTERFOIL_STATE_DIR, or HOME (programs: Options::counter)")
}

/// Who writes to another file of the same identity.
fn held(process: Option<u32>) -> Error {
    Error::new(Kind::Locked, format!("{} is writing to another copy of this database", Holder::of(process)))
        .advise("go on with one copy, or make the other a database of its own by `restore --as-new`")
}

impl From<LockError> for Error {
    fn from(error: LockError) -> Self {
        match error {
            LockError::Held(holder) => Error::new(Kind::Locked, format!("{holder} is writing to the database"))
                .advise("wait for it to close the database, or raise the lock timeout"),
            LockError::Device(error) => error.into(),
            other => Error::new(Kind::Device, other.to_string()),
        }
    }
}

impl From<vault::CounterError> for Error {
    fn from(error: vault::CounterError) -> Self {
        match error {
            vault::CounterError::Device { operation, code } => counter_failed(operation, code),
            vault::CounterError::Held { process } => held(process),
            vault::CounterError::Absent => Error::new(Kind::CounterLost, error.to_string())
                .advise("bring it from where the database was used, or bind it anew with `counterfoil counter adopt`"),
            other => Error::new(Kind::CounterLost, other.to_string()).advise(ADOPT),
        }
    }
}
