//! `sum` of integers that answers an error where it would overflow; the query library's own wraps around.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, PrimitiveArray};
use datafusion::arrow::compute::sum_checked;
use datafusion::arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;
use crate::folding::{Folding, numbers};

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
            let add = |sum: Option<i64>, value| sum.unwrap_or(0).checked_add(value).ok_or_else(overflow);
            return Ok(Box::new(Folding::<Int64Type, _>::new(add)));
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
    Error::Sql("a sum is out of the range of its type: cast to NUMERIC first".into()).into()
}

/// The sum of some numbers, fast where it is one of 64 bits.
fn whole(array: &PrimitiveArray<Int64Type>) -> i128 {
    match sum_checked(array) {
        Ok(sum) => sum.unwrap_or(0).into(),
        Err(_) => array.iter().flatten().map(i128::from).sum(),
    }
}

/// The sum of all rows, or of a window that moves.
#[derive(Debug, Default)]
struct One {
    /// It may leave the range on its way and come back.
    sum: i128,
    /// Values that are not NULL.
    count: u64,
}

impl One {
    fn add(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let array = numbers::<Int64Type>(values)?;
        self.sum += whole(array);
        self.count += (array.len() - array.null_count()) as u64;
        Ok(())
    }

    fn answer(&self) -> Result<ScalarValue, DataFusionError> {
        let sum = i64::try_from(self.sum).map_err(|_| overflow())?;
        Ok(ScalarValue::Int64((self.count > 0).then_some(sum)))
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
        let array = numbers::<Int64Type>(values)?;
        self.sum -= whole(array);
        self.count -= (array.len() - array.null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        Ok(vec![self.answer()?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        self.answer()
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}
