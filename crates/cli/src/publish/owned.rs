//! A published table, opened from its owner's state.

use counterfoil::Database;
use counterfoil::publishing::{TableLedger, note_signed, open};
use counterfoil_proof::SecretKey;
use counterfoil_publish::Publication;

use crate::arguments::StateOf;
use crate::context::Context;
use crate::failure::{Result, misuse};
use crate::terminal;

/// Does something with what is published from a state, and closes it.
pub fn with<T>(
    context: &Context,
    state: &StateOf,
    roots: &[SecretKey],
    work: impl FnOnce(&mut Publication<TableLedger>) -> Result<T>,
) -> Result<T> {
    let place = &state.state;
    let database = context.open(place)?;
    let ledger = match &state.table {
        None => TableLedger::new(database.connect()?)?,
        Some(table) => TableLedger::of_published(&database, table)?,
    };
    let done = known(&database, ledger, place, roots).and_then(|known| {
        let advice = "name the state of a published table; of one that PUBLISH published, its database and --table";
        let nothing = || misuse("nothing is published from here").at(place).advise(advice);
        let mut publication = known.ok_or_else(nothing)?;
        let done = work(&mut publication)?;
        if let Some(table) = &state.table {
            note_signed(&database, table, &publication)?;
        }
        Ok(done)
    });
    let closed = database.close();
    let done = done?;
    closed?;
    Ok(done)
}

/// What is published from a ledger already; nothing if making it was cut short.
pub fn known(
    database: &Database,
    ledger: TableLedger,
    place: &str,
    roots: &[SecretKey],
) -> Result<Option<Publication<TableLedger>>> {
    let Some(opened) = open(database, ledger, roots).map_err(|error| error.at(place))? else { return Ok(None) };
    if opened.was_put_back {
        terminal::note(
            "this state was put back: a new key signs from now on, and what was published since the copy is withdrawn",
        );
    }
    Ok(Some(opened.publication))
}
