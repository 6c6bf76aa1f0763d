//! In which order a scan gives rows, and what of it a plan may build upon.
//!
//! ```text
//! part 0: series in the order of their keys, each by time | part 1: the series after them | ...
//! ```
//! - Every part is ordered by (the columns that name a series, the time), and the parts follow each other in that order.
//! - All rows of a series are in one part; a part begins with the keys that the plan is told of.
//! - A column that has one value in all series that are read is told of as a constant: then `ORDER BY ts` of one series is no
//!   sort either.
//!
//! Keys are ordered by the columns that the query library sees, with its own comparison: what it would sort, it finds sorted.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::{SortColumn, SortOptions, lexsort_to_indices, take};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{DataFusionError, ScalarValue, SplitPoint};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr::{
    AcrossPartitions, ConstExpr, EquivalenceProperties, LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr,
    RangePartitioning,
};

use super::Form;
use crate::error::Result;
use crate::scan::Output;

const ASCENDING: SortOptions = SortOptions { descending: false, nulls_first: false };

/// The series that a scan reads, in the order of their keys.
pub(crate) struct Order {
    /// Their numbers.
    pub(crate) series: Vec<u32>,
    /// The columns that name them, by place in the table, one row for each.
    keys: Vec<(usize, ArrayRef)>,
}

impl Order {
    /// Of these series; `keys` has a row for every series of the table.
    ///
    /// # Errors
    /// Those of the query library.
    pub(crate) fn of(series: Vec<u32>, form: &Form, keys: &[Option<ArrayRef>]) -> Result<Order> {
        let wanted = UInt32Array::from(series);
        let column = |place: &usize| keys.get(*place)?.as_ref().map(|array| (*place, array));
        let columns: Vec<(usize, &ArrayRef)> = form.keys.iter().filter_map(column).collect();
        let chosen = |of: &UInt32Array| -> Result<Vec<(usize, ArrayRef)>> {
            columns.iter().map(|(place, array)| Ok((*place, take(array.as_ref(), of, None)?))).collect()
        };
        let unsorted = chosen(&wanted)?;
        if unsorted.is_empty() || wanted.len() < 2 {
            return Ok(Order { series: wanted.values().to_vec(), keys: unsorted });
        }
        let by = |(_, values): &(usize, ArrayRef)| SortColumn { values: values.clone(), options: Some(ASCENDING) };
        let places = lexsort_to_indices(&unsorted.iter().map(by).collect::<Vec<_>>(), None)?;
        let sorted = places.values().iter().map(|place| wanted.value(*place as usize)).collect();
        let keys = unsorted.iter().map(|(place, values)| Ok((*place, take(values.as_ref(), &places, None)?)));
        Ok(Order { series: sorted, keys: keys.collect::<Result<_>>()? })
    }

    /// The value that a column of the key has in all series.
    fn constant(&self, values: &ArrayRef, is_first: bool) -> Result<Option<ScalarValue>, DataFusionError> {
        let count = values.len();
        if count == 0 {
            return Ok(None);
        }
        let (first, last) = (ScalarValue::try_from_array(values, 0)?, ScalarValue::try_from_array(values, count - 1)?);
        // Of the first column the ends tell; another one begins anew under each value of those before it.
        let mut between = if is_first { 1..1 } else { 1..count - 1 };
        let same = first == last
            && between.try_fold(true, |same, at| {
                Ok::<_, DataFusionError>(same && ScalarValue::try_from_array(values, at)? == first)
            })?;
        Ok(same.then_some(first))
    }

    /// What a plan is told of rows with these columns, read in parts of so many series.
    ///
    /// # Errors
    /// Those of the query library.
    pub(crate) fn properties(
        &self,
        form: &Form,
        output: &[Output],
        schema: &SchemaRef,
        per_part: usize,
    ) -> Result<(EquivalenceProperties, Partitioning), DataFusionError> {
        let parts = parts(self.series.len(), per_part);
        let mut told = Vec::new();
        let mut constants = Vec::new();
        let mut splits = vec![Vec::new(); parts - 1];
        let mut all_shown = true;
        for (at, (place, values)) in self.keys.iter().enumerate() {
            let shown = column(output, schema, *place);
            if let Some(value) = self.constant(values, at == 0)? {
                let uniform = AcrossPartitions::Uniform(Some(value));
                constants.extend(shown.map(|column| ConstExpr::new(column, uniform)));
                continue;
            }
            for (part, split) in splits.iter_mut().enumerate() {
                split.push(ScalarValue::try_from_array(values, (part + 1) * per_part)?);
            }
            all_shown &= shown.is_some();
            told.extend(shown.filter(|_| all_shown).map(|column| PhysicalSortExpr::new(column, ASCENDING)));
        }
        let partitioning = match LexOrdering::new(told.clone()) {
            Some(keys) if parts > 1 && all_shown => {
                let splits = splits.into_iter().map(SplitPoint::new).collect();
                Partitioning::Range(RangePartitioning::try_new(keys, splits)?)
            }
            _ => Partitioning::UnknownPartitioning(parts),
        };
        if all_shown && let Some(time) = column(output, schema, form.time) {
            told.push(PhysicalSortExpr::new(time, ASCENDING));
        }
        let mut properties = EquivalenceProperties::new_with_orderings(schema.clone(), LexOrdering::new(told));
        properties.add_constants(constants)?;
        Ok((properties, partitioning))
    }
}

/// How many parts there are of so many series each.
pub(crate) fn parts(series: usize, per_part: usize) -> usize {
    series.div_ceil(per_part.max(1)).max(1)
}

/// A column of the table where it stands among those that are given.
fn column(output: &[Output], schema: &SchemaRef, place: usize) -> Option<Arc<dyn PhysicalExpr>> {
    let at = output.iter().position(|output| matches!(output, Output::Column(column) if *column == place))?;
    Some(Arc::new(Column::new(schema.field(at).name(), at)))
}
