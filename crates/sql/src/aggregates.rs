//! `sum` of integers that answers an error where it would overflow; the query library's own wraps around.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int64Array};
use datafusion::arrow::compute::sum_checked;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;

/// The library's `sum`, but for integers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    inner: Arc<AggregateUDF>,
}

/// `sum`, to take the place of the library's.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Sum { inner: sum_udaf() }))
}

fn is_ours(arguments: &AccumulatorArgs<'_>) -> bool {
    !arguments.is_distinct && arguments.return_field.data_type() == &DataType::Int64
}

impl AggregateUDFImpl for Sum {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>, DataFusionError> {
        if is_ours(&arguments) {
            return Ok(Box::new(One::default()));
        }
        self.inner.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>, DataFusionError> {
        self.inner.state_fields(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        if is_ours(&arguments) {
            return Ok(Box::new(Many::default()));
        }
        self.inner.create_groups_accumulator(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>, DataFusionError> {
        if is_ours(&arguments) {
            return Ok(Box::new(One::default()));
        }
        self.inner.create_sliding_accumulator(arguments)
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// A sum that BIGINT cannot hold.
pub(crate) fn overflow() -> DataFusionError {
    Error::Sql("a sum is out of the range of BIGINT: cast to NUMERIC first".into()).into()
}

fn integers(values: &[ArrayRef]) -> Result<&Int64Array, DataFusionError> {
    let array = values.first().and_then(|array| array.as_primitive_opt::<Int64Type>());
    array.ok_or_else(|| Error::Bug("a sum of something else".into()).into())
}

/// The sum of all rows, or of a window that moves.
#[derive(Debug, Default)]
struct One {
    sum: i64,
    /// Values that are not NULL.
    count: u64,
}

impl One {
    fn add(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let array = integers(values)?;
        if let Some(sum) = sum_checked(array).map_err(|_| overflow())? {
            self.sum = self.sum.checked_add(sum).ok_or_else(overflow)?;
            self.count += (array.len() - array.null_count()) as u64;
        }
        Ok(())
    }

    fn answer(&self) -> ScalarValue {
        ScalarValue::Int64((self.count > 0).then_some(self.sum))
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.add(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.add(states)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let array = integers(values)?;
        if let Some(sum) = sum_checked(array).map_err(|_| overflow())? {
            self.sum = self.sum.checked_sub(sum).ok_or_else(overflow)?;
            self.count -= (array.len() - array.null_count()) as u64;
        }
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        Ok(vec![self.answer()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        Ok(self.answer())
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The sums of many groups at once; `None` where no value came yet.
#[derive(Debug, Default)]
struct Many {
    sums: Vec<Option<i64>>,
}

impl Many {
    fn add(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let array = integers(values)?;
        self.sums.resize(total, None);
        for (row, group) in groups.iter().enumerate() {
            let counts = array.is_valid(row) && filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
            if counts {
                let sum = self.sums[*group].unwrap_or(0).checked_add(array.value(row)).ok_or_else(overflow)?;
                self.sums[*group] = Some(sum);
            }
        }
        Ok(())
    }
}

impl GroupsAccumulator for Many {
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
        Ok(Arc::new(Int64Array::from(emit.take_needed(&mut self.sums))))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>, DataFusionError> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let array = integers(values)?;
        let counts = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let state = (0..array.len()).map(|row| (array.is_valid(row) && counts(row)).then(|| array.value(row)));
        Ok(vec![Arc::new(Int64Array::from_iter(state))])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Option<i64>>()
    }
}
