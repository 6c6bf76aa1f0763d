//! Functions that only the catalogue has a use for. Tables of it are small: values are read and written one by one.

use std::fmt::{Debug, Formatter};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Int32Array, Int32Builder, Int64Array, ListBuilder, StringViewArray,
    StringViewBuilder, UInt32Array, UInt32Builder,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion::common::DataFusionError;
use datafusion::logical_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, TypeSignature, Volatility,
};
use datafusion::scalar::ScalarValue;

use super::TYPE_OF;
use super::facts::Facts;
use super::functions_list::FUNCTIONS;
use crate::error::{Error, Result};

/// A value that a function is given, or answers.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Given {
    Null,
    Truth(bool),
    Number(i64),
    Text(String),
    List(Vec<Given>),
}

impl Given {
    pub fn text(&self) -> Option<&str> {
        if let Given::Text(text) = self { Some(text) } else { None }
    }

    /// A number, or a text of one.
    pub fn number(&self) -> Option<i64> {
        match self {
            Given::Number(number) => Some(*number),
            Given::Text(text) => text.trim().parse().ok(),
            _ => None,
        }
    }

    /// The number of an object.
    pub fn object(&self) -> Option<u32> {
        self.number().and_then(|number| u32::try_from(number).ok())
    }
}

impl<T: Into<Given>> From<Option<T>> for Given {
    fn from(given: Option<T>) -> Self {
        given.map_or(Given::Null, Into::into)
    }
}

impl From<bool> for Given {
    fn from(truth: bool) -> Self {
        Given::Truth(truth)
    }
}

impl From<u32> for Given {
    fn from(number: u32) -> Self {
        Given::Number(number.into())
    }
}

impl From<i64> for Given {
    fn from(number: i64) -> Self {
        Given::Number(number)
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Given::Text(text.to_owned())
    }
}

impl From<String> for Given {
    fn from(text: String) -> Self {
        Given::Text(text)
    }
}

impl From<&String> for Given {
    fn from(text: &String) -> Self {
        Given::Text(text.clone())
    }
}

/// What a function answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Truth,
    Integer,
    Long,
    Object,
    Text,
    /// A text that is JSON.
    Json,
    Integers,
    Objects,
    Texts,
}

impl Answer {
    fn kind(self) -> DataType {
        let list = |kind| DataType::List(Arc::new(Field::new_list_field(kind, true)));
        match self {
            Answer::Truth => DataType::Boolean,
            Answer::Integer => DataType::Int32,
            Answer::Long => DataType::Int64,
            Answer::Object => DataType::UInt32,
            Answer::Text | Answer::Json => DataType::Utf8View,
            Answer::Integers => list(DataType::Int32),
            Answer::Objects => list(DataType::UInt32),
            Answer::Texts => list(DataType::Utf8View),
        }
    }
}

/// A function: its name, how few and how many arguments it takes, and what it answers to them.
pub(super) struct Known {
    pub name: &'static str,
    pub arguments: (usize, usize),
    pub answer: Answer,
    pub run: fn(&Facts, &[Given]) -> Result<Given>,
}

/// A function over what one snapshot holds.
struct Function {
    known: &'static Known,
    facts: Arc<Facts>,
    signature: Signature,
}

impl Debug for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("name", &self.known.name).finish()
    }
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        self.known.name == other.known.name && Arc::ptr_eq(&self.facts, &other.facts)
    }
}

impl Eq for Function {}

impl Hash for Function {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.known.name.hash(state);
    }
}

/// All of them, over these facts.
pub(crate) fn all(facts: &Arc<Facts>) -> Vec<Arc<ScalarUDF>> {
    let function = |known: &'static Known| {
        let (fewest, most) = known.arguments;
        let takes = |count| if count == 0 { TypeSignature::Nullary } else { TypeSignature::Any(count) };
        let signature = TypeSignature::OneOf((fewest..=most).map(takes).collect());
        let signature = Signature::new(signature, Volatility::Stable);
        Arc::new(ScalarUDF::new_from_impl(Function { known, facts: facts.clone(), signature }))
    };
    FUNCTIONS.iter().map(function).collect()
}

impl ScalarUDFImpl for Function {
    fn name(&self) -> &str {
        self.known.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType, DataFusionError> {
        Ok(self.known.answer.kind())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef, DataFusionError> {
        let field = Field::new(self.known.name, self.known.answer.kind(), true);
        Ok(Arc::new(match self.known.answer {
            Answer::Json => field.with_metadata([(TYPE_OF.to_owned(), "json".to_owned())].into()),
            _ => field,
        }))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue, DataFusionError> {
        let is_constant = arguments.args.iter().all(|value| matches!(value, ColumnarValue::Scalar(_)));
        let rows = if is_constant { 1 } else { arguments.number_rows };
        let columns = arguments.args.into_iter().map(|value| value.into_array(rows)).collect::<Result<Vec<_>, _>>()?;
        let mut answers = Vec::with_capacity(rows);
        for row in 0..rows {
            let given = columns.iter().map(|column| given(column, row)).collect::<Result<Vec<_>>>()?;
            answers.push((self.known.run)(&self.facts, &given)?);
        }
        let answers = array(self.known.answer, &answers);
        if is_constant {
            return Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(&answers, 0)?));
        }
        Ok(ColumnarValue::Array(answers))
    }
}

fn given(column: &ArrayRef, row: usize) -> Result<Given> {
    if column.is_null(row) {
        return Ok(Given::Null);
    }
    Ok(match column.data_type() {
        DataType::Null => Given::Null,
        DataType::Boolean => Given::Truth(column.as_boolean().value(row)),
        kind if kind.is_integer() => {
            let number = cast(&column.slice(row, 1), &DataType::Int64)?;
            Given::Number(number.as_primitive::<Int64Type>().value(0))
        }
        DataType::List(_) => {
            let list = column.as_list::<i32>().value(row);
            Given::List((0..list.len()).map(|at| given(&list, at)).collect::<Result<_>>()?)
        }
        _ => crate::text::cell(column.as_ref(), row)?.into(),
    })
}

fn array(answer: Answer, answers: &[Given]) -> ArrayRef {
    let lists = || answers.iter().map(|given| if let Given::List(list) = given { Some(list) } else { None });
    match answer {
        Answer::Truth => {
            let truths = answers.iter().map(|given| if let Given::Truth(truth) = given { Some(*truth) } else { None });
            Arc::new(BooleanArray::from_iter(truths))
        }
        Answer::Integer => {
            let numbers = answers.iter().map(|given| given.number().and_then(|number| i32::try_from(number).ok()));
            Arc::new(Int32Array::from_iter(numbers))
        }
        Answer::Long => Arc::new(Int64Array::from_iter(answers.iter().map(Given::number))),
        Answer::Object => Arc::new(UInt32Array::from_iter(answers.iter().map(Given::object))),
        Answer::Text | Answer::Json => Arc::new(StringViewArray::from_iter(answers.iter().map(Given::text))),
        Answer::Integers => {
            let mut all = ListBuilder::new(Int32Builder::new());
            let number = |given: &Given| given.number().and_then(|number| i32::try_from(number).ok());
            lists().for_each(|list| all.append_option(list.map(|list| list.iter().map(number))));
            Arc::new(all.finish())
        }
        Answer::Objects => {
            let mut all = ListBuilder::new(UInt32Builder::new());
            lists().for_each(|list| all.append_option(list.map(|list| list.iter().map(Given::object))));
            Arc::new(all.finish())
        }
        Answer::Texts => {
            let mut all = ListBuilder::new(StringViewBuilder::new());
            lists().for_each(|list| all.append_option(list.map(|list| list.iter().map(Given::text))));
            Arc::new(all.finish())
        }
    }
}

/// What a name stands for that is not there.
pub(super) fn missing(sort: &str, name: &str) -> Error {
    Error::NotFound(format!("no {sort} {name}"))
}
