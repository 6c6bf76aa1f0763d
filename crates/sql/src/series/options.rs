//! What WITH (engine = 'series', ...) can say beside, and what it means.

use std::collections::HashSet;
use std::time::Duration;

use counterfoil_relation::{Engine, Table, Type};

use super::bounds;
use super::summaries::option::{QUALITY, SUMMARIES};
use crate::error::{Error, Result};

/// How long points wait for others that came between them, before a leaf is packed.
const REORDER: &str = "reorder";
/// How long points are kept.
const RETENTION: &str = "retention";
/// What it says where the oldest points go as soon as there is no room.
const SPACE: &str = "space";
/// What happens to a row whose key is there already.
const ON_DUPLICATE: &str = "on_duplicate";
/// How long an INSERT waits for others to commit together with.
const COMMIT_EVERY: &str = "commit_every";
/// How far ahead of the clock a sample may be.
const FUTURE_MAX: &str = "future_max";

/// The database of InfluxDB whose measurement the table is: what clients of that interface may drop.
const INFLUX_DATABASE: &str = "influx_database";

const NAMES: [&str; 12] = [
    COMMIT_EVERY,
    REORDER,
    RETENTION,
    ON_DUPLICATE,
    FUTURE_MAX,
    bounds::SWINGING_DOOR.name,
    bounds::SWINGING_DOOR.gap,
    bounds::DEAD_BAND.name,
    bounds::DEAD_BAND.gap,
    SUMMARIES,
    QUALITY,
    INFLUX_DATABASE,
];

/// How far ahead of the clock a sample may be unless told otherwise, in microseconds.
const FUTURE_MAX_DEFAULT: i64 = 86_400_000_000;
/// The same, as one writes it.
const FUTURE_MAX_TEXT: &str = "1 day";

/// Whether a series table can be told this.
pub(crate) fn is_known(name: &str) -> bool {
    NAMES.contains(&name)
}

/// A column that options may name.
pub(crate) struct Named<'t> {
    pub(crate) name: &'t str,
    pub(crate) kind: &'t Type,
    /// Whether it names series or is the time.
    pub(crate) is_key: bool,
}

/// What retention says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retention {
    /// Points are kept until somebody deletes them.
    None,
    /// Points go that are older than so many microseconds.
    Time(i64),
    /// The oldest points go when there is no room.
    Space,
}

/// Options as they are written, of a table that was checked or is about to be.
#[derive(Clone, Copy)]
pub(crate) struct Told<'t>(&'t [(String, String)]);

impl<'t> Told<'t> {
    pub(crate) fn of(engine: Option<&'t Engine>) -> Self {
        Told(engine.map_or(&[], |engine| &engine.options))
    }

    pub(crate) fn table(table: &'t Table) -> Self {
        Self::of(table.engine.as_ref())
    }

    /// Names and values, as they were given.
    pub(crate) fn given(&self) -> &'t [(String, String)] {
        self.0
    }

    pub(super) fn text(&self, name: &str) -> Option<&'t str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// All that a table does because of options, told or untold.
    pub(crate) fn all(&self) -> Vec<(&'static str, &'t str)> {
        let untold = |name: &str| match name {
            COMMIT_EVERY | REORDER => "0 s",
            ON_DUPLICATE => "last",
            FUTURE_MAX => FUTURE_MAX_TEXT,
            _ => "none",
        };
        NAMES.iter().map(|name| (*name, self.text(name).unwrap_or_else(|| untold(name)))).collect()
    }

    /// Refuses what means nothing.
    ///
    /// # Errors
    /// [`Error::Sql`] and [`Error::NotSupported`], with the option's name.
    pub(crate) fn check(&self, columns: &[Named<'_>]) -> Result<()> {
        let mut seen = HashSet::new();
        if let Some((name, _)) = self.0.iter().find(|(name, _)| !seen.insert(name)) {
            return Err(Error::Sql(format!("the option {name} is given twice")));
        }
        match self.text(ON_DUPLICATE) {
            None | Some("last" | "error") => {}
            Some(_) => return Err(Error::Sql("on_duplicate is 'last' or 'error'".into())),
        }
        self.commit_every()?;
        self.reorder()?;
        self.retention()?;
        self.future_max()?;
        bounds::check(self, columns)
    }

    /// Whether a row whose key is there already is refused, rather than that it takes the other's place.
    pub(crate) fn refuses_duplicates(&self) -> bool {
        self.text(ON_DUPLICATE) == Some("error")
    }

    /// How long an INSERT waits for others with which it is made durable; none: it is by itself.
    pub(crate) fn commit_every(&self) -> Result<Option<Duration>> {
        let span = self.text(COMMIT_EVERY).map_or(Ok(0), |text| span(COMMIT_EVERY, text))?;
        Ok(u64::try_from(span).ok().filter(|span| *span > 0).map(Duration::from_micros))
    }

    /// How long points wait for others to come between, in microseconds.
    pub(crate) fn reorder(&self) -> Result<i64> {
        self.text(REORDER).map_or(Ok(0), |text| span(REORDER, text))
    }

    /// How long points are kept.
    pub(crate) fn retention(&self) -> Result<Retention> {
        match self.text(RETENTION) {
            None | Some("none") => Ok(Retention::None),
            Some(SPACE) => Ok(Retention::Space),
            Some(text) => match span(RETENTION, text) {
                Ok(span) if span > 0 => Ok(Retention::Time(span)),
                _ => Err(Error::Sql(format!(
                    "{RETENTION} = '{text}': a span of time such as '2 years', or '{SPACE}', or 'none' is due"
                ))),
            },
        }
    }

    /// How far ahead of the clock a sample may be, in microseconds; none: as far as it likes.
    pub(crate) fn future_max(&self) -> Result<Option<i64>> {
        match self.text(FUTURE_MAX) {
            None => Ok(Some(FUTURE_MAX_DEFAULT)),
            Some("none") => Ok(None),
            Some(text) => span(FUTURE_MAX, text).map(Some),
        }
    }

    /// The same as it was written.
    pub(crate) fn future_max_text(&self) -> &'t str {
        self.text(FUTURE_MAX).unwrap_or(FUTURE_MAX_TEXT)
    }
}

/// A span of time that an option gives, in microseconds.
pub(crate) fn span(name: &str, text: &str) -> Result<i64> {
    let wrong = || Error::Sql(format!("{name} = '{text}': a span of time is due, such as '500 ms' or '2 s'"));
    let (number, unit) = text.trim().split_once(' ').ok_or_else(wrong)?;
    let number: i64 = number.parse().map_err(|_| wrong())?;
    let microseconds = match unit.trim() {
        "us" | "microsecond" | "microseconds" => 1,
        "ms" | "millisecond" | "milliseconds" => 1_000,
        "s" | "second" | "seconds" => 1_000_000,
        "min" | "minute" | "minutes" => 60_000_000,
        "h" | "hour" | "hours" => 3_600_000_000,
        "d" | "day" | "days" => 86_400_000_000,
        "week" | "weeks" => 7 * 86_400_000_000,
        // Of 365 days and a quarter.
        "year" | "years" => 31_557_600_000_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(microseconds).filter(|span| *span >= 0).ok_or_else(wrong)
}

/// Microseconds in the unit of a time column.
pub(crate) fn ticks(kind: &Type, microseconds: i64) -> i64 {
    match kind {
        Type::Timestamp { nanoseconds: true } => microseconds.saturating_mul(1000),
        _ => microseconds,
    }
}
