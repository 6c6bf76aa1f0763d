//! From a table as it is to the edit that makes the published one equal to it.

use std::collections::BTreeMap;

use counterfoil_proof::{FIRST_RID, Value};

use crate::edit::Edit;
use crate::error::Error;
use crate::ledger::Ledger;
use crate::publication::Publication;

impl<L: Ledger> Publication<L> {
    /// The edit after which exactly `rows` are published. Rows that are there stay; a row whose key in the first order is
    /// there with other values is an update; rows of one key are matched in their order.
    ///
    /// # Errors
    /// [`Error::Misuse`]: a row that cannot be published; it says which.
    pub fn difference(&self, rows: Vec<Vec<Value>>) -> Result<Edit, Error> {
        let definition = self.definition();
        let encoded = |values: &[Value]| {
            let mut bytes = Vec::new();
            for (column, value) in definition.columns.iter().zip(values) {
                column
                    .kind
                    .encode(value, &mut bytes)
                    .map_err(|_| Error::Misuse(format!("a value that column {} cannot hold", column.name)))?;
            }
            Ok::<_, Error>(bytes)
        };
        let mut there: BTreeMap<Vec<u8>, Vec<(u64, Vec<u8>)>> = BTreeMap::new();
        for rid in self.shelf().rids(0).filter(|rid| *rid >= FIRST_RID) {
            let values = self.shelf().entry(rid).and_then(|entry| entry.record.as_ref()).map(|record| &record.values);
            let values = values.ok_or(Error::Corrupt("a record that was there"))?;
            let key = definition.key(0, |at| &values[usize::from(at)])?;
            there.entry(key).or_default().push((rid, encoded(values)?));
        }
        let mut edit = Edit::default();
        let mut others: BTreeMap<Vec<u8>, Vec<Vec<Value>>> = BTreeMap::new();
        for (at, values) in rows.into_iter().enumerate() {
            if values.len() != definition.columns.len() {
                return Err(Error::Misuse(format!("row {} has {} values", at + 1, values.len())));
            }
            let bytes = encoded(&values)?;
            let key = definition.key(0, |at| &values[usize::from(at)])?;
            let same = there.get_mut(&key).and_then(|known| {
                let found = known.iter().position(|(_, known)| *known == bytes)?;
                Some(known.remove(found))
            });
            if same.is_none() {
                others.entry(key).or_default().push(values);
            }
        }
        for (key, rows) in others {
            let mut left = there.get_mut(&key).map(std::mem::take).unwrap_or_default().into_iter();
            for values in rows {
                match left.next() {
                    Some((rid, _)) => edit.update.push((rid, values)),
                    None => edit.insert.push(values),
                }
            }
            there.insert(key, left.collect());
        }
        edit.delete = there.into_values().flatten().map(|(rid, _)| rid).collect();
        Ok(edit)
    }
}
