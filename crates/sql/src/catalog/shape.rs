//! The tables of the catalogue as PostgreSQL 15 has them: names, numbers, columns, and rows made into Arrow.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use datafusion::arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, BooleanArray, Float32Array, Float64Array, Int16Array, Int32Array, Int64Array,
    ListBuilder, PrimitiveBuilder, RecordBatch, StringViewArray, StringViewBuilder, TimestampMicrosecondArray,
    UInt32Array, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Int16Type, Schema, TimeUnit, UInt32Type};

use super::TYPE_OF;
use crate::error::{Error, Result};
use crate::types::UTC;

/// A column of the catalogue.
#[derive(Debug)]
pub(super) struct Column {
    pub name: &'static str,
    /// PostgreSQL's name of its type.
    pub kind: &'static str,
    pub is_nullable: bool,
}

/// A table of the catalogue.
#[derive(Debug)]
pub(super) struct Shape {
    pub name: &'static str,
    /// Its number; 0 for what is no table there.
    pub number: u32,
    pub columns: Vec<Column>,
}

static SHAPES: LazyLock<BTreeMap<&'static str, Shape>> = LazyLock::new(|| {
    let mut shapes: BTreeMap<&'static str, Shape> = BTreeMap::new();
    for words in lines(include_str!("shapes.txt")) {
        let mut words = words.into_iter();
        let (Some(name), Some(number)) = (words.next(), words.next().and_then(|word| word.parse().ok())) else {
            continue;
        };
        let columns = words.filter_map(column).collect();
        shapes.insert(name, Shape { name, number, columns });
    }
    shapes
});

fn column(word: &'static str) -> Option<Column> {
    let (name, kind) = word.split_once(':')?;
    let (kind, is_nullable) = kind.strip_suffix('?').map_or((kind, false), |kind| (kind, true));
    Some(Column { name, kind, is_nullable })
}

/// The words of each entry of a text of ours: a line goes on in those behind it that begin with a blank.
pub(super) fn lines(text: &'static str) -> Vec<Vec<&'static str>> {
    let mut entries: Vec<Vec<&'static str>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        match entries.last_mut() {
            Some(entry) if line.starts_with(' ') => entry.extend(line.split_whitespace()),
            _ => entries.push(line.split_whitespace().collect()),
        }
    }
    entries
}

/// A table of the catalogue by name.
pub(super) fn shape(name: &str) -> Option<&'static Shape> {
    SHAPES.get(name)
}

/// All tables of the catalogue, by name.
pub(super) fn shapes() -> impl Iterator<Item = &'static Shape> {
    SHAPES.values().filter(|shape| shape.number != 0)
}

/// A value of the catalogue.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Cell {
    Null,
    Truth(bool),
    Number(i64),
    Text(String),
    Numbers(Vec<i64>),
    Texts(Vec<String>),
}

impl From<bool> for Cell {
    fn from(truth: bool) -> Self {
        Cell::Truth(truth)
    }
}

impl From<u32> for Cell {
    fn from(number: u32) -> Self {
        Cell::Number(number.into())
    }
}

impl From<i32> for Cell {
    fn from(number: i32) -> Self {
        Cell::Number(number.into())
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Cell::Text(text.to_owned())
    }
}

impl From<&String> for Cell {
    fn from(text: &String) -> Self {
        Cell::Text(text.clone())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Cell::Text(text)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(cell: Option<T>) -> Self {
        cell.map_or(Cell::Null, Into::into)
    }
}

/// Rows of a table of the catalogue.
pub(super) struct Rows {
    shape: &'static Shape,
    places: HashMap<&'static str, usize>,
    rows: Vec<Vec<Cell>>,
}

impl Rows {
    pub fn of(shape: &'static Shape) -> Self {
        let places = shape.columns.iter().enumerate().map(|(place, column)| (column.name, place)).collect();
        Rows { shape, places, rows: Vec::new() }
    }

    /// Adds a row: what is not said is NULL where it may be, and nothing, no or none where it may not.
    pub fn push<const N: usize>(&mut self, said: [(&str, Cell); N]) {
        let mut row: Vec<Cell> = self.shape.columns.iter().map(unsaid).collect();
        for (name, cell) in said {
            match self.places.get(name) {
                Some(place) => row[*place] = cell,
                None => debug_assert!(false, "{} has no column {name}", self.shape.name),
            }
        }
        self.rows.push(row);
    }

    pub fn batch(self) -> Result<RecordBatch> {
        let columns = self.shape.columns.iter().enumerate();
        let arrays = columns.map(|(place, column)| array(column.kind, self.rows.iter().map(|row| &row[place])));
        let arrays = arrays.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::new(self.shape.schema()), arrays)?)
    }
}

impl Shape {
    fn schema(&self) -> Schema {
        Schema::new(self.columns.iter().map(field).collect::<Vec<_>>())
    }
}

fn field(column: &Column) -> Field {
    let field = Field::new(column.name, arrow(column.kind), true);
    match column.kind {
        "name" | "char" | "int2vector" | "oidvector" => {
            field.with_metadata(HashMap::from([(TYPE_OF.to_owned(), column.kind.to_owned())]))
        }
        _ => field,
    }
}

fn unsaid(column: &Column) -> Cell {
    if column.is_nullable {
        return Cell::Null;
    }
    match arrow(column.kind) {
        DataType::Boolean => Cell::Truth(false),
        DataType::Utf8View if column.kind == "regproc" => Cell::Text("-".into()),
        DataType::Utf8View => Cell::Text(String::new()),
        DataType::List(field) if *field.data_type() == DataType::Utf8View => Cell::Texts(Vec::new()),
        DataType::List(_) => Cell::Numbers(Vec::new()),
        _ => Cell::Number(0),
    }
}

/// What carries a type of PostgreSQL. Numbers of objects are unsigned, and nothing else is; functions are shown by their names.
fn arrow(kind: &str) -> DataType {
    let list = |kind| DataType::List(Arc::new(Field::new_list_field(kind, true)));
    match kind {
        "bool" => DataType::Boolean,
        "int2" => DataType::Int16,
        "int4" => DataType::Int32,
        "int8" => DataType::Int64,
        "float4" => DataType::Float32,
        "float8" => DataType::Float64,
        "oid" | "xid" | "regclass" => DataType::UInt32,
        "timestamptz" => DataType::Timestamp(TimeUnit::Microsecond, Some(UTC.into())),
        "int2vector" | "_int2" => list(DataType::Int16),
        "oidvector" | "_oid" => list(DataType::UInt32),
        kind if kind.starts_with('_') => list(DataType::Utf8View),
        _ => DataType::Utf8View,
    }
}

fn array<'a>(kind: &str, cells: impl Iterator<Item = &'a Cell> + Clone) -> Result<ArrayRef> {
    let numbers = || cells.clone().map(number);
    Ok(match arrow(kind) {
        DataType::Boolean => Arc::new(BooleanArray::from_iter(
            cells.map(|cell| if let Cell::Truth(truth) = cell { Some(*truth) } else { None }),
        )),
        DataType::Int16 => Arc::new(Int16Array::from_iter(numbers().map(fitting::<i16>))),
        DataType::Int32 => Arc::new(Int32Array::from_iter(numbers().map(fitting::<i32>))),
        DataType::Int64 => Arc::new(Int64Array::from_iter(numbers())),
        DataType::UInt32 => Arc::new(UInt32Array::from_iter(numbers().map(fitting::<u32>))),
        DataType::Float32 => {
            Arc::new(Float32Array::from_iter(numbers().map(|number| number.map(|number| number as f32))))
        }
        DataType::Float64 => {
            Arc::new(Float64Array::from_iter(numbers().map(|number| number.map(|number| number as f64))))
        }
        DataType::Utf8View => Arc::new(StringViewArray::from_iter(cells.map(text))),
        DataType::Timestamp(..) => Arc::new(TimestampMicrosecondArray::from_iter(numbers()).with_timezone(UTC)),
        DataType::List(field) => lists(field.data_type(), cells)?,
        other => return Err(Error::Bug(format!("a catalogue with {other}"))),
    })
}

fn number(cell: &Cell) -> Option<i64> {
    if let Cell::Number(number) = cell { Some(*number) } else { None }
}

fn text(cell: &Cell) -> Option<&str> {
    if let Cell::Text(text) = cell { Some(text) } else { None }
}

fn fitting<T: TryFrom<i64>>(number: Option<i64>) -> Option<T> {
    number.and_then(|number| T::try_from(number).ok())
}

fn lists<'a>(kind: &DataType, cells: impl Iterator<Item = &'a Cell>) -> Result<ArrayRef> {
    Ok(match kind {
        DataType::Int16 => number_lists::<Int16Type>(cells),
        DataType::UInt32 => number_lists::<UInt32Type>(cells),
        DataType::Utf8View => {
            let mut lists = ListBuilder::new(StringViewBuilder::new());
            for cell in cells {
                match cell {
                    Cell::Texts(texts) => lists.append_value(texts.iter().map(Some)),
                    _ => lists.append_null(),
                }
            }
            Arc::new(lists.finish())
        }
        other => return Err(Error::Bug(format!("a catalogue with lists of {other}"))),
    })
}

fn number_lists<'a, T: ArrowPrimitiveType<Native: TryFrom<i64>>>(cells: impl Iterator<Item = &'a Cell>) -> ArrayRef {
    let mut lists = ListBuilder::new(PrimitiveBuilder::<T>::new());
    for cell in cells {
        match cell {
            Cell::Numbers(numbers) => {
                lists.append_value(numbers.iter().map(|number| fitting::<T::Native>(Some(*number))))
            }
            _ => lists.append_null(),
        }
    }
    Arc::new(lists.finish())
}

/// No rows of a table of the catalogue.
pub(super) fn nothing(shape: &Shape) -> Result<RecordBatch> {
    let schema = Arc::new(shape.schema());
    let arrays = schema.fields().iter().map(|field| new_null_array(field.data_type(), 0).slice(0, 0)).collect();
    Ok(RecordBatch::try_new(schema, arrays)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_has_a_number_of_its_own_and_columns() {
        let mut numbers: Vec<u32> = shapes().map(|shape| shape.number).collect();
        let tables = numbers.len();
        numbers.sort_unstable();
        numbers.dedup();
        assert_eq!((numbers.len(), tables), (tables, 86));
        assert!(shapes().all(|shape| shape.columns.len() > 1 && nothing(shape).unwrap().num_rows() == 0));
        let class = shape("pg_class").unwrap();
        assert_eq!((class.number, class.columns[1].name, class.columns[1].kind), (1259, "relname", "name"));
        assert!(class.columns.iter().find(|column| column.name == "relacl").unwrap().is_nullable);
    }

    #[test]
    fn what_is_not_said_of_a_row_is_nothing() {
        let mut rows = Rows::of(shape("pg_index").unwrap());
        rows.push([("indexrelid", Cell::from(7u32)), ("indkey", Cell::Numbers(vec![2, 1]))]);
        let batch = rows.batch().unwrap();
        let shown = |name| crate::text::cell(batch.column_by_name(name).unwrap(), 0).unwrap();
        assert_eq!(shown("indexrelid").as_deref(), Some("7"));
        assert_eq!(shown("indkey").as_deref(), Some("{2,1}"));
        assert_eq!(shown("indisunique").as_deref(), Some("false"));
        assert_eq!(shown("indpred"), None);
    }
}
