//! Settings of a session: SET, RESET, and what SHOW answers.

mod kept;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use datafusion::sql::sqlparser::ast::{
    ContextModifier, Expr, Reset, ResetStatement, Set, Value as Literal, ValueWithSpan,
};

use crate::catalog::Said;
use crate::dispersed::Used;
use crate::error::{Error, Result};
use crate::modes::{Isolation, Modes};
use crate::on_rollback::{NAMES as OF_DATABASE, OnRollback};
use crate::ram::Ram;
use crate::session::{Outcome, Session};
use crate::statement::{fold, parts};

pub(crate) use kept::Kept;

/// How long a statement waits for the writer unless told otherwise.
pub const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Settings that are on or off.
const SWITCHES: [&str; 6] = [
    "as_given",
    "default_transaction_read_only",
    "enable_direct_queries",
    "enable_foreign_key_joins",
    "enable_summaries",
    "synchronous_commit",
];

/// What is said of transactions that are begun from now on.
const ISOLATION: &str = "default_transaction_isolation";
/// What the transaction is that is open.
const OF_TRANSACTION: [&str; 2] = ["transaction_isolation", "transaction_read_only"];

/// What a session has been told.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) lock_timeout: Duration,
    /// How long a statement may take, with the reading of its rows; none where it may take any time.
    pub(crate) statement_timeout: Option<Duration>,
    /// Whether a commit is durable when it is acknowledged.
    pub(crate) synchronous_commit: bool,
    /// Whether aggregations over series may be answered from summaries.
    pub(crate) enable_summaries: bool,
    /// Whether simple questions are answered without the query library.
    pub(crate) enable_direct_queries: bool,
    /// Whether joins along foreign keys may be read off the rows.
    pub(crate) enable_foreign_key_joins: bool,
    /// Whether series tables store every point as it is given: for what was stored in such a table before.
    pub(crate) as_given: bool,
    /// What transactions are that say nothing of it.
    pub(crate) modes: Modes,
    /// How much memory queries of this session may have, where it was said.
    pub(crate) ram: Option<Ram>,
    /// Where tables that are made lie if they say nothing else; none: here.
    pub(crate) clouds: Option<Used>,
    /// Settings that clients set and that change nothing here, so that SHOW answers what SET said.
    said: Arc<BTreeMap<String, String>>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lock_timeout: LOCK_TIMEOUT,
            statement_timeout: None,
            synchronous_commit: true,
            enable_summaries: true,
            enable_direct_queries: true,
            enable_foreign_key_joins: true,
            as_given: false,
            modes: Modes::default(),
            ram: None,
            clouds: None,
            said: Arc::default(),
        }
    }
}

/// Settings that can be set to anything (drivers do), with what they are before.
const IGNORED: &[(&str, &str)] = &[
    ("application_name", ""),
    ("check_function_bodies", "on"),
    ("client_min_messages", "notice"),
    // It says when a transaction begins, and none waits here for a snapshot.
    ("default_transaction_deferrable", "off"),
    // How plans are made is not theirs to say.
    ("effective_cache_size", "4GB"),
    ("enable_hashjoin", "on"),
    ("enable_indexscan", "on"),
    ("enable_mergejoin", "on"),
    ("enable_nestloop", "on"),
    ("enable_seqscan", "on"),
    ("enable_sort", "on"),
    ("extra_float_digits", "1"),
    ("geqo", "on"),
    ("idle_in_transaction_session_timeout", "0"),
    ("jit", "off"),
    ("maintenance_work_mem", "64MB"),
    ("max_parallel_workers_per_gather", "0"),
    ("random_page_cost", "1"),
    ("row_security", "on"),
    ("search_path", "public"),
    ("transaction_deferrable", "off"),
    ("work_mem", "4MB"),
];

/// Settings that have one value.
const FIXED: &[(&str, &str)] = &[
    ("block_size", "8192"),
    ("bytea_output", "hex"),
    ("client_encoding", "UTF8"),
    ("datestyle", "ISO, YMD"),
    ("default_table_access_method", "heap"),
    ("default_tablespace", ""),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("intervalstyle", "postgres"),
    ("is_superuser", "on"),
    ("max_identifier_length", "63"),
    ("max_index_keys", "32"),
    ("role", "none"),
    ("server_encoding", "UTF8"),
    ("server_version", crate::SERVER_VERSION),
    ("server_version_num", "150000"),
    ("standard_conforming_strings", "on"),
    ("synchronize_seqscans", "off"),
    ("timezone", "UTC"),
    ("xmloption", "content"),
];

impl Settings {
    /// The value of a setting.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        if name == "lock_timeout" {
            return Some(format!("{}ms", self.lock_timeout.as_millis()));
        }
        if name == "statement_timeout" {
            let milliseconds = self.statement_timeout.map_or(0, |time| time.as_millis());
            return Some(if milliseconds == 0 { "0".into() } else { format!("{milliseconds}ms") });
        }
        if name == ISOLATION {
            return Some(self.modes.isolation.name().into());
        }
        let is_on = match name {
            "as_given" => Some(self.as_given),
            "default_transaction_read_only" => Some(self.modes.read_only),
            "enable_direct_queries" => Some(self.enable_direct_queries),
            "enable_foreign_key_joins" => Some(self.enable_foreign_key_joins),
            "enable_summaries" => Some(self.enable_summaries),
            "synchronous_commit" => Some(self.synchronous_commit),
            _ => None,
        };
        if let Some(is_on) = is_on {
            return Some(if is_on { "on" } else { "off" }.into());
        }
        let known = IGNORED.iter().chain(FIXED).find(|(known, _)| *known == name);
        self.said.get(name).cloned().or_else(|| known.map(|(_, value)| (*value).to_owned()))
    }

    /// All settings of the session with their values.
    pub(crate) fn all(&self) -> Vec<(String, String)> {
        let others = ["lock_timeout", "statement_timeout", ISOLATION];
        let names = IGNORED.iter().chain(FIXED).map(|(name, _)| *name).chain(others).chain(SWITCHES);
        names.filter_map(|name| Some((name.to_owned(), self.value(name)?))).collect()
    }

    pub(crate) fn set(&mut self, name: &str, value: &str) -> Result<()> {
        if name == "lock_timeout" {
            self.lock_timeout = duration(value)?;
            return Ok(());
        }
        if name == "statement_timeout" {
            self.statement_timeout = Some(duration(value)?).filter(|time| !time.is_zero());
            return Ok(());
        }
        if name == "ram" {
            self.ram = Some(Ram::parse(value)?);
            return Ok(());
        }
        if name == ISOLATION {
            self.modes.isolation = Isolation::parse(value)?;
            return Ok(());
        }
        if let Some(is_on) = self.switch(name) {
            *is_on = switch(name, value)?;
            return Ok(());
        }
        if IGNORED.iter().any(|(known, _)| *known == name) {
            Arc::make_mut(&mut self.said).insert(name.to_owned(), value.to_owned());
            return Ok(());
        }
        match FIXED.iter().find(|(known, _)| *known == name) {
            Some((_, fixed)) if fixed.eq_ignore_ascii_case(value) || same(fixed, value) => Ok(()),
            Some((_, "")) => Err(Error::NotSupported(format!("SET {name} to anything but an empty text"))),
            Some((_, fixed)) => Err(Error::NotSupported(format!("SET {name} to anything but {fixed}"))),
            None => Err(no_setting(name)),
        }
    }

    /// A setting that is on or off.
    fn switch(&mut self, name: &str) -> Option<&mut bool> {
        match name {
            "as_given" => Some(&mut self.as_given),
            "default_transaction_read_only" => Some(&mut self.modes.read_only),
            "enable_direct_queries" => Some(&mut self.enable_direct_queries),
            "enable_foreign_key_joins" => Some(&mut self.enable_foreign_key_joins),
            "enable_summaries" => Some(&mut self.enable_summaries),
            "synchronous_commit" => Some(&mut self.synchronous_commit),
            _ => None,
        }
    }

    /// Makes a setting what it was when the session began.
    fn reset(&mut self, name: &str, first: &Settings) -> Result<()> {
        match (name, first.value(name)) {
            ("ram", _) => self.ram = first.ram,
            (_, Some(value)) => self.set(name, &value)?,
            (_, None) => return Err(no_setting(name)),
        }
        Ok(())
    }
}

fn no_setting(name: &str) -> Error {
    Error::NotFound(format!("no setting {name}: SHOW ALL lists them"))
}

/// Other spellings of the same value.
fn same(fixed: &str, value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    match fixed {
        "on" => matches!(value.as_str(), "true" | "1" | "yes"),
        "off" => matches!(value.as_str(), "false" | "0" | "no"),
        "UTC" => matches!(value.as_str(), "utc" | "gmt" | "z" | "+00" | "+00:00" | "0" | "etc/utc" | "default"),
        // Without an encoding of its own a client takes the bytes as they are.
        "UTF8" => {
            let letters: String = value.chars().filter(char::is_ascii_alphanumeric).collect();
            matches!(letters.as_str(), "utf8" | "unicode" | "sqlascii")
        }
        // Dates are written in one way; in what order days and months are read does not matter to them.
        "ISO, YMD" => value.split(',').next().is_some_and(|style| style.trim() == "iso"),
        _ => false,
    }
}

/// On or off. PostgreSQL's ways of waiting for other servers too (`synchronous_commit`) are all `on` here.
fn switch(name: &str, value: &str) -> Result<bool> {
    match value.to_ascii_lowercase().as_str() {
        "on" | "true" | "1" | "yes" | "local" | "remote_write" | "remote_apply" => Ok(true),
        "off" | "false" | "0" | "no" => Ok(false),
        _ => Err(Error::Sql(format!("{name} is on or off, not {value}"))),
    }
}

/// `5s`, `200ms`, `1min`, or a number of milliseconds.
fn duration(text: &str) -> Result<Duration> {
    let text = text.trim();
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let number: u64 = text[..digits].parse().map_err(|_| Error::Sql(format!("{text} is not a duration")))?;
    match text[digits..].trim() {
        "us" => Ok(Duration::from_micros(number)),
        "" | "ms" => Ok(Duration::from_millis(number)),
        "s" => Ok(Duration::from_secs(number)),
        "min" => Ok(Duration::from_secs(number.saturating_mul(60))),
        "h" => Ok(Duration::from_secs(number.saturating_mul(3600))),
        "d" => Ok(Duration::from_secs(number.saturating_mul(86_400))),
        unit => Err(Error::Sql(format!("{unit} is no unit of time: us, ms, s, min, h and d are"))),
    }
}

impl Session {
    /// Tells the planner what of the settings it goes by.
    pub(crate) fn tell_planner(&mut self) {
        self.planner.summaries.set(self.settings.enable_summaries);
        self.planner.foreign_key_joins.set(self.settings.enable_foreign_key_joins);
        let mut settings = self.settings.all();
        settings.extend(OF_TRANSACTION.iter().filter_map(|name| Some(((*name).to_owned(), self.value_of(name)?))));
        self.planner.said = Said::new(settings, self.rights.writes);
    }

    /// Has everything go by the settings as they are now.
    pub(crate) fn follow_settings(&mut self) -> Result<()> {
        self.bound_ram()?;
        self.tell_planner();
        Ok(())
    }

    /// Runs SET.
    pub(crate) fn set(&mut self, set: &Set) -> Result<Outcome> {
        match set {
            Set::SingleAssignment { scope, variable, values, .. } => {
                let name = parts(variable)?.join(".").to_ascii_lowercase();
                let value = values.iter().map(value).collect::<Vec<_>>().join(", ");
                if OF_DATABASE.contains(&name.as_str()) {
                    refuse_local(*scope, &name)?;
                    self.set_of_database(&name, Some(value.as_str()).filter(|value| *value != "default"))?;
                } else if value == "default" {
                    self.reset_one(is_local(*scope), &name)?;
                } else {
                    self.set_one(is_local(*scope), &name, &value)?;
                }
            }
            Set::SetTimeZone { local, value: zone } => {
                let zone = value(zone);
                match zone.as_str() {
                    "default" | "local" => self.reset_one(*local, "timezone")?,
                    zone => self.set_one(*local, "timezone", zone)?,
                }
            }
            Set::SetNames { charset_name, .. } => self.set_one(false, "client_encoding", &charset_name.value)?,
            Set::SetNamesDefault {} => self.reset_one(false, "client_encoding")?,
            Set::SetRole { role_name: None, .. } => {}
            Set::SetTransaction { modes, snapshot: None, session: true } => {
                self.change_settings(false, |settings| {
                    settings.modes = settings.modes.and(modes)?;
                    Ok(())
                })?
            }
            Set::SetTransaction { modes, snapshot: None, session: false } => self.set_transaction(modes)?,
            other => return Err(Error::NotSupported(other.to_string())),
        }
        Ok(Outcome::Done("SET"))
    }

    /// Sets a setting of the session's, or of its transaction.
    pub(crate) fn set_one(&mut self, is_local: bool, name: &str, value: &str) -> Result<()> {
        match name {
            "transaction_isolation" => {
                let isolation = Isolation::parse(value)?;
                self.become_of(|modes| Modes { isolation, ..modes })
            }
            "transaction_read_only" => {
                let read_only = switch(name, value)?;
                self.become_of(|modes| Modes { read_only, ..modes })
            }
            _ => self.change_settings(is_local, |settings| settings.set(name, value)),
        }
    }

    /// Gives a setting the value with which the session begins, and to which RESET goes back: what a client says before its first
    /// statement.
    ///
    /// # Errors
    /// Those of SET.
    pub fn begin_with(&mut self, name: &str, value: &str) -> Result<()> {
        self.set_one(false, &name.to_ascii_lowercase(), value)?;
        self.first = self.settings.clone();
        Ok(())
    }

    /// Gives queries the memory that they are to have.
    fn bound_ram(&mut self) -> Result<()> {
        let of_database = self.guard.engine.options.ram;
        let (wanted, known) = (self.settings.ram.or(of_database), self.planner.options().ram);
        if wanted != known {
            let bound = self.planner.bound(self.settings.ram);
            return bound.inspect_err(|_| self.settings.ram = known.filter(|_| known != of_database));
        }
        Ok(())
    }

    pub(crate) fn reset(&mut self, statement: &ResetStatement) -> Result<Outcome> {
        match &statement.reset {
            Reset::ALL => self.reset_all()?,
            Reset::ConfigurationParameter(name) => {
                let name = parts(name)?.join(".").to_ascii_lowercase();
                if OF_DATABASE.contains(&name.as_str()) {
                    self.set_of_database(&name, None)?;
                } else {
                    self.reset_one(false, &name)?;
                }
            }
        }
        Ok(Outcome::Done("RESET"))
    }

    fn reset_one(&mut self, is_local: bool, name: &str) -> Result<()> {
        let first = self.first.clone();
        self.change_settings(is_local, |settings| settings.reset(name, &first))
    }

    /// Makes every setting of the session what it was at first.
    pub(crate) fn reset_all(&mut self) -> Result<()> {
        let first = self.first.clone();
        self.change_settings(false, |settings| {
            *settings = first.clone();
            Ok(())
        })
    }

    /// Changes a setting of the database, which is kept in it: part of the transaction, like a row.
    fn set_of_database(&mut self, name: &str, value: Option<&str>) -> Result<()> {
        self.change(|_, change| OnRollback::change(&mut change.lease, name, value))
    }

    /// The value of a setting, of the session's or of the database's.
    pub(crate) fn setting(&mut self, name: &str) -> Result<Option<String>> {
        if OF_DATABASE.contains(&name) {
            return Ok(Some(OnRollback::of(&self.view()?)?.value(name)));
        }
        Ok(self.value_of(name))
    }

    /// The value of a setting of the session's; none for one of the database's, and where there is none of the name.
    pub fn value_of(&self, name: &str) -> Option<String> {
        match name {
            "ram" => Some(self.planner.options().ram.map_or("default".into(), |ram| ram.to_string())),
            "transaction_isolation" => Some(self.modes().isolation.name().into()),
            "transaction_read_only" => Some(if self.modes().read_only { "on" } else { "off" }.into()),
            _ => self.settings.value(name),
        }
    }

    /// All settings with their values, by name.
    pub(crate) fn all_settings(&mut self) -> Result<Vec<(String, String)>> {
        let of_database = OnRollback::of(&self.view()?)?;
        let mut all = self.settings.all();
        let others = OF_TRANSACTION.into_iter().chain(["ram"]);
        all.extend(others.filter_map(|name| Some((name.to_owned(), self.value_of(name)?))));
        all.extend(OF_DATABASE.map(|name| (name.to_owned(), of_database.value(name))));
        all.sort();
        Ok(all)
    }
}

/// Whether what is set ends with the transaction.
fn is_local(scope: Option<ContextModifier>) -> bool {
    scope == Some(ContextModifier::Local)
}

/// A setting of the database does not end with a transaction.
fn refuse_local(scope: Option<ContextModifier>, name: &str) -> Result<()> {
    match is_local(scope) {
        true => Err(Error::NotSupported(format!("SET LOCAL {name}"))),
        false => Ok(()),
    }
}

/// What SET gives a setting, as text.
fn value(expr: &Expr) -> String {
    match expr {
        Expr::Value(ValueWithSpan { value: Literal::SingleQuotedString(text), .. }) => text.clone(),
        Expr::Identifier(name) => fold(name),
        other => other.to_string(),
    }
}
