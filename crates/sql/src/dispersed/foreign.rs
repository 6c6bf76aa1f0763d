//! Tables of a database that was made of another one (`restore --as-new`): they lie with clouds as that one has them, which goes on with
//! them. They are read here, and changed there.
//!
//! ```text
//! record of space SETTING: "of-another/" table u64     01
//! ```
//! It is noted when the database is made: what catalogues are called says nothing of a table that is in none, or of which no cloud has been
//! told. It is looked at for databases that were made before that was noted.

use std::collections::BTreeSet;

use counterfoil_disperse::Kept;
use counterfoil_disperse::fragments::Name;
use counterfoil_log::{View, Writer, record_space};
use counterfoil_relation::{Table, TableId};

use super::RECORDS;
use crate::error::{Error, Result};
use crate::transaction::Change;

const OF_ANOTHER: &[u8] = b"of-another/";
const TABLE_BYTES: usize = size_of::<u64>();

fn record(table: &[u8]) -> Vec<u8> {
    [OF_ANOTHER, table].concat()
}

/// Notes, in the commit under way, that all dispersed tables of a database are another one's.
///
/// # Errors
/// Those of writing.
pub fn leave_tables_to_the_other(writer: &mut Writer) -> Result<()> {
    let all = writer.records(record_space::SETTING, RECORDS);
    let number = |(name, _): &(Vec<u8>, _)| name[RECORDS.len()..].get(..TABLE_BYTES).map(<[u8]>::to_vec);
    let tables: BTreeSet<Vec<u8>> = all.iter().filter_map(number).collect();
    tables.iter().try_for_each(|table| Ok(writer.put_record(record_space::SETTING, &record(table), &[1])?))
}

/// Whether that is noted of a table.
pub(super) fn is_noted(view: &dyn View, table: TableId) -> bool {
    view.record(record_space::SETTING, &record(&table.0.to_be_bytes())).is_some()
}

/// The table goes, here.
pub(super) fn forget(change: &mut Change, table: TableId) -> Result<()> {
    Ok(change.lease.delete_record(record_space::SETTING, &record(&table.0.to_be_bytes()))?)
}

/// Whether clouds were told of a table under the name of a catalogue that is none of these.
pub(super) fn is_told_by_another(kept: &Kept, mine: &BTreeSet<Name>) -> bool {
    let mut called = kept.told.values().map(|told| &told.called).filter(|called| !called.is_empty()).peekable();
    called.peek().is_some() && called.all(|called| mine.iter().all(|own| own.as_str() != called))
}

/// Two databases cannot have the same rows at clouds: each would take those of the other for strays.
pub(super) fn refused(table: &Table) -> Error {
    Error::Conflict(format!(
        "table {0}: it lies with clouds as another database has it, of which this one was made (`restore --as-new`): it is changed there; DROP TABLE {0} lets go of it here alone",
        table.name
    ))
}
