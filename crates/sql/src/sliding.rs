//! Sums and means of floating-point numbers over frames that move.
//!
//! The query library takes what leaves a frame off its sum (DataFusion 55): beside 1e20 a 1 is lost for good, and a NaN or an infinity stays in
//! all sums after it. Here nothing is ever taken off: what is in a frame lies on two stacks, of the older ones with the sum of each and all that
//! came behind it, and of the newer ones with their sum. When the first is empty the second is turned over, so each number is added twice.

use std::mem::size_of;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::datatypes::{DataType, Float64Type};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::Accumulator;
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::scalar::ScalarValue;

use crate::error::Error;

/// What is asked of a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Asked {
    Sum,
    Mean,
}

/// The sum or mean of a frame that moves; none where the numbers are no floating-point ones, or each counts once.
pub(crate) fn over_frame(asked: Asked, arguments: &AccumulatorArgs<'_>) -> Option<Box<dyn Accumulator>> {
    let is_floating = |kind: &DataType| *kind == DataType::Float64;
    let fits =
        is_floating(arguments.expr_fields.first()?.data_type()) && is_floating(arguments.return_field.data_type());
    (fits && !arguments.is_distinct).then(|| Box::new(Sliding::new(asked)) as Box<dyn Accumulator>)
}

#[derive(Debug)]
struct Sliding {
    asked: Asked,
    /// The oldest is the last one: the sum of it and all older than the newer ones.
    older: Vec<f64>,
    newer: Vec<f64>,
    newer_sum: f64,
}

impl Sliding {
    fn new(asked: Asked) -> Self {
        Self { asked, older: Vec::new(), newer: Vec::new(), newer_sum: 0.0 }
    }

    fn forget_oldest(&mut self) -> Result<(), DataFusionError> {
        if self.older.is_empty() {
            let mut sum = 0.0;
            for number in self.newer.drain(..).rev() {
                sum += number;
                self.older.push(sum);
            }
            self.newer_sum = 0.0;
        }
        self.older.pop().map(drop).ok_or_else(|| Error::Bug("a number left a frame that it was not in".into()).into())
    }
}

impl Accumulator for Sliding {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        for number in values[0].as_primitive::<Float64Type>().iter().flatten() {
            self.newer.push(number);
            self.newer_sum += number;
        }
        Ok(())
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<(), DataFusionError> {
        let numbers = values[0].len() - values[0].null_count();
        (0..numbers).try_for_each(|_| self.forget_oldest())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn evaluate(&mut self) -> Result<ScalarValue, DataFusionError> {
        let count = self.older.len() + self.newer.len();
        let sum = self.older.last().copied().unwrap_or(0.0) + self.newer_sum;
        let answer = match self.asked {
            Asked::Sum => sum,
            Asked::Mean => sum / count as f64,
        };
        Ok(ScalarValue::Float64((count > 0).then_some(answer)))
    }

    fn size(&self) -> usize {
        size_of::<Self>() + (self.older.capacity() + self.newer.capacity()) * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>, DataFusionError> {
        Err(Error::Bug("a frame that moves has no state".into()).into())
    }

    fn merge_batch(&mut self, _states: &[ArrayRef]) -> Result<(), DataFusionError> {
        Err(Error::Bug("a frame that moves has no state".into()).into())
    }
}
