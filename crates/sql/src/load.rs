//! Record batches from a program into a table, as one statement; and rows of a table as record batches.

use std::sync::Arc;

use counterfoil_relation::{RowBlock, Selection, Table};
use datafusion::arrow::array::{RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::{Field, Schema, SchemaRef};

use crate::change::{self, Changed};
use crate::error::{Error, Result};
use crate::gathering::Gathering;
use crate::insert::Target;
use crate::planner;
use crate::rows;
use crate::session::Session;
use crate::statement;
use crate::transaction::Change;
use crate::types;

/// Names and types of a table's columns, as its rows come out.
pub fn table_schema(table: &Table) -> SchemaRef {
    let field = |column: &counterfoil_relation::Column| Field::new(&column.name, types::arrow(&column.kind), true);
    Arc::new(Schema::new(table.columns.iter().map(field).collect::<Vec<_>>()))
}

/// The visible rows of a block of a table.
///
/// # Errors
/// [`Error::Relation`] for images that make no sense.
pub fn table_batch(table: &Table, block: &RowBlock) -> Result<RecordBatch> {
    let places: Vec<u32> = block.visible_rows().map(|row| row as u32).collect();
    let wanted = Selection::At(places);
    let columns = (0..table.columns.len()).map(|column| rows::decode(&block.rows, column, &wanted));
    let columns = columns.collect::<Result<Vec<_>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(wanted.count()));
    Ok(RecordBatch::try_new_with_options(table_schema(table), columns, &options)?)
}

impl Session {
    /// A table by its exact name, as the next statement would see it; what is kept apart of a table has its columns.
    ///
    /// # Errors
    /// Those of reading.
    pub fn table(&mut self, name: &str) -> Result<Option<Arc<Table>>> {
        let view = self.view()?;
        self.engine().relations().table(&view, statement::plain(name)).map_err(Error::Relation)
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
        self.planner.interrupt.clear();
        self.notices.clear();
        self.begin_statement()?;
        let leased = self.lease_named(table);
        let loaded =
            leased.and_then(|()| self.change(|session, change| session.load_into(change, table, columns, batches)));
        if loaded.is_err() {
            self.guard.transaction.fail();
        }
        self.tell_clouds();
        Ok(loaded?.rows)
    }

    fn load_into(
        &mut self,
        change: &mut Change,
        table: &str,
        columns: &[String],
        batches: &mut dyn Iterator<Item = Result<RecordBatch>>,
    ) -> Result<Changed> {
        let table = planner::rows_of(self.engine(), &*change.lease, table)?;
        let places = columns.iter().map(|name| change::place(&table, name)).collect::<Result<Vec<_>>>()?;
        let target = Target::of_load(table.clone(), places)?;
        let mut changed = Changed::new(table, false, &[]);
        let mut gathering = Gathering::default();
        for batch in batches {
            self.planner.interrupt.check()?;
            self.insert_gathered(change, &target, &mut gathering, batch?, &mut changed)?;
        }
        self.insert_left(change, &target, gathering, &mut changed)?;
        changed.finish(self, change)
    }
}
