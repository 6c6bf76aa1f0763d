//! Aggregates of many groups at once, each a number into which values are folded one by one.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{EmitTo, GroupsAccumulator};

use crate::error::Error;

/// The one column that an aggregate is asked of.
pub(crate) fn numbers<T: ArrowPrimitiveType>(values: &[ArrayRef]) -> Result<&PrimitiveArray<T>, DataFusionError> {
    let array = values.first().and_then(|array| array.as_primitive_opt::<T>());
    array.ok_or_else(|| Error::Bug("an aggregate of something else".into()).into())
}

/// A number for each group; `None` where no value came yet.
pub(crate) struct Folding<T: ArrowPrimitiveType, F> {
    folded: Vec<Option<T::Native>>,
    /// What becomes of a number when a value comes. Numbers of parts are folded in the same way.
    fold: F,
}

impl<T, F> Folding<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(Option<T::Native>, T::Native) -> Result<T::Native, DataFusionError> + Send + 'static,
{
    pub(crate) fn new(fold: F) -> Self {
        Folding { folded: Vec::new(), fold }
    }

    fn add(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let array = numbers::<T>(values)?;
        self.folded.resize(total, None);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(array, filter, *row)) {
            let folded = &mut self.folded[*group];
            *folded = Some((self.fold)(*folded, array.value(row))?);
        }
        Ok(())
    }
}

/// Whether a row has a value that is asked for.
pub(crate) fn counts(array: &dyn Array, filter: Option<&BooleanArray>, row: usize) -> bool {
    array.is_valid(row) && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row))
}

impl<T, F> GroupsAccumulator for Folding<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(Option<T::Native>, T::Native) -> Result<T::Native, DataFusionError> + Send + 'static,
{
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        self.add(values, groups, filter, total)
    }

    fn merge_batch(&mut self, values: &[ArrayRef], groups: &[usize], total: usize) -> Result<(), DataFusionError> {
        self.add(values, groups, None, total)
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef, DataFusionError> {
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(emit.take_needed(&mut self.folded))))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>, DataFusionError> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let array = numbers::<T>(values)?;
        let state = (0..array.len()).map(|row| counts(array, filter, row).then(|| array.value(row)));
        Ok(vec![Arc::new(PrimitiveArray::<T>::from_iter(state))])
    }

    fn size(&self) -> usize {
        self.folded.capacity() * size_of::<Option<T::Native>>()
    }
}
