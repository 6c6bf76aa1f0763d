//! `avg` of integers from their exact sum, divided once; the query library's own adds up floating-point numbers, which rounds beyond
//! 2^53, and by the order of the rows.

use std::collections::HashSet;
use std::mem::size_of;
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, ListArray, UInt64Array,
};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::DataFusionError;
use datafusion::common::types::{NativeType, logical_float64, logical_int64};
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
    TypeSignature, TypeSignatureClass, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::error::Error;
use crate::folding::{counts, numbers};

/// The type of exact sums: 2^64 values of BIGINT fit.
const SUM: DataType = DataType::Decimal128(38, 0);

/// The library's `avg`, but for integers.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Mean {
    inner: Arc<AggregateUDF>,
    signature: Signature,
}

/// `avg`, to take the place of the library's.
pub(crate) fn mean() -> Arc<AggregateUDF> {
    let coerced = |from, to, native| TypeSignature::Coercible(vec![Coercion::new_implicit(to, vec![from], native)]);
    let exactly = |class| TypeSignature::Coercible(vec![Coercion::new_exact(class)]);
    let (integer, float) = (TypeSignatureClass::Integer, TypeSignatureClass::Float);
    let kinds = vec![
        exactly(TypeSignatureClass::Decimal),
        exactly(TypeSignatureClass::Duration),
        coerced(integer, TypeSignatureClass::Native(logical_int64()), NativeType::Int64),
        coerced(float, TypeSignatureClass::Native(logical_float64()), NativeType::Float64),
    ];
    let signature = Signature::one_of(kinds, Volatility::Immutable);
    Arc::new(AggregateUDF::new_from_impl(Mean { inner: avg_udaf(), signature }))
}

fn is_ours(kind: &FieldRef) -> bool {
    kind.data_type() == &DataType::Int64
}

impl AggregateUDFImpl for Mean {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        self.inner.return_type(arguments)
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>, DataFusionError> {
        match (is_ours(&arguments.expr_fields[0]), arguments.is_distinct) {
            (false, _) => self.inner.accumulator(arguments),
            (true, false) => Ok(Box::new(One::default())),
            (true, true) => Ok(Box::new(Distinct::default())),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>, DataFusionError> {
        if !is_ours(&arguments.input_fields[0]) {
            return self.inner.state_fields(arguments);
        }
        let field = |part, kind| Arc::new(Field::new(format_state_name(arguments.name, part), kind, true));
        if arguments.is_distinct {
            return Ok(vec![field("values", DataType::new_list(DataType::Int64, true))]);
        }
        Ok(vec![field("count", DataType::UInt64), field("sum", SUM)])
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        match is_ours(&arguments.expr_fields[0]) {
            true => !arguments.is_distinct,
            false => self.inner.groups_accumulator_supported(arguments),
        }
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        match is_ours(&arguments.expr_fields[0]) {
            true => Ok(Box::new(Many::default())),
            false => self.inner.create_groups_accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>, DataFusionError> {
        match is_ours(&arguments.expr_fields[0]) {
            true => self.accumulator(arguments),
            false => self.inner.create_sliding_accumulator(arguments),
        }
    }

    fn reverse_expr(&self) -> ReversedUDAF {
        ReversedUDAF::Identical
    }

    fn order_sensitivity(&self) -> AggregateOrderSensitivity {
        AggregateOrderSensitivity::Insensitive
    }
}

/// What a mean is made of.
#[derive(Clone, Copy, Debug, Default)]
struct Parts {
    count: u64,
    sum: i128,
}

impl Parts {
    fn add(&mut self, value: i64) {
        // So many rows as would overflow these are in no table.
        self.count += 1;
        self.sum += i128::from(value);
    }

    fn remove(&mut self, value: i64) {
        self.count -= 1;
        self.sum -= i128::from(value);
    }

    fn merge(&mut self, other: Parts) {
        self.count += other.count;
        self.sum += other.sum;
    }

    fn mean(self) -> Option<f64> {
        // As relations divide where they answer themselves: the same question has one answer, whoever is asked.
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }
}

/// States as columns: how many, and their sum; NULL of none.
fn columns(parts: &[Parts]) -> Result<Vec<ArrayRef>, DataFusionError> {
    let counts: UInt64Array = parts.iter().map(|parts| Some(parts.count)).collect();
    let sums: Decimal128Array = parts.iter().map(|parts| (parts.count > 0).then_some(parts.sum)).collect();
    Ok(vec![Arc::new(counts), Arc::new(sums.with_data_type(SUM))])
}

/// What [`columns`] made; a state whose count or sum is NULL is one of no values.
fn parts(states: &[ArrayRef]) -> Result<impl Iterator<Item = Parts>, DataFusionError> {
    let counts = numbers::<UInt64Type>(states)?.iter();
    let sums = numbers::<Decimal128Type>(states.get(1..).unwrap_or_default())?.iter();
    Ok(counts.zip(sums).map(|(count, sum)| Parts { count: count.unwrap_or(0), sum: sum.unwrap_or(0) }))
}

/// The mean of all rows, or of a window that moves.
#[derive(Debug, Default)]
struct One(Parts);

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        numbers::<Int64Type>(values)?.iter().flatten().for_each(|value| self.0.add(value));
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        parts(states)?.for_each(|parts| self.0.merge(parts));
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        numbers::<Int64Type>(values)?.iter().flatten().for_each(|value| self.0.remove(value));
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        let sum = (self.0.count > 0).then_some(self.0.sum);
        Ok(vec![ScalarValue::UInt64(Some(self.0.count)), ScalarValue::Decimal128(sum, 38, 0)])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        Ok(ScalarValue::Float64(self.0.mean()))
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The mean of values each of which counts once.
#[derive(Debug, Default)]
struct Distinct(HashSet<i64>);

impl Accumulator for Distinct {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.0.extend(numbers::<Int64Type>(values)?.iter().flatten());
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        let lists = states.first().and_then(|state| state.as_any().downcast_ref::<ListArray>());
        let lists = lists.ok_or_else(|| Error::Bug("a state that is no list".into()))?;
        lists.iter().flatten().try_for_each(|list| self.update_batch(&[list]))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        let values: Int64Array = self.0.iter().copied().map(Some).collect();
        Ok(vec![SingleRowListArrayBuilder::new(Arc::new(values)).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        let mut parts = Parts::default();
        self.0.iter().for_each(|value| parts.add(*value));
        Ok(ScalarValue::Float64(parts.mean()))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.0.capacity() * size_of::<i64>()
    }
}

/// The means of many groups at once.
#[derive(Default)]
struct Many(Vec<Parts>);

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let array = numbers::<Int64Type>(values)?;
        self.0.resize(total, Parts::default());
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(array, filter, *row)) {
            self.0[*group].add(array.value(row));
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<(), DataFusionError> {
        self.0.resize(total, Parts::default());
        parts(states)?.zip(groups).for_each(|(parts, group)| self.0[*group].merge(parts));
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef, DataFusionError> {
        let means = emit.take_needed(&mut self.0).into_iter().map(Parts::mean);
        Ok(Arc::new(means.collect::<Float64Array>()))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>, DataFusionError> {
        columns(&emit.take_needed(&mut self.0))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let array = numbers::<Int64Type>(values)?;
        let alone = |row| match counts(array, filter, row) {
            true => Parts { count: 1, sum: i128::from(array.value(row)) },
            false => Parts::default(),
        };
        columns(&(0..array.len()).map(alone).collect::<Vec<_>>())
    }

    fn size(&self) -> usize {
        self.0.capacity() * size_of::<Parts>()
    }
}
