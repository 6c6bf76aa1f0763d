//! Blocks of points as batches of rows.

use std::sync::Arc;

use counterfoil_relation::Table;
use counterfoil_series::Block;
use datafusion::arrow::array::{ArrayRef, Decimal128Array, RecordBatch, RecordBatchOptions};
use datafusion::arrow::datatypes::SchemaRef;

use super::{Form, change, rows};
use crate::error::{Error, Result};
use crate::scan::Output;

/// What becomes of blocks.
pub(super) struct Blocks {
    pub(super) table: Arc<Table>,
    /// With the places of the columns that are read.
    pub(super) form: Form,
    /// The columns that name series.
    pub(super) keys: Arc<[Option<ArrayRef>]>,
    pub(super) output: Arc<Vec<Output>>,
    pub(super) schema: SchemaRef,
}

impl Blocks {
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    pub(super) fn batch(&self, block: &Block) -> Result<RecordBatch> {
        let column = |output: &Output| match output {
            Output::Column(place) => {
                let array = rows::arrays(&self.table, &self.form, block, &[*place], &self.keys)?.pop();
                array.ok_or_else(|| Error::Bug("a column that is not there".into()))
            }
            Output::RowId => {
                let numbers = block.points.times.iter().map(|time| change::number(block.series, *time));
                Ok(Arc::new(Decimal128Array::from_iter_values(numbers).with_precision_and_scale(38, 0)?) as ArrayRef)
            }
        };
        let columns = self.output.iter().map(column).collect::<Result<Vec<_>>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(block.points.len()));
        Ok(RecordBatch::try_new_with_options(self.schema.clone(), columns, &options)?)
    }
}
