//! `reorganize`, `compact`, `purge`.

use std::io::{self, Write};

use counterfoil::Purged;

use crate::arguments::Only;
use crate::context::Context;
use crate::failure::{Failure, Result};

pub fn reorganize(context: &Context, arguments: &Only) -> Result<()> {
    let database = context.open(&arguments.db)?;
    database.reorganize()?;
    Ok(database.close()?)
}

pub fn compact(context: &Context, arguments: &Only) -> Result<()> {
    let database = context.open(&arguments.db)?;
    database.compact()?;
    Ok(database.close()?)
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
