//! `publish status`: how a published table stands.

use std::fmt::Write as _;

use counterfoil::publishing::TableLedger;
use counterfoil::utc;
use counterfoil_proof::{Scheme, SigningKey};
use counterfoil_publish::{Publication, Status};

use super::keys::name_of;
use super::owned;
use crate::arguments::StateOf;
use crate::context::Context;
use crate::failure::Result;
use crate::terminal::counted;

const DAY: u64 = 24 * 3600 * 1000;
const SPANS: [(u64, &str); 4] = [(DAY, "day"), (3600 * 1000, "hour"), (60 * 1000, "minute"), (1000, "second")];

/// So many milliseconds in the largest unit of which they are a whole number.
fn span(milliseconds: u64) -> String {
    let whole = SPANS.iter().find(|(length, _)| milliseconds.is_multiple_of(*length));
    let (length, unit) = whole.unwrap_or(&SPANS[3]);
    counted(milliseconds.div_ceil(*length), unit)
}

/// Prints it.
pub fn run(context: &Context, of: &StateOf) -> Result<()> {
    let text = owned::shown(context, of, shown)?;
    crate::output::put(&mut std::io::stdout().lock(), text.as_bytes())
}

fn shown(publication: &Publication<TableLedger>) -> String {
    let status = publication.status();
    let definition = publication.definition();
    let rows = publication.shelf().rids(0).count().saturating_sub(2) as u64;
    let column = |at: &u16| definition.columns[usize::from(*at)].name.as_str();
    let order = |order: &Vec<u16>| format!("({})", order.iter().map(column).collect::<Vec<_>>().join(", "));
    let orders: Vec<String> = definition.orders.iter().map(order).collect();
    let mut text = String::new();
    let mut line = |name: &str, what: String| {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{name:10}{what}");
    };
    line("owner", status.owner.to_string());
    if let Some(before) = &status.owner_before {
        line("also", format!("{before}, until `publish rotate --finish`"));
    }
    line("root key", if status.has_root { "in this state".into() } else { "kept elsewhere".into() });
    line("table", format!("{}: {}, by {}", definition.name, counted(rows, "row"), orders.join(" and ")));
    line("signed", self::signed(definition.scheme));
    line("manifest", format!("serial {}", status.serial));
    line("period", period(&status));
    line("summaries", format!("readers need them from period {} on", status.oldest_period));
    line(
        "read",
        match publication.terms().every {
            0 => "when somebody publishes it".into(),
            every => format!("every {}", span(every)),
        },
    );
    line(
        "renewal",
        match publication.terms().renew {
            0 => "never".into(),
            renew => format!("after {}", span(renew)),
        },
    );
    if publication.terms().max_age < u64::MAX {
        let days = counted(publication.terms().max_age.div_ceil(DAY), "day");
        line("max age", format!("signatures count for {days}"));
    }
    for (key, signed) in &status.keys {
        line("key", self::key(key, *signed, status.open_period));
    }
    text
}

/// How a table's rows are signed.
pub(super) fn signed(scheme: Scheme) -> String {
    match scheme {
        Scheme::PerAttribute => "per attribute".into(),
        Scheme::Group(rows_max) => format!("in groups of up to {rows_max} rows"),
        _ => "per record".into(),
    }
}

fn period(status: &Status) -> String {
    let since = status.last_ended.map_or(String::new(), |ended| format!(" since {}", utc(ended / 1000)));
    format!("{} is open{since}, {}", status.open_period, counted(status.open_changes, "change"))
}

fn key(key: &SigningKey, signed: u64, open: u64) -> String {
    let of = match (key.from_period, key.until_period) {
        (from, _) if from > open => format!("signs from period {from} on"),
        (from, u64::MAX) => format!("signs since period {from}"),
        (from, until) => format!("signed periods {from} to {}", until.saturating_sub(1)),
    };
    format!("{} {of}, {}, expires {}", name_of(&key.key), counted(signed, "signature"), utc(key.expires / 1000))
}
