//! `sum` of integers and of NUMERIC that answers an error where it would overflow; the query library's own wraps around.
//!
//! A sum may leave the range of its type on its way and come back, whatever parts it is made of: states are wider than what is answered.

use std::collections::HashSet;
use std::fmt::Debug;
use std::mem::size_of;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, ArrowNativeTypeOp, ArrowPrimitiveType, BooleanArray, PrimitiveArray};
use datafusion::arrow::compute::sum_checked;
use datafusion::arrow::datatypes::{DataType, Decimal128Type, Decimal256Type, Field, FieldRef, Int64Type, i256};
use datafusion::common::DataFusionError;
use datafusion::functions_aggregate::sum::sum_udaf;
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::{AggregateOrderSensitivity, format_state_name};
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, EmitTo, GroupsAccumulator, ReversedUDAF, Signature,
};
use datafusion::scalar::ScalarValue;

use crate::distinct::{Distinct, OfDistinct};
use crate::error::Error;
use crate::folding::{counts, numbers};
use crate::sliding::{Asked, over_frame};

type Native<T> = <T as ArrowPrimitiveType>::Native;

/// What there is a sum of.
trait Kind: Copy + Debug + Send + Sync + 'static {
    /// Columns of values.
    type Value: ArrowPrimitiveType;
    /// Columns of sums on their way: those of 2^64 values fit.
    type Wide: ArrowPrimitiveType + Debug;
    /// Columns of sums as they are answered.
    type Answer: ArrowPrimitiveType;

    /// The types of these columns.
    fn types(self) -> [DataType; 3];
    fn number(value: Native<Self::Value>) -> i128;
    /// One of a column of values, again.
    fn value(number: i128) -> Native<Self::Value>;
    fn wide(number: i128) -> Native<Self::Wide>;
    /// The sum of some values, fast where it is no wider than they are.
    fn whole(array: &PrimitiveArray<Self::Value>) -> Native<Self::Wide>;
    /// A sum as it is answered.
    fn in_range(self, sum: Native<Self::Wide>) -> Result<Native<Self::Answer>, DataFusionError>;
}

#[derive(Clone, Copy, Debug)]
struct Integers;

impl Kind for Integers {
    type Value = Int64Type;
    type Wide = Decimal128Type;
    type Answer = Int64Type;

    fn types(self) -> [DataType; 3] {
        [DataType::Int64, DataType::Decimal128(38, 0), DataType::Int64]
    }

    fn number(value: i64) -> i128 {
        value.into()
    }

    fn value(number: i128) -> i64 {
        number as i64
    }

    fn wide(number: i128) -> i128 {
        number
    }

    fn whole(array: &PrimitiveArray<Int64Type>) -> i128 {
        match sum_checked(array) {
            Ok(sum) => sum.unwrap_or(0).into(),
            Err(_) => array.iter().flatten().map(i128::from).sum(),
        }
    }

    fn in_range(self, sum: i128) -> Result<i64, DataFusionError> {
        i64::try_from(sum).map_err(|_| overflow())
    }
}

/// NUMERIC of so many digits, of which the sum has so many, and of so many behind the point.
#[derive(Clone, Copy, Debug)]
struct Numeric {
    of: u8,
    digits: u8,
    scale: i8,
}

impl Kind for Numeric {
    type Value = Decimal128Type;
    type Wide = Decimal256Type;
    type Answer = Decimal128Type;

    fn types(self) -> [DataType; 3] {
        let Numeric { of, digits, scale } = self;
        [DataType::Decimal128(of, scale), DataType::Decimal256(76, scale), DataType::Decimal128(digits, scale)]
    }

    fn number(value: i128) -> i128 {
        value
    }

    fn value(number: i128) -> i128 {
        number
    }

    fn wide(number: i128) -> i256 {
        i256::from_i128(number)
    }

    fn whole(array: &PrimitiveArray<Decimal128Type>) -> i256 {
        match sum_checked(array) {
            Ok(sum) => i256::from_i128(sum.unwrap_or(0)),
            Err(_) => array.iter().flatten().map(i256::from_i128).fold(i256::ZERO, i256::wrapping_add),
        }
    }

    fn in_range(self, sum: i256) -> Result<i128, DataFusionError> {
        let fits = |sum: &i128| sum.unsigned_abs() < 10_u128.pow(self.digits.into());
        sum.to_i128().filter(fits).ok_or_else(overflow)
    }
}

/// The library's `sum`, but for integers and NUMERIC.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Sum {
    inner: Arc<AggregateUDF>,
}

/// `sum`, to take the place of the library's.
pub(crate) fn sum() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::new_from_impl(Sum { inner: sum_udaf() }))
}

/// What is asked of a sum, of which there are several kinds.
enum Of {
    Integers(Integers),
    Numeric(Numeric),
}

impl Of {
    /// None where the library's own is good.
    fn new(values: &FieldRef, answer: &FieldRef) -> Option<Self> {
        match (values.data_type(), answer.data_type()) {
            (DataType::Int64, DataType::Int64) => Some(Of::Integers(Integers)),
            (DataType::Decimal128(of, _), DataType::Decimal128(digits, scale)) => {
                Some(Of::Numeric(Numeric { of: *of, digits: *digits, scale: *scale }))
            }
            _ => None,
        }
    }

    fn asked_by(arguments: &AccumulatorArgs<'_>) -> Option<Self> {
        Self::new(arguments.expr_fields.first()?, &arguments.return_field)
    }

    fn one(self, is_distinct: bool) -> Box<dyn Accumulator> {
        match self {
            Of::Integers(kind) => one(kind, is_distinct),
            Of::Numeric(kind) => one(kind, is_distinct),
        }
    }
}

fn one<K: Kind>(kind: K, is_distinct: bool) -> Box<dyn Accumulator> {
    match is_distinct {
        true => Box::new(Distinct::new(Once(kind))),
        false => Box::new(One { kind, sum: K::wide(0), count: 0 }),
    }
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
        match Of::asked_by(&arguments) {
            Some(of) => Ok(of.one(arguments.is_distinct)),
            None => self.inner.accumulator(arguments),
        }
    }

    fn state_fields(&self, arguments: StateFieldsArgs<'_>) -> Result<Vec<FieldRef>, DataFusionError> {
        let of = arguments.input_fields.first().and_then(|values| Of::new(values, &arguments.return_field));
        let [value, wide, _] = match of {
            Some(Of::Integers(kind)) => kind.types(),
            Some(Of::Numeric(kind)) => kind.types(),
            None => return self.inner.state_fields(arguments),
        };
        let (part, kind) =
            if arguments.is_distinct { ("values", DataType::new_list(value, true)) } else { ("sum", wide) };
        Ok(vec![Arc::new(Field::new(format_state_name(arguments.name, part), kind, true))])
    }

    fn groups_accumulator_supported(&self, arguments: AccumulatorArgs<'_>) -> bool {
        match Of::asked_by(&arguments) {
            Some(_) => !arguments.is_distinct,
            None => self.inner.groups_accumulator_supported(arguments),
        }
    }

    fn create_groups_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn GroupsAccumulator>, DataFusionError> {
        match Of::asked_by(&arguments) {
            Some(Of::Integers(kind)) => Ok(Box::new(Many { kind, sums: Vec::new(), is_there: Vec::new() })),
            Some(Of::Numeric(kind)) => Ok(Box::new(Many { kind, sums: Vec::new(), is_there: Vec::new() })),
            None => self.inner.create_groups_accumulator(arguments),
        }
    }

    fn create_sliding_accumulator(
        &self,
        arguments: AccumulatorArgs<'_>,
    ) -> Result<Box<dyn Accumulator>, DataFusionError> {
        match Of::asked_by(&arguments) {
            Some(of) => Ok(of.one(arguments.is_distinct)),
            None => match over_frame(Asked::Sum, &arguments) {
                Some(sum) => Ok(sum),
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

/// A sum that its type cannot hold.
pub(crate) fn overflow() -> DataFusionError {
    Error::Overflow("a sum is out of the range of its type: cast to NUMERIC first".into()).into()
}

/// Sums as they are answered, and as states.
fn answers<K: Kind>(kind: K, sums: impl Iterator<Item = Option<Native<K::Wide>>>) -> Result<ArrayRef, DataFusionError> {
    let [.., answer] = kind.types();
    let sums = sums.map(|sum| sum.map(|sum| kind.in_range(sum)).transpose());
    Ok(Arc::new(sums.collect::<Result<PrimitiveArray<K::Answer>, _>>()?.with_data_type(answer)))
}

fn states<K: Kind>(kind: K, sums: impl Iterator<Item = Option<Native<K::Wide>>>) -> ArrayRef {
    let [_, wide, _] = kind.types();
    Arc::new(PrimitiveArray::<K::Wide>::from_iter(sums).with_data_type(wide))
}

/// The sum of all rows, or of a window that moves.
#[derive(Debug)]
struct One<K: Kind> {
    kind: K,
    /// It may leave the range on its way and come back.
    sum: Native<K::Wide>,
    /// Values that are not NULL, or sums of such.
    count: u64,
}

impl<K: Kind> One<K> {
    fn there(&self) -> Option<Native<K::Wide>> {
        (self.count > 0).then_some(self.sum)
    }
}

impl<K: Kind> Accumulator for One<K> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let array = numbers::<K::Value>(values)?;
        self.sum = self.sum.add_wrapping(K::whole(array));
        self.count += (array.len() - array.null_count()) as u64;
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        for sum in numbers::<K::Wide>(states)?.iter().flatten() {
            (self.sum, self.count) = (self.sum.add_wrapping(sum), self.count + 1);
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let array = numbers::<K::Value>(values)?;
        self.sum = self.sum.sub_wrapping(K::whole(array));
        self.count -= (array.len() - array.null_count()) as u64;
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        let state = states(self.kind, [self.there()].into_iter());
        Ok(vec![ScalarValue::try_from_array(&state, 0)?])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        ScalarValue::try_from_array(&answers(self.kind, [self.there()].into_iter())?, 0)
    }

    fn size(&self) -> usize {
        size_of::<Self>()
    }
}

/// The sum of values each of which counts once.
#[derive(Debug)]
struct Once<K>(K);

impl<K: Kind> OfDistinct for Once<K> {
    fn take(&self, values: &[ArrayRef], into: &mut HashSet<i128>) -> Result<(), DataFusionError> {
        into.extend(numbers::<K::Value>(values)?.iter().flatten().map(K::number));
        Ok(())
    }

    fn column(&self, numbers: &HashSet<i128>) -> ArrayRef {
        let [kind, ..] = self.0.types();
        let values = numbers.iter().map(|number| Some(K::value(*number)));
        Arc::new(PrimitiveArray::<K::Value>::from_iter(values).with_data_type(kind))
    }

    fn answer(&self, numbers: &HashSet<i128>) -> Result<ScalarValue, DataFusionError> {
        let sum = numbers.iter().map(|number| K::wide(*number)).reduce(Native::<K::Wide>::add_wrapping);
        ScalarValue::try_from_array(&answers(self.0, [sum].into_iter())?, 0)
    }
}

/// The sums of many groups at once.
struct Many<K: Kind> {
    kind: K,
    sums: Vec<Native<K::Wide>>,
    /// Whether there is one: of no values it is NULL.
    is_there: Vec<bool>,
}

impl<K: Kind> Many<K> {
    fn make_room(&mut self, groups: usize) {
        self.sums.resize(groups, K::wide(0));
        self.is_there.resize(groups, false);
    }

    fn add(&mut self, group: usize, sum: Native<K::Wide>) {
        self.sums[group] = self.sums[group].add_wrapping(sum);
        self.is_there[group] = true;
    }

    fn take(&mut self, emit: EmitTo) -> impl Iterator<Item = Option<Native<K::Wide>>> {
        let (sums, are_there) = (emit.take_needed(&mut self.sums), emit.take_needed(&mut self.is_there));
        sums.into_iter().zip(are_there).map(|(sum, is_there)| is_there.then_some(sum))
    }
}

impl<K: Kind> GroupsAccumulator for Many<K> {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<(), DataFusionError> {
        let array = numbers::<K::Value>(values)?;
        self.make_room(total);
        for (row, group) in groups.iter().enumerate().filter(|(row, _)| counts(array, filter, *row)) {
            self.add(*group, K::wide(K::number(array.value(row))));
        }
        Ok(())
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<(), DataFusionError> {
        let array = numbers::<K::Wide>(states)?;
        self.make_room(total);
        for (sum, group) in array.iter().zip(groups) {
            sum.into_iter().for_each(|sum| self.add(*group, sum));
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef, DataFusionError> {
        answers(self.kind, self.take(emit))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>, DataFusionError> {
        Ok(vec![states(self.kind, self.take(emit))])
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>, DataFusionError> {
        let array = numbers::<K::Value>(values)?;
        let alone = |row| counts(array, filter, row).then(|| K::wide(K::number(array.value(row))));
        Ok(vec![states(self.kind, (0..array.len()).map(alone))])
    }

    fn size(&self) -> usize {
        self.sums.capacity() * size_of::<Native<K::Wide>>() + self.is_there.capacity()
    }
}
