//! A published table, opened from its owner's state.

use counterfoil::Database;
use counterfoil::publishing::{Alone, Opened, TableLedger, is_published, look, note_signed, open};
use counterfoil_proof::SecretKey;
use counterfoil_publish::Publication;

use crate::arguments::StateOf;
use crate::closing;
use crate::context::Context;
use crate::failure::{Failure, Result, misuse};
use crate::terminal;

/// Does something with what is published from a state, and closes it.
pub fn with<T>(
    context: &Context,
    state: &StateOf,
    roots: &[SecretKey],
    work: impl FnOnce(&mut Publication<TableLedger>) -> Result<T>,
) -> Result<T> {
    let database = context.open(&state.state)?;
    let done = with_alone(&database, state, roots, work);
    let closed = closing::close(database);
    let done = done?;
    closed?;
    Ok(done)
}

fn with_alone<T>(
    database: &Database,
    state: &StateOf,
    roots: &[SecretKey],
    work: impl FnOnce(&mut Publication<TableLedger>) -> Result<T>,
) -> Result<T> {
    let place = &state.state;
    let alone = alone(database, place)?;
    let ledger = match &state.table {
        None => TableLedger::new(&alone)?,
        Some(table) => TableLedger::of_published(&alone, table)?,
    };
    let mut publication = known(database, ledger, place, roots)?.ok_or_else(|| nothing(place))?;
    let done = work(&mut publication)?;
    if let Some(table) = &state.table {
        note_signed(database, table, &publication)?;
    }
    Ok(done)
}

/// Shows what is published from a state, as it is at this moment: others may be publishing from it.
pub fn shown<T>(context: &Context, state: &StateOf, show: impl FnOnce(&Publication<TableLedger>) -> T) -> Result<T> {
    let place = &state.state;
    let database = context.open_to_read(place)?;
    let looked = TableLedger::to_look_at(&database, state.table.as_deref()).and_then(|ledger| match ledger {
        Some(ledger) => look(&database, ledger),
        None => Ok(None),
    });
    let shown = match looked.map_err(|error| error.at(place))? {
        Some(Opened { publication, was_put_back }) => {
            if was_put_back {
                terminal::note("this state was put back: a new key signs from the next time on that it is published");
            }
            let is_live = |table: &String| is_published(&database, table).map_err(|error| error.at(place));
            if !state.table.as_ref().map_or(Ok(true), is_live)? {
                terminal::note(
                    "UNPUBLISH ended it: its keys are kept, and PUBLISH goes on under the same owner's name",
                );
            }
            show(&publication)
        }
        None => return Err(nothing(place)),
    };
    database.close()?;
    Ok(shown)
}

fn nothing(place: &str) -> Failure {
    let advice = "name the state of a published table; of one that PUBLISH published, its database and --table";
    misuse("nothing is published from here").at(place).advise(advice).into()
}

/// The right to sign from a state: nobody else publishes from it meanwhile.
pub fn alone<'d>(database: &'d Database, place: &str) -> Result<Alone<'d>> {
    Ok(Alone::with(database).map_err(|error| error.at(place))?)
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
