//! `verify`: everything is read and checked.

use std::io::{self, Write};

use counterfoil::{AtClouds, Error, Verification};

use crate::arguments::Verify;
use crate::context::Context;
use crate::copies::Bar;
use crate::failure::{Failure, Result};
use crate::{image, terminal};

pub fn run(context: &Context, arguments: &Verify) -> Result<()> {
    terminal::when_interrupted("not everything was checked");
    if image::is_one(&arguments.db)? {
        return image::run_verify(context, &arguments.db);
    }
    let database = context.open_to_read(&arguments.db)?;
    let bar = Bar::begin("checking");
    let verification = database.verify(&mut |what, done, total| {
        bar.say(&format!("checking {what}"));
        bar.set(done, total);
    })?;
    drop(bar);
    show(&verification).map_err(Failure::output)?;
    tell(verification.problems)
}

fn show(verification: &Verification) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    let (mut rows, mut entries) = (0, 0);
    for table in &verification.tables {
        writeln!(
            stdout,
            "table {}: {} rows, {} index entries, {} references",
            table.table, table.rows, table.entries, table.references
        )?;
        rows += table.rows;
        entries += table.entries;
    }
    for (table, AtClouds { rows, clouds }) in &verification.dispersed {
        writeln!(
            stdout,
            "table {table}: {rows} rows at clouds {}, which are not asked here: REPAIR TABLE {table} EXTENDED does",
            clouds.join(", ")
        )?;
    }
    let verdict = verdict(verification.problems.len());
    writeln!(
        stdout,
        "{} pages, {} tables, {rows} rows, {entries} index entries, {} records; freshness: {}; {verdict}",
        verification.pages,
        verification.tables.len() + verification.dispersed.len(),
        verification.records,
        verification.freshness
    )?;
    stdout.flush()
}

/// So many problems, in words.
pub fn verdict(problems: usize) -> String {
    match problems {
        0 => "all good".to_owned(),
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    }
}

/// All problems but the last as lines of their own; the last one ends the program.
pub fn tell(mut problems: Vec<Error>) -> Result<()> {
    let Some(last) = problems.pop() else { return Ok(()) };
    problems.iter().for_each(terminal::error);
    Err(last.into())
}
