//! Bulk loading: record batches from a program into a table, as one statement.

use std::sync::Arc;

use counterfoil_relation::Table;
use datafusion::arrow::array::RecordBatch;

use crate::change::{self, Changed};
use crate::error::{Error, Result};
use crate::insert::Target;
use crate::planner;
use crate::session::Session;
use crate::transaction::Change;

impl Session {
    /// A table by its exact name, as the next statement would see it.
    ///
    /// # Errors
    /// Those of reading.
    pub fn table(&mut self, name: &str) -> Result<Option<Arc<Table>>> {
        let view = self.view()?;
        self.engine().relations().table(&view, name).map_err(Error::Relation)
    }

    /// Adds the rows of batches to a table as one statement and answers how many they were. `columns` names the
    /// columns that the batches have, in order; the others get their defaults. Identity columns take what is given.
    ///
    /// # Errors
    /// Those of INSERT, and the first error among the batches; then none of the rows is there.
    pub fn load(
        &mut self,
        table: &str,
        columns: &[String],
        batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    ) -> Result<u64> {
        if self.guard.transaction.has_failed() {
            return Err(Error::Misuse("the transaction has failed: ROLLBACK it first".into()));
        }
        self.planner.interrupt.clear();
        let loaded = self.change(|session, change| session.load_into(change, table, columns, batches));
        if loaded.is_err() {
            self.guard.transaction.fail();
        }
        Ok(loaded?.rows)
    }

    fn load_into(
        &mut self,
        change: &mut Change,
        table: &str,
        columns: &[String],
        batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    ) -> Result<Changed> {
        let table = planner::table(self.engine(), &*change.lease, table)?;
        let places = columns.iter().map(|name| change::place(&table, name)).collect::<Result<Vec<_>>>()?;
        let target = Target::of_load(table.clone(), places)?;
        let mut changed = Changed::new(table, false, &[]);
        for batch in batches {
            let images = self.images_of(change, &target, &batch?)?;
            self.insert_batch(change, &None, images, &[], &mut changed)?;
        }
        changed.finish(self, change)
    }
}
