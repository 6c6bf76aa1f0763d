//! Aggregates of numbers each of which counts once: `sum(DISTINCT n)`, `avg(DISTINCT n)`.

use std::collections::HashSet;
use std::fmt::Debug;
use std::mem::size_of;

use datafusion::arrow::array::{ArrayRef, ListArray};
use datafusion::common::DataFusionError;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::logical_expr::Accumulator;
use datafusion::scalar::ScalarValue;

use crate::error::Error;

/// What is made of numbers that are there once.
pub(crate) trait OfDistinct: Debug + Send + Sync + 'static {
    /// Takes the numbers of a column.
    fn take(&self, values: &[ArrayRef], into: &mut HashSet<i128>) -> Result<(), DataFusionError>;
    /// A column of numbers, as they came.
    fn column(&self, numbers: &HashSet<i128>) -> ArrayRef;
    /// The answer.
    fn answer(&self, numbers: &HashSet<i128>) -> Result<ScalarValue, DataFusionError>;
}

/// The numbers; a state is a list of them.
#[derive(Debug)]
pub(crate) struct Distinct<A> {
    of: A,
    numbers: HashSet<i128>,
}

impl<A: OfDistinct> Distinct<A> {
    pub(crate) fn new(of: A) -> Self {
        Distinct { of, numbers: HashSet::new() }
    }
}

impl<A: OfDistinct> Accumulator for Distinct<A> {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        self.of.take(values, &mut self.numbers)
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<(), DataFusionError> {
        let lists = states.first().and_then(|state| state.as_any().downcast_ref::<ListArray>());
        let lists = lists.ok_or_else(|| Error::Bug("a state that is no list".into()))?;
        lists.iter().flatten().try_for_each(|list| self.update_batch(&[list]))
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        let numbers = self.of.column(&self.numbers);
        Ok(vec![SingleRowListArrayBuilder::new(numbers).build_list_scalar()])
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        self.of.answer(&self.numbers)
    }

    fn size(&self) -> usize {
        size_of::<Self>() + self.numbers.capacity() * size_of::<i128>()
    }
}
