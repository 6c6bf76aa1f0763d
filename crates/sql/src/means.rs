//! `avg` of integers and of NUMERIC from their exact sum, divided once. For integers the query library's own adds up floating-point
//! numbers, which rounds beyond 2^53, and by the order of the rows; of NUMERIC it has four digits more than the values, and cuts the rest
//! off.

use std::collections::HashSet;
use std::mem::size_of;
use std::sync::Arc;

use counterfoil_relation::{mean as rounded, mean_digits};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, Decimal128Array, Float64Array, Int64Array, UInt64Array};
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Field, FieldRef, Int64Type, UInt64Type};
use datafusion::common::DataFusionError;
use datafusion::common::types::{NativeType, logical_float64, logical_int64};
use datafusion::functions_aggregate::average::avg_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Coercion, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
    TypeSignature, TypeSignatureClass, Volatility,
};
use datafusion::scalar::ScalarValue;

use crate::aggregates::overflow;
use crate::distinct::{Distinct, OfDistinct};
use crate::folding::{counts, numbers};
use crate::sliding::{Asked, over_frame};

/// Digits of exact sums: 2^64 values of BIGINT fit.
const SUM_DIGITS: u8 = 38;

/// The library's `avg`, but for integers and NUMERIC.
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

/// What there is a mean of.
#[derive(Clone, Copy, Debug)]
enum Of {
    Integers,
    /// NUMERIC of so many digits, and of so many behind the point.
    Numeric(u8, u8),
}

impl Of {
    /// None where the library's own is good.
    fn new(kind: &DataType) -> Option<Of> {
        match kind {
            DataType::Int64 => Some(Of::Integers),
            DataType::Decimal128(precision, scale) => Some(Of::Numeric(*precision, u8::try_from(*scale).ok()?)),
            _ => None,
        }
    }

    /// Columns of values, of their sums, and of their means.
    fn kinds(self) -> [DataType; 3] {
        let decimal = |precision, scale: u8| DataType::Decimal128(precision, scale as i8);
        match self {
            Of::Integers => [DataType::Int64, decimal(SUM_DIGITS, 0), DataType::Float64],
            Of::Numeric(precision, scale) => {
                let mean = mean_digits(precision, scale);
                [decimal(precision, scale), decimal(SUM_DIGITS, scale), decimal(mean.0, mean.1)]
            }
        }
    }

    fn values(self, values: &[ArrayRef]) -> Result<Values<'_>, DataFusionError> {
        Ok(match self {
            Of::Integers => Values::Integers(numbers::<Int64Type>(values)?),
            Of::Numeric(..) => Values::Numeric(numbers::<Decimal128Type>(values)?),
        })
    }

    /// A column of means.
    fn means(self, parts: &[Parts]) -> Result<ArrayRef, DataFusionError> {
        let [.., kind] = self.kinds();
        Ok(match self {
            Of::Integers => Arc::new(parts.iter().map(|parts| parts.double()).collect::<Float64Array>()),
            Of::Numeric(precision, scale) => {
                let digits = mean_digits(precision, scale);
                let means = parts.iter().map(|parts| parts.numeric(digits.0, digits.1 - scale));
                Arc::new(means.collect::<Result<Decimal128Array, _>>()?.with_data_type(kind))
            }
        })
    }

    /// One mean.
    fn mean(self, parts: Parts) -> Result<ScalarValue, DataFusionError> {
        ScalarValue::try_from_array(&self.means(&[parts])?, 0)
    }

    /// States as columns: how many, and their sum; NULL of none.
    fn states(self, parts: &[Parts]) -> Vec<ArrayRef> {
        let [_, sum, _] = self.kinds();
        let counts: UInt64Array = parts.iter().map(|parts| Some(parts.count)).collect();
        let sums: Decimal128Array = parts.iter().map(|parts| (parts.count > 0).then_some(parts.sum)).collect();
        vec![Arc::new(counts), Arc::new(sums.with_data_type(sum))]
    }
}

/// The column that a mean is asked of.
enum Values<'a> {
    Integers(&'a Int64Array),
    Numeric(&'a Decimal128Array),
}

impl Values<'_> {
    fn array(&self) -> &dyn Array {
        match self {
            Values::Integers(array) => *array,
            Values::Numeric(array) => *array,
        }
    }

    fn value(&self, row: usize) -> i128 {
        match self {
            Values::Integers(array) => array.value(row).into(),
            Values::Numeric(array) => array.value(row),
        }
    }

    /// Those that are not NULL.
    fn there(&self) -> impl Iterator<Item = i128> {
        (0..self.array().len()).filter(|row| self.array().is_valid(*row)).map(|row| self.value(row))
    }
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
        match arguments.first().and_then(Of::new) {
            Some(of) => Ok(of.kinds()[2].clone()),
            None => self.inner.return_type(arguments),
        }
    }

    fn accumulator(&self, arguments: AccumulatorArgs<'_>) -> Result<Box<dyn Accumulator>, DataFusionError> {
        match (Of::new(arguments.expr_fields[0].data_type()), arguments.is_distinct) {
            (None, _) => self.inner.accumulator(arguments),
            (Some(of), false) => Ok(Box::new(One { of, parts: Parts::default() })),
            (Some(of), true) => Ok(Box::new(Distinct::new(of))),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>, DataFusionError> {
        let Some(of) = Of::new(arguments.input_fields[0].data_type()) else {
            return self.inner.state_fields(arguments);
        };
        let field = |part, kind| Arc::new(Field::new(format_state_name(arguments.name, part), kind, true));
        let [value, sum, _] = of.kinds();
        if arguments.is_distinct {
            return Ok(vec![field("values", DataType::new_list(value, true))]);
        }
        Ok(vec![field("count", DataType::UInt64), field("sum", sum)])
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        match Of::new(arguments.expr_fields[0].data_type()) {
            Some(_) => !arguments.is_distinct,
            None => self.inner.groups_accumulator_supported(arguments),
        }
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        match Of::new(arguments.expr_fields[0].data_type()) {
            Some(of) => Ok(Box::new(Many { of, parts: Vec::new() })),
            None => self.inner.create_groups_accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>, DataFusionError> {
        match Of::new(arguments.expr_fields[0].data_type()) {
            Some(_) => self.accumulator(arguments),
            None => match over_frame(Asked::Mean, &arguments) {
                Some(mean) => Ok(mean),
                None => self.inner.create_sliding_accumulator(arguments),
            },
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
    fn add(&mut self, value: i128) -> Result<(), DataFusionError> {
        self.merge(Parts { count: 1, sum: value })
    }

    fn remove(&mut self, value: i128) -> Result<(), DataFusionError> {
        self.count -= 1;
        self.sum = self.sum.checked_sub(value).ok_or_else(overflow)?;
        Ok(())
    }

    /// So many integers as would overflow are in no table; of NUMERIC two are enough.
    fn merge(&mut self, other: Parts) -> Result<(), DataFusionError> {
        self.count += other.count;
        self.sum = self.sum.checked_add(other.sum).ok_or_else(overflow)?;
        Ok(())
    }

    fn double(self) -> Option<f64> {
        // As relations divide where they answer themselves: the same question has one answer, whoever is asked.
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// With so many digits in all, and so many more than the values behind the point.
    fn numeric(self, precision: u8, more: u8) -> Result<Option<i128>, DataFusionError> {
        if self.count == 0 {
            return Ok(None);
        }
        let fits = |mean: &i128| mean.unsigned_abs() < 10_u128.pow(precision.into());
        rounded(self.sum, self.count, more).filter(fits).map(Some).ok_or_else(overflow)
    }
}

/// What [`Of::states`] made; a state whose count or sum is NULL is one of no values.
fn parts(states: &[ArrayRef]) -> Result<impl Iterator<Item = Parts>, DataFusionError> {
    let counts = numbers::<UInt64Type>(states)?.iter();
    let sums = numbers::<Decimal128Type>(states.get(1..).unwrap_or_default())?.iter();
    Ok(counts.zip(sums).map(|(count, sum)| Parts { count: count.unwrap_or(0), sum: sum.unwrap_or(0) }))
}

/// The mean of all rows, or of a window that moves.
#[derive(Debug)]
struct One {
    of: Of,
    parts: Parts,
}

impl Accumulator for One {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.of.values(values)?.there().try_for_each(|value| self.parts.add(value))
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        parts(states)?.try_for_each(|parts| self.parts.merge(parts))
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.of.values(values)?.there().try_for_each(|value| self.parts.remove(value))
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        self.of.states(&[self.parts]).iter().map(|column| ScalarValue::try_from_array(column, 0)).collect()
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        self.of.mean(self.parts)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

impl OfDistinct for Of {
    fn take(&self, values: &[ArrayRef], into: &mut HashSet<i128>) -> Result<(), DataFusionError> {
        into.extend(self.values(values)?.there());
        Ok(())
    }

    fn column(&self, numbers: &HashSet<i128>) -> ArrayRef {
        let [kind, ..] = self.kinds();
        match self {
            Of::Integers => Arc::new(numbers.iter().map(|number| *number as i64).collect::<Int64Array>()),
            Of::Numeric(..) => {
                Arc::new(numbers.iter().copied().map(Some).collect::<Decimal128Array>().with_data_type(kind))
            }
        }
    }

    fn answer(&self, numbers: &HashSet<i128>) -> Result<ScalarValue, DataFusionError> {
        let mut parts = Parts::default();
        numbers.iter().try_for_each(|number| parts.add(*number))?;
        self.mean(parts)
    }
}

/// The means of many groups at once.
struct Many {
    of: Of,
    parts: Vec<Parts>,
}

impl GroupsAccumulator for Many {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let values = self.of.values(values)?;
        self.parts.resize(total, Parts::default());
        let mut rows = groups.iter().enumerate().filter(|(row, _)| counts(values.array(), filter, *row));
        rows.try_for_each(|(row, group)| self.parts[*group].add(values.value(row)))
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<(), DataFusionError> {
        self.parts.resize(total, Parts::default());
        parts(states)?.zip(groups).try_for_each(|(parts, group)| self.parts[*group].merge(parts))
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef, DataFusionError> {
        self.of.means(&emit.take_needed(&mut self.parts))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>, DataFusionError> {
        Ok(self.of.states(&emit.take_needed(&mut self.parts)))
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let values = self.of.values(values)?;
        let alone = |row| match counts(values.array(), filter, row) {
            true => Parts { count: 1, sum: values.value(row) },
            false => Parts::default(),
        };
        Ok(self.of.states(&(0..values.array().len()).map(alone).collect::<Vec<_>>()))
    }

    fn size(&self) -> usize {
        self.parts.capacity() * size_of::<Parts>()
    }
}
