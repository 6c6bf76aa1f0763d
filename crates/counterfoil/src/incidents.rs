//! What the owner must be told of for ever: counters adopted, backups restored. The bytes are `sql`'s, which shows them
//! as the table `counterfoil.incidents`.

use counterfoil_log::{View, Writer, record_space};
pub use counterfoil_sql::Incident;
pub(crate) use counterfoil_sql::IncidentKind;

use crate::error::Result;

/// Leaves one behind, in a commit of its own.
pub(crate) fn record(writer: &mut Writer, kind: IncidentKind, text: &str) -> Result<()> {
    writer.begin()?;
    put(writer, kind, text)?;
    writer.commit()?;
    Ok(())
}

/// Leaves one behind, in the commit under way.
pub(crate) fn put(writer: &mut Writer, kind: IncidentKind, text: &str) -> Result<()> {
    let (name, value) = counterfoil_sql::next_incident(writer, crate::time::now(), kind, text);
    Ok(writer.put_record(record_space::INCIDENT, &name, &value)?)
}

/// All of them.
pub(crate) fn all(view: &dyn View) -> Result<Vec<Incident>> {
    Ok(counterfoil_sql::incidents(view)?)
}
