//! `sum` of integers that answers an error where it would overflow; the query library's own wraps around.
//!
//! A sum may leave the range of its type on its way and come back, whatever parts it is made of: states are wider than what is answered.

use std::mem::size_of;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Decimal128Array, Int64Array, PrimitiveArray};
use datafusion::arrow::compute::sum_checked;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;
use crate::folding::{counts, numbers};

/// The type of sums on their way: that of 2^64 values of BIGINT fits.
const ON_ITS_WAY: DataType = DataType::Decimal128(38, 0);

/// The library's `sum`, but for integers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    inner: Arc<AggregateUDF>,
}

/// `sum`, to take the place of the library's.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Sum { inner: sum_udaf() }))
}

fn is_ours(answer: &FieldRef, is_distinct: bool) -> bool {
    !is_distinct && answer.data_type() == &DataType::Int64
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
        if is_ours(&arguments.return_field, arguments.is_distinct) {
            return Ok(Box::new(One::default()));
        }
        self.inner.accumulator(arguments)
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>, DataFusionError> {
        if !is_ours(&arguments.return_field, arguments.is_distinct) {
            return self.inner.state_fields(arguments);
        }
        Ok(vec![Arc::new(Field::new(format_state_name(arguments.name, "sum"), ON_ITS_WAY, true))])
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        if is_ours(&arguments.return_field, arguments.is_distinct) {
            return Ok(Box::new(Many::default()));
        }
        self.inner.create_groups_accumulator(arguments)
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>, DataFusionError> {
        if is_ours(&arguments.return_field, arguments.is_distinct) {
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

/// A sum as it is answered.
fn in_range(sum: i128) -> Result<i64, DataFusionError> {
    i64::try_from(sum).map_err(|_| overflow())
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
    /// Values that are not NULL, or sums of such.
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
        Ok(ScalarValue::Int64((self.count > 0).then(|| in_range(self.sum)).transpose()?))
    }
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.add(values)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        for sum in numbers::<Decimal128Type>(states)?.iter().flatten() {
            (self.sum, self.count) = (self.sum + sum, self.count + 1);
        }
        Ok(())
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
        Ok(vec![ScalarValue::Decimal128((self.count > 0).then_some(self.sum), 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        self.answer()
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The sums of many groups at once.
#[derive(Default)]
struct Many {
    sums: Vec<i128>,
    /// Whether there is one: of no values it is NULL.
    is_there: Vec<bool>,
}

impl Many {
    fn make_room(&mut self, groups: usize) {
        self.sums.resize(groups, 0);
        self.is_there.resize(groups, false);
    }

    fn add(&mut self, group: usize, sum: i128) {
        self.sums[group] += sum;
        self.is_there[group] = true;
    }

    fn take(&mut self, emit: EmitTo) -> impl Iterator<Item = Option<i128>> {
        let (sums, are_there) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.is_there));
        sums.into_iter().zip(are_there).map(|(sum, is_there)| is_there.then_some(sum))
    }
}

fn states(sums: impl Iterator<Item = Option<i128>>) -> Vec<ArrayRef> {
    vec![Arc::new(sums.collect::<Decimal128Array>().with_data_type(ON_ITS_WAY))]
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let array = numbers::<Int64Type>(values)?;
        self.make_room(total);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(array, filter, *row)) {
            self.add(*group, array.value(row).into());
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<(), DataFusionError> {
        let array = numbers::<Decimal128Type>(states)?;
        self.make_room(total);
        for (sum, group) in array.iter().zip(groups) {
            sum.into_iter().for_each(|sum| self.add(*group, sum));
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef, DataFusionError> {
        let sums = self.take(emit).map(|sum| sum.map(in_range).transpose());
        Ok(Arc::new(sums.collect::<Result<Int64Array, _>>()?))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>, DataFusionError> {
        Ok(states(self.take(emit)))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let array = numbers::<Int64Type>(values)?;
        Ok(states((0..array.len()).map(|row| counts(array, filter, row).then(|| array.value(row).into()))))
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<i128>() + self.is_there.capacity()
    }
}
