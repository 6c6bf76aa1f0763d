//! `min` and `max` of floating-point numbers in groups, in the order of ORDER BY; the query library's own, where there are groups,
//! forget what came before each NaN, so that their answer hangs on the order of the rows.

use std::sync::Arc;

use datafusion::arrow::array::ArrowPrimitiveType;
use datafusion::arrow::datatypes::{DataType, Float32Type, Float64Type};
use datafusion::common::DataFusionError;
use datafusion::functions_aggregate::min_max::{max_udaf, min_udaf};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::utils::AggregateOrderSensitivity;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, GroupsAccumulator, ReversedUDAF, SetMonotonicity, Signature,
    StatisticsArgs,
};
use datafusion::scalar::ScalarValue;

use crate::folding::Folding;

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
                Ok(Box::new(better::<Float64Type>(is_better)))
            }
            DataType::Float32 => {
                let is_better = move |new: f32, old: f32| new.total_cmp(&old).is_gt() == greatest;
                Ok(Box::new(better::<Float32Type>(is_better)))
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

/// Keeps of each group the value that is better than all others. Of equal ones it does not matter which stays: they have the same bits.
fn better<T: ArrowPrimitiveType>(
    is_better: impl Fn(T::Native, T::Native) -> bool + Send + 'static,
) -> impl GroupsAccumulator {
    Folding::<T, _>::new(move |old: Option<T::Native>, new| Ok(old.filter(|old| !is_better(new, *old)).unwrap_or(new)))
}
