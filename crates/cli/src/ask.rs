//! `ask`: a question to a server that nobody trusts, and rows only if they are the owner's.

use std::io::{self, BufWriter};
use std::path::Path;

use counterfoil::arrow::array::RecordBatch;
use counterfoil::asking::{self, Asking};
use counterfoil_proof::{Type, Value};

use crate::arguments::Ask;
use crate::failure::{Result, misuse};
use crate::output::Style;
use crate::publish::authorities;
use crate::terminal::{self, Working};

pub fn run(arguments: &Ask) -> Result<()> {
    let asking = asking(arguments)?;
    let style = Style::for_standard_output(arguments.shape.format, &arguments.shape.fields)?;
    if let Some(path) = &arguments.check {
        return look_again(path, arguments, &style);
    }
    let (Some(sql), false) = (&arguments.sql, arguments.server.is_empty()) else {
        return Err(misuse("a SELECT and a server are wanted").into());
    };
    if let Some(path) = &arguments.save {
        asking::refuse_to_overwrite(path)?;
    }
    if asking.state.is_none() {
        terminal::note("nothing is remembered of what was seen: an older state would not be noticed");
    }
    let answer = {
        let _working = Working::begin("asking");
        asking.ask(sql)?
    };
    if arguments.explain {
        terminal::show(format_args!("plan: {}", answer.plan));
    }
    if let Some(path) = &arguments.save {
        answer.save(path)?;
    }
    print(&answer.rows, &style)?;
    terminal::done(format_args!("verified: {}", answer.verdict));
    Ok(())
}

fn asking(arguments: &Ask) -> Result<Asking> {
    let mut asking = Asking::of(&arguments.owner)?;
    asking.servers.clone_from(&arguments.server);
    asking.authorities = authorities(&arguments.reach)?;
    asking.max_age = arguments.max_age;
    asking.clock_error = arguments.clock_error;
    asking.timeout = arguments.timeout;
    asking.compact = arguments.compact;
    Ok(asking)
}

fn look_again(path: &Path, arguments: &Ask, style: &Style) -> Result<()> {
    let checked = asking::check(path, &arguments.owner, arguments.clock_error)?;
    terminal::done(format_args!("asked at {}: {}", moment(checked.at), checked.sql));
    print(&checked.rows, style)?;
    terminal::done(format_args!("verified: {}, when it was asked", checked.verdict));
    Ok(())
}

/// A moment as the verdict tells it, from milliseconds since 1970.
fn moment(milliseconds: u64) -> String {
    let seconds = i64::try_from(milliseconds / 1000).unwrap_or(i64::MAX);
    counterfoil_ask::text(Type::TimestampTz, &Value::Integer(seconds.saturating_mul(1_000_000))).unwrap_or_default()
}

fn print(rows: &RecordBatch, style: &Style) -> Result<()> {
    let mut out = style.begin(&rows.schema(), Box::new(BufWriter::new(io::stdout())))?;
    out.batch(rows)?;
    out.finish()
}
