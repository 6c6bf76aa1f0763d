//! What a change would undo: a database that was put back takes what clouds were told since for its own, of which it knows nothing.

use counterfoil_log::View;
use counterfoil_relation::Table;

use super::catalogue;
use super::claiming::Look;
use super::learning::later;
use super::lease::claiming;
use super::{is_put_back, kept, shared};
use crate::error::{Error, Result};
use crate::session::Session;

impl Session {
    /// Refuses a change of a table of which clouds show a later version of this client's own: rows that were acknowledged would go at all
    /// clouds, without a word. What another client has told is learned, and undone by nothing.
    pub(super) fn undoes_nothing(&self, view: &dyn View, table: &Table) -> Result<()> {
        let kept = kept(view, table)?;
        if !is_put_back(view, &kept)? || catalogue::is_learned(&kept) {
            return Ok(());
        }
        let dispersed = shared(self.engine());
        let Some((claiming, past)) = claiming(dispersed, view, table, &kept)? else { return Ok(()) };
        let (looks, number) = (claiming.peek(dispersed), kept.declaration().table);
        let shown = looks.iter().filter_map(Look::contents).flat_map(|contents| &contents.tables);
        let shown = shown.filter(|(shown, _)| shown.table == number).map(|(shown, _)| shown.version).max();
        let is_later = shown.is_some_and(|shown| shown > kept.version);
        match is_later && later(table, &claiming, (&kept, past.as_ref()), &looks)?.is_none() {
            true => Err(undone(&table.name)),
            false => Ok(()),
        }
    }
}

fn undone(table: &str) -> Error {
    Error::Misuse(format!(
        "table {table}: this database was put back, and its clouds were told of changes since its copy was made, which this one would undo: \
         REPAIR TABLE {table} GIVE WAY takes them, `counterfoil restore --from` brings them back in its place, and REPAIR TABLE {table} \
         goes on from this copy without them; nothing has changed"
    ))
}
