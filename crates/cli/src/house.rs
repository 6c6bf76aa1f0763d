//! `reorganize`, `compact`, `purge`.

use std::io::{self, Write};

use counterfoil::{Database, Lack, Purged};

use crate::arguments::Only;
use crate::closing;
use crate::context::Context;
use crate::failure::{Failure, Result};
use crate::inspect::bytes;
use crate::terminal;

pub fn reorganize(context: &Context, arguments: &Only) -> Result<()> {
    let database = context.open(&arguments.db)?;
    database.reorganize()?;
    say_what_has_no_room(&database)?;
    closing::close(database)
}

/// Steps that find no room wait until there is some, without an error: whoever asked for them is told.
fn say_what_has_no_room(database: &Database) -> Result<()> {
    let inspection = database.inspect()?;
    for (table, found) in &inspection.relations {
        if let Some(Lack { needed_bytes, left_bytes }) = found.lacks(inspection.room) {
            let (needed, left) = (bytes(needed_bytes), bytes(left_bytes));
            terminal::warning(format_args!(
                "table {table} stays as it is: {needed} have to be free to tidy it, and {left} are; delete rows, or drop what is not needed"
            ));
        }
    }
    Ok(())
}

pub fn compact(context: &Context, arguments: &Only) -> Result<()> {
    let database = context.open(&arguments.db)?;
    database.compact()?;
    closing::close(database)
}

pub fn purge(context: &Context, arguments: &Only) -> Result<()> {
    let database = context.open(&arguments.db)?;
    let answer = match database.purge()? {
        Purged::Done => "done",
        Purged::NotGuaranteed => "not guaranteed on this medium",
    };
    database.close()?;
    writeln!(io::stdout(), "{answer}").map_err(Failure::output)
}
