//! `min` and `max` of floating-point numbers in groups, in the order of ORDER BY; the query library's own, where there are groups,
//! forget what came before each NaN, so that their answer hangs on the order of the rows.

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray, BooleanArray, PrimitiveArray};
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::DataFusionError;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;

/// The library's `min` or `max`, but for floating-point numbers in groups.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Extreme {
    inner: Arc<AggregateUDF>,
    greatest: bool,
}

/// `min` and `max`, to take the place of the library's.
pub(crate) fn all() -> [Arc<AggregateUDF>; 2] {
    [(min_udaf(), false), (max_udaf(), true)]
        .map(|(inner, greatest)| Arc::new(AggregateUDF::new_from_impl(Extreme { inner, greatest })))
}

impl AggregateUDFImpl for Extreme {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        self.inner.return_type(arguments)
    }

    fn coerce_types(&self, arguments: &[DataType]) -> Result<Vec<DataType>, DataFusionError> {
        self.inner.coerce_types(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>, DataFusionError> {
        self.inner.accumulator(arguments)
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        self.inner.groups_accumulator_supported(arguments)
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        let greatest = self.greatest;
        match arguments.return_field.data_type() {
            DataType::Float64 => {
                let is_better = move |new: f64, old: f64| new.total_cmp(&old).is_gt() == greatest;
                Ok(Box::new(Many::<Float64Type, _> { extremes: Vec::new(), is_better }))
            }
            DataType::Float32 => {
                let is_better = move |new: f32, old: f32| new.total_cmp(&old).is_gt() == greatest;
                Ok(Box::new(Many::<Float32Type, _> { extremes: Vec::new(), is_better }))
            }
            _ => self.inner.create_groups_accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>, DataFusionError> {
        self.inner.create_sliding_accumulator(arguments)
    }

    fn is_descending(&self) -> Option<bool> {
        self.inner.inner().is_descending()
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn value_from_stats(&self, arguments: &StatisticsArgs<'_>) -> Option<ScalarValue> {
        self.inner.value_from_stats(arguments)
    }

    fn set_monotonicity(&self, kind: &DataType) -> SetMonotonicity {
        self.inner.inner().set_monotonicity(kind)
    }
}

/// The extremes of many groups; `None` where no value came yet.
struct Many<T: ArrowPrimitiveType, F> {
    extremes: Vec<Option<T::Native>>,
    /// Whether the first takes the place of the second. Of equal ones it does not matter which stays: they have the same bits.
    is_better: F,
}

impl<T, F> Many<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(T::Native, T::Native) -> bool + Send + 'static,
{
    fn add(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let array = numbers::<T>(values)?;
        self.extremes.resize(total, None);
        for (row, group) in groups.iter().enumerate() {
            if !array.is_valid(row) || filter.is_some_and(|filter| !filter.is_valid(row) || !filter.value(row)) {
                continue;
            }
            let (new, extreme) = (array.value(row), &mut self.extremes[*group]);
            if extreme.is_none_or(|old| (self.is_better)(new, old)) {
                *extreme = Some(new);
            }
        }
        Ok(())
    }
}

fn numbers<T: ArrowPrimitiveType>(values: &[ArrayRef]) -> Result<&PrimitiveArray<T>, DataFusionError> {
    let array = values.first().and_then(|array| array.as_primitive_opt::<T>());
    array.ok_or_else(|| Error::Bug("an extreme of something else".into()).into())
}

impl<T, F> GroupsAccumulator for Many<T, F>
where
    T: ArrowPrimitiveType,
    F: Fn(T::Native, T::Native) -> bool + Send + 'static,
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
        Ok(Arc::new(PrimitiveArray::<T>::from_iter(emit.take_needed(&mut self.extremes))))
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
        let counts = |row: usize| filter.is_none_or(|filter| filter.is_valid(row) && filter.value(row));
        let state = (0..array.len()).map(|row| (array.is_valid(row) && counts(row)).then(|| array.value(row)));
        Ok(vec![Arc::new(PrimitiveArray::<T>::from_iter(state))])
    }

    fn size(&self) -> usize {
        self.extremes.capacity() * size_of::<Option<T::Native>>()
    }
}
